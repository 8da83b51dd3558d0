"""Calls functions in processes of their own, each forked from one that has imported the libraries.

So memory can be measured that nothing before has touched, and importing them, which takes seconds,
is done once for all of these tests.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

_LIBRARIES = ["app.studies.workbench"]
"""The module that imports all of them."""


def called(function: Callable[..., Any], *given: Any) -> Any:
    """What a module's function returns, or raises, in a new process; Linux and macOS have this."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(_LIBRARIES)
    with ProcessPoolExecutor(1, mp_context=forks) as pool:
        return pool.submit(_call, dict(os.environ), function, given).result()


def _call(environment: dict[str, str], function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    os.environ.clear()  # what it was when the first process was forked is of another test
    os.environ.update(environment)
    return function(*given)
