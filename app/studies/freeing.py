"""What work has taken is given back, whatever stops it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.models.exhausted import memory_guard
from app.models.warm import collect
from app.run.problems import Cancelled, Problem, release_frames


@contextmanager
def freeing(what: str) -> Iterator[None]:
    """Exhausted memory becomes a Problem; whatever stops the work, what it took is given back."""
    try:
        with memory_guard(what):
            yield
    except (Cancelled, Problem) as stop:
        release_frames(stop)
        collect()
        raise
