"""How the benchmarks take time: whole on the device, and with how sure a median is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch


def seconds_of(work: Callable[[], Any], device: torch.device) -> float:
    """What a piece of work takes, begun on an idle device and ended there."""
    wait(device)
    start = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - start


def wait(device: torch.device) -> None:
    """Until all that a card was given is done; other devices are never behind."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def median_interval(values: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median by order statistics (the sign test's): no law is assumed."""
    from scipy.stats import binom  # not at the top: a machine lent for its card may lack it

    ordered = sorted(values)
    rank = int(binom.ppf(0.025, len(ordered), 0.5))
    return ordered[max(rank - 1, 0)], ordered[min(len(ordered) - rank, len(ordered) - 1)]
