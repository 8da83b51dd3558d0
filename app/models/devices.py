"""What memory is free now on each device that models can be loaded onto."""

from __future__ import annotations

import psutil
import torch

from app.models.card import card_memory
from app.run.preparation import DeviceMemory


def device_memory() -> tuple[DeviceMemory, ...]:
    """Every device, the one that is taken unless another is asked for first; the CPU last."""
    return (*_cards(), *_apple(), _processor())


def _cards() -> list[DeviceMemory]:
    """Each graphics card, by its driver; a card that does not answer is left out."""
    found = []
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        try:
            free, total = card_memory(number) or torch.cuda.mem_get_info(number)
        except RuntimeError:  # the memory for a context of ours may be lacking already
            continue
        # What this process holds unused is free for it, though the driver does not say so.
        kept = torch.cuda.memory_reserved(number) - torch.cuda.memory_allocated(number)
        title = torch.cuda.get_device_name(number)
        found.append(DeviceMemory(f"cuda:{number}", title, free + kept, total))
    return found


def _apple() -> list[DeviceMemory]:
    """Apple's GPU, which shares the machine's memory up to what the system recommends."""
    if not torch.backends.mps.is_available():
        return []
    total = int(torch.mps.recommended_max_memory())
    unused = total - int(torch.mps.driver_allocated_memory())
    free = min(unused, int(psutil.virtual_memory().available))
    return [DeviceMemory("mps", "Apple GPU", max(free, 0), total)]


def _processor() -> DeviceMemory:
    """The machine's own memory: what programs can get without pushing others out."""
    memory = psutil.virtual_memory()
    return DeviceMemory("cpu", "CPU", int(memory.available), int(memory.total))
