"""What is asked of a card, without one."""

import torch

from app.models.machine import make_current, on_device


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
