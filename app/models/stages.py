"""Tells how far a load has come, and is where it can be stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from app.models.hugging_face import set_tqdm_hook
from app.models.packed_linear import Advance
from app.run.events import Progress

Report = Callable[[Progress], None]
Pause = Callable[[], None]
Thing = TypeVar("Thing")

_EVERY_S = 0.1
"""Seconds between two words about one stage."""


class Stages:
    """The stages of loading one model; `pause` is called at every step and may raise Cancelled."""

    def __init__(self, report: Report, pause: Pause) -> None:
        self._report = report
        self._pause = pause

    def begin(self, stage: str) -> None:
        """A stage whose length is not known."""
        self._pause()
        self._report(Progress(stage))

    def ask(self) -> None:
        """A step that is not told of."""
        self._pause()

    def counted(self, stage: str, total: int, unit: str) -> Advance:
        """A stage of so many things; what it returns is to be called before each is done."""
        done, told = 0, 0.0

        def advance(things: int) -> None:
            nonlocal done, told
            self._pause()
            if time.monotonic() - told >= _EVERY_S:
                self._report(Progress(stage, done, total, unit))
                told = time.monotonic()
            done += things

        return advance

    def each(self, things: Collection[Thing], stage: str, unit: str) -> Iterator[Thing]:
        """The things, one after the other, as a stage."""
        advance = self.counted(stage, len(things), unit)
        for thing in things:
            advance(1)
            yield thing

    @contextmanager
    def reading(self, stage: str) -> Iterator[None]:
        """While it lasts, a loop of transformers that would draw a bar over tensors is a stage.

        That library reads in threads ahead of the loop; they end with it, whatever ends it.
        """

        def watched(bar: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
            return self.each(given[0], stage, "tensors") if given else bar(**named)

        before = set_tqdm_hook(watched)
        try:
            yield
        finally:
            set_tqdm_hook(before)


def unseen() -> Stages:
    """Stages that no one is told of, and no one stops."""
    return Stages(lambda progress: None, lambda: None)
