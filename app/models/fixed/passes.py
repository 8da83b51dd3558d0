"""How the sessions of a model compute their passes: eagerly, in fixed shapes, or as graphs."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from app.models.fixed.reader import FixedReader
from app.models.fixed.recorder import Recorder
from app.models.fixed.room import Rooms
from app.run.settings import PassKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.models.causal_model import CausalModel
    from app.models.language_model import LanguageModel

Mode = Literal["eager", "fixed", "graphs"]

_SAID: dict[Mode, str] = {"eager": "eager", "fixed": "fixed shapes", "graphs": "captured graphs"}


class _Way(NamedTuple):
    mode: Mode
    reason: str


class Passes:
    """The way that a model's passes take, until something forbids it."""

    def __init__(
        self,
        mode: Mode = "eager",
        reason: str = "",
        *,
        recorder: Callable[[], Recorder] | None = None,
        asked: PassKind | None = None,
    ) -> None:
        """`reason` says why passes are eager where that is worth telling. `recorder` makes what
        records the graphs of one room. `asked` is the wish that this way was chosen for; None where
        it has to be chosen again.
        """
        self.asked = asked
        self._chosen = _Way(mode, reason)
        self._for_now: _Way | None = None
        """What takes its place until something is kept anew."""
        self._notes: list[str] = []
        self.rooms = Rooms()
        self._beside: weakref.WeakSet[Rooms] = weakref.WeakSet()
        self._recorder = recorder

    @property
    def mode(self) -> Mode:
        """How passes are computed now."""
        return (self._for_now or self._chosen).mode

    @property
    def reason(self) -> str:
        """Why they are eager, where that is worth telling."""
        return (self._for_now or self._chosen).reason

    @property
    def said(self) -> str:
        """The way, as it is named on screen and in reports."""
        way = f"{_SAID[self.mode]}: {self.reason}" if self.reason else _SAID[self.mode]
        return way if self.mode == "eager" else "; ".join([way, *self._notes])

    @property
    def for_now(self) -> bool:
        """Whether passes are eager only until something is kept anew."""
        return self._for_now is not None

    @property
    def undecided(self) -> bool:
        """Whether they are eager only because something was lacking when they were chosen."""
        return self.asked is None and bool(self._chosen.reason)

    def note(self, what: str) -> None:
        """Has it said what is computed in another way, and why, until something is kept anew."""
        if what not in self._notes:
            self._notes.append(what)

    def reader(
        self, model: LanguageModel, layers: tuple[int, ...] | None = None
    ) -> CausalModel[Any]:
        """What a new session of the model reads with, which keeps the features of these layers."""
        return model if self.mode == "eager" else FixedReader(model, self, layers)

    def new_recorder(self) -> Recorder | None:
        """What records the passes of a new room; None where they are computed each time."""
        return self._recorder() if self.mode == "graphs" and self._recorder else None

    def beside(self, rooms: Rooms) -> None:
        """Has rooms of what works beside the model's sessions go with its own."""
        self._beside.add(rooms)

    def fall_back(self, reason: str, *, for_now: bool = False) -> None:
        """From now on all passes are eager, also those of sessions that are open; `for_now` until
        something is kept anew. What is recorded in rooms that no one is in is let go of at once, in
        the others when they are left.
        """
        for rooms in (self.rooms, *self._beside):
            rooms.clear()
        way = _Way("eager", reason)
        if for_now:
            self._for_now = way
        else:
            self._chosen = way

    @contextmanager
    def kept(self) -> Iterator[None]:
        """While it lasts, what is recorded for a session serves those that are opened after it.
        What was lacking before is tried again, now and when it ends.
        """
        self._try_again()
        try:
            with self.rooms.kept():
                yield
        finally:
            self._try_again()

    def _try_again(self) -> None:
        self._notes.clear()
        self._for_now = None
