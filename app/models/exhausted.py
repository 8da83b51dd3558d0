"""The one place that knows how exhausted memory is told, on every kind of device."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from app.models.machine import out_of_memory
from app.run.problems import release_frames

_SAID = (
    "out of memory",  # CUDA's own errors, ROCm, MPS
    "can't allocate memory",  # torch's allocator on a CPU
    "not enough memory",  # the same, on Windows
    "alloc_failed",  # cuBLAS and its kin
    "bad_alloc",  # C++ libraries
    "cannot allocate memory",  # the system
)
"""How libraries say it that have no exception of its own for it; in lower case."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception tells that a device's memory, or the machine's, is exhausted."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(said in str(error).lower() for said in _SAID)


@contextmanager
def memory_guard(what: str) -> Iterator[None]:
    """Exhausted memory inside becomes a Problem that names `what` was being done.

    Whatever the failed calls held is let go of at once.
    """
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        release_frames(error)
        raise out_of_memory(what) from None
