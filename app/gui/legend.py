"""What the colours of tokens mean, in a row, each word written as its tokens are."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.gui.colours import Colours
from app.gui.plain import label, scaled_font, tip
from app.gui.token_formats import dress_label
from app.run.events import Status

MEANINGS: dict[Status, str] = {
    "accepted": "Guessed ahead, tested by the target, kept.",
    "corrected": "The target's own token, in the place of the first guess it rejected.",
    "bonus": "The target's own token behind a draft that was kept whole.",
    "plain": "Written by the target alone: the prompt pass, or a loop without a guess.",
    "rejected": "Tested and thrown away. Shown in its place with R.",
    "ignored": "Guessed behind a rejection or a stop, and never decided. Shown with R.",
}
"""The words of the legend, in its order."""


class Legend(QWidget):
    """The legend; guesses that were thrown away join it while they are shown."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._labels: dict[Status, QLabel] = {}
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        for status, meaning in MEANINGS.items():
            made = label(f" {status} ")
            made.setToolTip(tip(meaning))
            scaled_font(made, 0.92)
            self._labels[status] = made
            row.addWidget(made)
        self.set_thrown(False)
        self.set_colours(colours)

    def set_thrown(self, shown: bool) -> None:
        """Shows or hides the words for guesses that were thrown away."""
        for status in ("rejected", "ignored"):
            self._labels[status].setVisible(shown)

    def set_colours(self, colours: Colours) -> None:
        """Takes on another scheme."""
        for status, made in self._labels.items():
            dress_label(made, status, colours)
