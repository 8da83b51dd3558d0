"""What a device can do at best: by a clock of the test's own, and by spans made by hand."""

from types import SimpleNamespace

import pytest
import torch

from app.run.problems import Cancelled
from app.studies import device_limits
from app.studies.device_limits import (
    _device_spans,
    busy_seconds,
    copied_bytes,
    copy_bandwidth,
    covered,
)
from toys import FakeClock, tiny_llama

CPU = torch.device("cpu")


class Copies(FakeClock):
    """Each pair of marks is a copy of a quarter of a second; the first two copies are slow."""

    def __init__(self):
        super().__init__()
        self.marks = 0

    def mark(self):
        if self.marks % 2:
            self.spend(0.25 if self.marks > 4 else 9.0)
        self.marks += 1
        return self.time


def test_a_copy_reads_and_writes_every_byte():
    assert copy_bandwidth(CPU, 1000, pause=lambda: None, clock=Copies()) == 2 * 1000 / 0.25


def test_the_block_is_really_copied(monkeypatch):
    made, full = [], torch.full_like
    monkeypatch.setattr(torch, "full_like", lambda *a, **k: made.append(full(*a, **k)) or made[-1])
    copy_bandwidth(CPU, 64, pause=lambda: None)
    assert made[0].tolist() == [1] * 64


def test_a_copy_can_be_stopped():
    def stop():
        raise Cancelled

    with pytest.raises(Cancelled):
        copy_bandwidth(CPU, 64, pause=stop)


def test_the_block_is_large_but_leaves_room():
    assert copied_bytes(CPU, 64 << 30) == 256 << 20
    assert copied_bytes(torch.device("cuda", 0), 128 << 30) == 2 << 30
    assert copied_bytes(torch.device("cuda", 0), 8 << 30) == 1 << 30
    assert copied_bytes(CPU, 100) == 1 << 20


@pytest.mark.parametrize(
    ("spans", "length"),
    [
        ([], 0),
        ([(0, 2), (5, 6)], 3),
        ([(5, 6), (0, 2), (1, 3)], 4),  # out of order, and two at once
        ([(0, 10), (2, 3), (9, 12)], 12),
    ],
)
def test_time_at_work_is_counted_once(spans, length):
    assert covered(spans) == length


def event(kind, start, end, **more):
    return SimpleNamespace(
        device_type=SimpleNamespace(name=kind),
        time_range=SimpleNamespace(start=start, end=end),
        **more,
    )


def test_only_what_a_card_did_counts():
    seen = [
        event("CPU", 0, 50),
        event("CUDA", 10, 14),
        event("CUDA", 0, 90, is_user_annotation=True),
        event("CUDA", 20, 23, is_user_annotation=False),
    ]
    assert _device_spans(SimpleNamespace(events=lambda: seen)) == [(10, 14), (20, 23)]


def test_a_processor_launches_nothing():
    assert busy_seconds(tiny_llama(), pause=lambda: None) == (
        None,
        "there are no launches on cpu",
    )


class OnCard:
    """A model that says it is on a card, whose passes are counted."""

    device, rows = torch.device("cuda", 0), 64

    def __init__(self):
        self.read = []

    def open(self, capacity):
        return SimpleNamespace(
            read=lambda text, **how: self.read.append(len(text)), prepare=lambda rows, **how: None
        )


class Profiler:
    """As much of torch's profiler as is asked for."""

    def __init__(self, events):
        self.events = events

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


@pytest.fixture
def profiled(monkeypatch):
    """The answer for a card whose profiler saw these events."""

    def ask(events):
        model = OnCard()
        monkeypatch.setattr(device_limits, "clock_for", lambda device: FakeClock())
        monkeypatch.setattr(torch.profiler, "profile", lambda activities: Profiler(events))
        return busy_seconds(model, pause=lambda: None), model

    return ask


def test_seconds_at_work_are_those_of_one_pass(profiled):
    # Eight passes of two kernels: 300 and 200 microseconds.
    seen = [event("CUDA", 1000 * n + at, 1000 * n + at + us) for n in range(8)
            for at, us in ((0, 300), (400, 200))]  # fmt: skip
    (seconds, missing), model = profiled(lambda: seen)
    assert seconds == pytest.approx(500e-6)
    assert missing == ""
    assert model.read == [256] * (2 + 8)


@pytest.mark.parametrize(
    ("events", "said"),
    [(lambda: [], "saw no kernel"), (lambda: [][0], "failed (IndexError)")],
)
def test_a_profiler_that_sees_nothing_or_fails_is_told_of(profiled, events, said):
    (seconds, missing), _ = profiled(events)
    assert seconds is None
    assert said in missing
