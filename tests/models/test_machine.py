"""What is asked of a card, without one."""

import torch

from app.models import machine
from app.models.machine import environment, make_current, on_device


def test_the_card_asked_for_is_the_current_one(monkeypatch):
    asked = []
    monkeypatch.setattr(torch.cuda, "set_device", asked.append)
    for name in ("cuda:1", "cuda", "cpu", "mps"):
        make_current(torch.device(name))
    assert asked == [1, 0]


def test_numbers_reach_a_device_as_they_are():
    ids = on_device([3, 1, 4], torch.long, torch.device("cpu"))
    assert ids.tolist() == [3, 1, 4]
    assert on_device([], torch.long, torch.device("cpu")).dtype == torch.long


def test_a_clock_that_cannot_be_read_is_unknown(monkeypatch):
    def refuse():
        raise NotImplementedError

    for answer in (lambda: None, refuse):
        monkeypatch.setattr(machine.psutil, "cpu_freq", answer)
        assert environment(torch.device("cpu")).clock_mhz is None


def test_a_processor_tells_its_highest_clock_or_its_present_one(monkeypatch):
    for clock, told in (((1800.0, 400.0, 3600.0), 3600.0), ((2400.0, 0.0, 0.0), 2400.0)):
        named = type("Clock", (), dict(zip(("current", "min", "max"), clock, strict=True)))
        monkeypatch.setattr(machine.psutil, "cpu_freq", lambda named=named: named)
        assert environment(torch.device("cpu")).clock_mhz == told
