"""Weights that lie in a mapped file: once read they stay resident, unless they are let go of."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

from torch import Tensor

_PAGE_OUT = 21
"""Linux's MADV_PAGEOUT (since 5.4): takes pages out of memory, and changes no value."""


def let_go(tensor: Tensor) -> None:
    """Lets a tensor's pages go that its file still has; without effect where that is not offered.

    A mapped file is resident as a whole until its last tensor is freed: a model that is converted
    weight by weight would otherwise end up in memory twice.
    """
    libc = _libc()
    if libc is None:
        return
    page = 4096
    start = -(-tensor.data_ptr() // page) * page
    length = (tensor.data_ptr() + tensor.nbytes - start) // page * page
    if length > 0:
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), _PAGE_OUT)


def return_free_memory() -> None:
    """Returns to the system what the allocator holds and no one uses, where it can be told to."""
    libc = _libc()
    if libc is not None and hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


@cache
def _libc() -> Any:
    return ctypes.CDLL(None) if sys.platform.startswith("linux") else None
