"""How many tokens the prompt is, asked for once typing pauses."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer

from app.engine.protocol import TokenCount
from app.gui.engine_link import EngineLink
from app.gui.prompt_panel import PromptPanel

PAUSE_MS = 250
"""How long typing pauses before its tokens are counted."""


class PromptCount:
    """Asks the engine, and shows the answer to the latest question only."""

    def __init__(self, prompt: PromptPanel, link: EngineLink, parent: QObject) -> None:
        self._prompt, self._link = prompt, link
        self._question = 0
        self.clock = QTimer(parent)
        self.clock.setSingleShot(True)
        self.clock.timeout.connect(self.ask)
        prompt.changed.connect(self._wait)

    def ask(self) -> None:
        """Asks how many tokens the prompt is."""
        prompt = self._prompt
        self._question = self._link.count(
            prompt.prompt.text(), system=prompt.system_text, raw=prompt.raw.isChecked()
        )

    def take(self, answer: TokenCount) -> None:
        """Shows an answer, unless it is to an earlier question."""
        if answer.question == self._question:
            self._prompt.show_count(answer.tokens)

    def stop(self) -> None:
        """Asks no more until the prompt changes."""
        self.clock.stop()

    def _wait(self) -> None:
        """Waits for a pause; until then the number is not known."""
        self._prompt.show_count(None)
        self.clock.start(PAUSE_MS)
