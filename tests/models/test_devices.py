"""What is free on each device, as its driver or the system tells it."""

from types import SimpleNamespace

import psutil
import torch

from app.models import card
from app.models.devices import device_memory


def test_the_cpu_has_what_programs_can_still_get():
    cpu = device_memory()[-1]
    assert (cpu.name, cpu.total_bytes) == ("cpu", psutil.virtual_memory().total)
    assert 0 < cpu.free_bytes <= cpu.total_bytes


def test_each_card_is_asked_and_one_that_does_not_answer_is_left_out(monkeypatch):
    def told(number):
        if number == 1:
            raise RuntimeError("CUDA error: out of memory")
        return (7_000 + number, 16_000)

    answers = {
        "is_available": lambda: True,
        "device_count": lambda: 3,
        "mem_get_info": told,
        "memory_reserved": lambda number: 500,
        "memory_allocated": lambda number: 200,
        "get_device_name": lambda number: f"Card {number}",
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    monkeypatch.setattr(card, "_handle", lambda number: None)
    cards = [one for one in device_memory() if one.name.startswith("cuda")]
    assert [(one.name, one.title) for one in cards] == [("cuda:0", "Card 0"), ("cuda:2", "Card 2")]
    # What this process holds is free for what it loads next, models that make room included.
    assert [(one.free_bytes, one.ours_bytes) for one in cards] == [(7_500, 200), (7_502, 200)]


class OfTwoCards:
    """NVML, which knows the memory of the first card alone."""

    NVMLError = RuntimeError

    def nvmlDeviceGetMemoryInfo(self, number):
        if number == 1:
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(free=7_000, total=16_000)


def test_a_card_is_asked_through_torch_only_where_nvml_does_not_tell(monkeypatch):
    # torch opens a context on every card that it asks, which takes some hundred MB of each.
    asked = []

    def told(number):
        asked.append(number)
        return (5_000, 24_000)

    answers = {
        "is_available": lambda: True,
        "device_count": lambda: 2,
        "mem_get_info": told,
        "memory_reserved": lambda number: 500,
        "memory_allocated": lambda number: 200,
        "get_device_name": lambda number: f"Card {number}",
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    monkeypatch.setattr(card, "_handle", lambda number: (OfTwoCards(), number))
    cards = [one for one in device_memory() if one.name.startswith("cuda")]
    assert [(one.free_bytes, one.total_bytes) for one in cards] == [
        (7_500, 16_000),
        (5_500, 24_000),
    ]
    assert asked == [1]


def test_apples_gpu_has_no_more_than_the_machine(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 1 << 60)
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 5)
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: 3)
    apple = next(one for one in device_memory() if one.name == "mps")
    assert apple.total_bytes == 1 << 60
    assert apple.free_bytes <= psutil.virtual_memory().total
    assert apple.ours_bytes == 3


def test_weights_that_are_loaded_on_the_cpu_make_room():
    free, loaded = device_memory()[-1], device_memory(held=64 << 20)[-1]
    assert loaded.ours_bytes == 64 << 20
    assert loaded.free_bytes - free.free_bytes > 32 << 20
    assert device_memory(held=1 << 60)[-1].free_bytes == free.total_bytes
