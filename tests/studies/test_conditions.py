"""What the machine did: each condition planted, and none where there was none."""

import multiprocessing
import os
import time

import psutil
import pytest
import torch

from app.models.card import CardState
from app.studies import conditions
from app.studies.conditions import Conditions, Moment, look, watch
from toys import tiny_llama


def flags(*moments, processors=2, models=(), card_bytes=()):
    """The flags of a machine that was found so, moment by moment."""
    coming = iter(moments)
    found = Conditions(lambda: next(coming), processors, models, card_bytes, not card_bytes)
    for _ in moments:
        found.sample()
    return {flag.kind: flag.detail for flag in found.flags()}


def test_a_quiet_machine_raises_nothing():
    quiet = [Moment(float(n), 50.0 + n, 2.0 * n, 1.9 * n, 3000.0, True) for n in range(4)]
    assert flags(*quiet) == {}
    assert flags() == {}
    assert flags(Moment(plugged=None)) == {}


def test_one_moment_on_the_battery_is_enough():
    assert "battery" in flags(Moment(plugged=True), Moment(plugged=False), Moment(plugged=True))


def test_load_is_what_others_used_of_all_processors_between_first_and_last():
    # In 10 s of 2 processors: 14 s busy, 8 of them ours; 6 of 20 are another's.
    found = flags(Moment(5.0, 5.0, 100.0, 50.0), Moment(9.0, 9.0), Moment(15.0, 15.0, 114.0, 58.0))
    assert found == {"other load": "other programs took 30 % of the processor"}
    assert flags(Moment(5.0, 5.0, 100.0, 50.0), Moment(15.0, 15.0, 110.0, 58.1)) == {}


def test_a_clock_that_falls_once_the_lanes_run_is_told():
    clocks = [900.0, 3000.0, 2900.0, 2400.0]
    found = flags(*(Moment(clock_mhz=clock) for clock in clocks))
    assert found == {"throttled": "its clock fell from 3000 to 2400 MHz"}


@pytest.mark.parametrize(
    "clocks", [[900.0, 3000.0, 2700.0], [3000.0, 900.0], [3000.0, 2000.0, 2900.0], [None] * 3]
)
def test_a_clock_that_rises_or_hardly_moves_is_not(clocks):
    assert flags(*(Moment(clock_mhz=clock) for clock in clocks)) == {}


def test_a_card_tells_why_it_is_slow_and_who_else_uses_it():
    hot = CardState(("its temperature",), used_elsewhere=0.4)
    found = flags(Moment(cards=(CardState(),)), Moment(cards=(hot,)), card_bytes=(10**10,))
    assert found == {
        "throttled": "by its temperature",
        "other load": "another program used 40 % of the card",
    }


def test_where_a_cards_load_cannot_be_read_its_memory_is_looked_at():
    full = CardState(held_elsewhere=3 * 10**9)
    moments = Moment(cards=(full,)), Moment(cards=(CardState(),))
    assert flags(*moments, card_bytes=(10**10,)) == {
        "other load": "other programs hold 3.0 GB of the card's memory"
    }
    assert flags(*moments, card_bytes=(4 * 10**10,)) == {}
    idle = Moment(cards=(CardState(used_elsewhere=0.0, held_elsewhere=3 * 10**9),))
    assert flags(idle, card_bytes=(10**10,)) == {}


def test_the_drafts_device_is_watched_too():
    # Target on one card, draft on another, which is the slow one.
    cool, hot = CardState(used_elsewhere=0.0), CardState(("its power limit",), used_elsewhere=0.3)
    assert flags(Moment(cards=(cool, hot)), card_bytes=(1, 1)) == {
        "throttled": "by its power limit",
        "other load": "another program used 30 % of the card",
    }
    # Target on a card, draft on a processor that others keep busy.
    moments = (
        Moment(5.0, 5.0, 100.0, 50.0, cards=(cool,)),
        Moment(15.0, 15.0, 114.0, 58.0, cards=(cool,)),
    )
    both = Conditions(iter(moments).__next__, 2, card_bytes=(10**10,), on_cpu=True)
    for _ in moments:
        both.sample()
    assert [flag.detail for flag in both.flags()] == ["other programs took 30 % of the processor"]
    assert flags(*moments, card_bytes=(10**10,)) == {}


@pytest.mark.parametrize(
    ("wall", "told"),
    [
        (700.0, "its clock went 600 s ahead beside the one that times runs"),  # a lid was shut
        (-3500.0, "its clock went 3600 s back beside the one that times runs"),  # an hour back
    ],
)
def test_a_machine_that_slept_or_whose_clock_was_set_is_told(wall, told):
    assert flags(Moment(10.0, 0.0), Moment(110.0, wall), Moment(120.0, wall + 10)) == {
        "slept": told
    }


def test_clocks_that_drift_a_little_are_not():
    assert flags(Moment(10.0, 0.0), Moment(110.0, 101.5)) == {}


def test_layers_elsewhere_are_named():
    model = tiny_llama()
    assert model.offloaded == 0
    layer = sum(weight.numel() for weight in model.inner.model.layers[1].parameters())
    model.inner.model.layers[1].to("meta")
    assert model.offloaded == pytest.approx(layer / model.parameters)
    share = f"{100 * layer / model.parameters:.0f} %"
    assert flags(models=(model,)) == {"offloaded": f"{share} of the weights of tiny"}


def test_the_machine_itself_can_be_looked_at():
    before = look()
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    after = look()
    assert after.own - before.own >= 0.25
    assert after.busy >= before.busy > 0
    assert after.seconds - before.seconds >= 0.3
    found = watch([torch.device("cpu")], ())
    found.sample()
    found.flags()


def _burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        os.getpid()


def _used(process: int | None = None) -> float:
    times = psutil.Process(process).cpu_times()
    return times.user + times.system


def test_a_process_of_our_own_is_not_another_program():
    child = multiprocessing.get_context("spawn").Process(target=_burn, args=(30.0,))
    child.start()
    try:
        before, mine, its = conditions._own_seconds(), _used(), _used(child.pid)
        while child.is_alive() and _used(child.pid) - its < 0.5:
            time.sleep(0.05)
        after = conditions._own_seconds()
        assert after - before - (_used() - mine) > 0.4
    finally:
        child.kill()
        child.join()


@pytest.mark.parametrize("fault", [FileNotFoundError, NotImplementedError, AttributeError])
def test_what_a_system_does_not_tell_is_unknown(monkeypatch, fault):
    """A container may have no /sys, a virtual machine no clock."""

    def untold(*arguments, **options):
        raise fault("/sys/class/power_supply")

    monkeypatch.setattr(conditions.psutil, "sensors_battery", untold, raising=False)
    monkeypatch.setattr(conditions.psutil, "cpu_freq", untold, raising=False)
    seen = look()
    assert (seen.plugged, seen.clock_mhz) == (None, None)
    assert seen.busy > 0


def test_a_window_that_has_just_ended_is_left_out(monkeypatch):
    gone = multiprocessing.get_context("spawn").Process(target=int)
    gone.start()
    gone.join()
    monkeypatch.setattr(conditions.multiprocessing, "parent_process", lambda: gone)
    assert look().own > 0
