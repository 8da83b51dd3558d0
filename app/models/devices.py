"""What memory is free now on each device that models can be loaded onto.

What models of ours hold counts as free: a run lets go of what it does not need before it loads.
"""

from __future__ import annotations

import psutil
import torch

from app.models.card import card_memory
from app.run.preparation import DeviceMemory


def device_memory(held: int = 0) -> tuple[DeviceMemory, ...]:
    """Every device, the one that is taken unless another is asked for first; the CPU last.

    `held`: bytes of the weights that are loaded on the CPU, where no one else counts them.
    """
    return (*_cards(), *_apple(), _processor(held))


def _cards() -> list[DeviceMemory]:
    """Each graphics card, by its driver; a card that does not answer is left out."""
    found = []
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        try:
            free, total = card_memory(number) or torch.cuda.mem_get_info(number)
        except RuntimeError:  # the memory for a context of ours may be lacking already
            continue
        # What this process holds is free for it, though the driver does not say so.
        kept, ours = torch.cuda.memory_reserved(number), torch.cuda.memory_allocated(number)
        title = torch.cuda.get_device_name(number)
        found.append(DeviceMemory(f"cuda:{number}", title, free + kept, total, ours))
    return found


def _apple() -> list[DeviceMemory]:
    """Apple's GPU, which shares the machine's memory up to what the system recommends."""
    if not torch.backends.mps.is_available():
        return []
    total = int(torch.mps.recommended_max_memory())
    taken = int(torch.mps.driver_allocated_memory())
    free = min(total, int(psutil.virtual_memory().available) + taken)
    return [
        DeviceMemory("mps", "Apple GPU", free, total, int(torch.mps.current_allocated_memory()))
    ]


def _processor(held: int) -> DeviceMemory:
    """The machine's own memory: what programs can get without pushing others out."""
    memory = psutil.virtual_memory()
    free = min(int(memory.available) + held, int(memory.total))
    return DeviceMemory("cpu", "CPU", free, int(memory.total), held)
