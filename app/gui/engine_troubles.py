"""The engine's troubles on the pages: each is told once, and taken away when it is overtaken."""

from __future__ import annotations

from app.gui.engine_link import EngineLink, Trouble
from app.gui.strips import Notice


class EngineTroubles:
    """Tells on the playground what went wrong, and of a training on its own page too."""

    def __init__(self, link: EngineLink, *, playground: Notice, train: Notice) -> None:
        self._link = link
        self._playground, self._train = playground, train
        self._shown: Trouble | None = None

    def show(self) -> None:
        """Shows the trouble that there is now, or that there is none any more."""
        trouble = self._link.trouble
        if trouble is self._shown:
            return
        self._shown = trouble
        if trouble is None:
            self._train.hide()
            self._playground.hide()
            return
        notices = (self._train, self._playground) if trouble.job == "teach" else (self._playground,)
        for notice in notices:
            notice.show_trouble(trouble.message, trouble.remedy)
