"""What a card says of itself: through a driver's library that a test plays, and without one."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest
import torch

from app.models import card
from app.models.card import card_limits, card_state

CARD = torch.device("cuda:0")


class NVMLError(Exception):
    pass


@pytest.fixture
def torch_card(monkeypatch):
    """A card as torch alone knows it: 10 GB, of which 3 are free and 4 are ours."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (3 * 10**9, 10**10))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 4 * 10**9)
    named = SimpleNamespace(uuid="abc")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: named)
    card._handle.cache_clear()
    yield
    card._handle.cache_clear()


@pytest.fixture
def nvml(monkeypatch, torch_card):
    """The driver's library; a test changes what it answers."""

    def refuse(*arguments):
        raise NVMLError

    library = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlSystemGetDriverVersion=lambda: "580.65",
        nvmlDeviceGetMaxClockInfo=lambda handle, kind: 1980,
        nvmlDeviceGetEnforcedPowerLimit=lambda handle: 350_000,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x20 | 0x01,
        nvmlDeviceGetProcessUtilization=refuse,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return library


def test_a_driver_tells_its_version_clock_and_power(nvml):
    assert card_limits(CARD) == ("580.65", 1980.0, 350.0)


def test_only_obstacles_count_as_throttling(nvml):
    # 0x01 says that the card idles, which is no obstacle.
    assert card_state(CARD).throttled_by == ("its temperature",)


@pytest.mark.parametrize(
    ("shares", "used"),
    [
        ({"self": 60, 1: 35, 2: 5}, 0.35),
        ({"self": 60}, 0.0),
        ({1: 35}, None),  # our own process is not named, so the numbers are not of our kind
    ],
)
def test_what_others_use_is_told_only_where_we_are_told_of_too(nvml, shares, used):
    nvml.nvmlDeviceGetProcessUtilization = lambda handle, since: [
        SimpleNamespace(pid=os.getpid() if who == "self" else who, smUtil=share)
        for who, share in shares.items()
    ]
    assert card_state(CARD).used_elsewhere == used


def test_what_a_card_refuses_to_tell_is_unknown(nvml):
    def refuse(*arguments):
        raise NVMLError

    del nvml.nvmlDeviceGetMaxClockInfo
    nvml.nvmlDeviceGetEnforcedPowerLimit = refuse
    assert card_limits(CARD) == ("580.65", None, None)
    assert card_state(CARD).used_elsewhere is None


def test_without_the_library_torch_tells_what_others_hold(torch_card, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    state = card_state(CARD)
    assert (state.held_elsewhere, state.throttled_by, state.used_elsewhere) == (3 * 10**9, (), None)
    assert card_limits(CARD)[1:] == (None, None)


def test_a_driver_that_does_not_answer_is_no_driver(nvml):
    def refuse():
        raise NVMLError

    nvml.nvmlInit = refuse
    assert card_state(CARD).throttled_by == ()


def test_a_processor_has_no_card():
    assert card_limits(torch.device("cpu")) == (None, None, None)
