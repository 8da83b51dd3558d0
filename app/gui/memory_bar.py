"""What a run takes of the memory that is free, as one bar a device, each part named below it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.gui.colours import Colours
from app.gui.plain import label, scaled_font, tip
from app.library.fitting import Fit, numbered
from app.library.memory import PARTS, Held
from app.run.sizes import bytes_in_words

_HEIGHT = 10
_PATTERNS = {
    "target": Qt.BrushStyle.SolidPattern,
    "draft": Qt.BrushStyle.BDiagPattern,
    "caches": Qt.BrushStyle.Dense4Pattern,
    "working": Qt.BrushStyle.HorPattern,
}
"""The second cue of each part, beside its colour."""


class MemoryBar(QWidget):
    """One bar, a word for each part, and a sentence where memory is short."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bar = _Bar(colours)
        self.sentence = label(wrap=True)
        scaled_font(self.sentence, 0.88)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 6, 12, 4)
        column.setSpacing(3)
        column.addWidget(self._bar)
        grid = QGridLayout()
        grid.setHorizontalSpacing(14)
        grid.setVerticalSpacing(0)
        self._words: dict[str, QLabel] = {}
        self._swatches: list[_Swatch] = []
        for place, part in enumerate(PARTS):
            swatch, words = _Swatch(part.name, colours), label(tone="muted")
            scaled_font(words, 0.85)
            words.setToolTip(tip(part.meaning))
            swatch.setToolTip(tip(part.meaning))
            row = QHBoxLayout()
            row.setSpacing(5)
            row.addWidget(swatch)
            row.addWidget(words)
            row.addStretch()
            grid.addLayout(row, place // 2, place % 2)
            self._words[part.name] = words
            self._swatches.append(swatch)
        column.addLayout(grid)
        column.addWidget(self.sentence)
        self.hide()

    def show_fit(self, fit: Fit | None) -> None:
        """Shows how a run stands to what is free; None hides the bar."""
        self.setVisible(fit is not None)
        if fit is None:
            return
        held, free = _fullest(fit)
        self._bar.show_held(held, free)
        for part in PARTS:
            self._words[part.name].setText(
                f"{part.title} {bytes_in_words(getattr(held, part.name))}"
            )
        self.sentence.setText(fit.sentence)
        self.sentence.setProperty("tone", "" if fit.verdict == "does not fit" else "muted")
        self.sentence.style().unpolish(self.sentence)
        self.sentence.style().polish(self.sentence)
        self.setAccessibleName(f"Memory. {fit.sentence}")

    def set_colours(self, colours: Colours) -> None:
        """Takes on another scheme."""
        drawn: list[_Bar | _Swatch] = [self._bar, *self._swatches]
        for painted in drawn:
            painted.colours = colours
            painted.update()


class _Bar(QWidget):
    """Segments side by side; what is left free stays empty."""

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self.colours = colours
        self._held, self._free = Held(""), 1
        self.setFixedHeight(_HEIGHT)

    def show_held(self, held: Held, free: int) -> None:
        """Draws these parts of what is free."""
        self._held, self._free = held, free
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draws the bar: as long as what is free, or as what is held where that is more."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self.colours.field))
        whole = max(self._free, self._held.total, 1)
        start = 0.0
        for part in PARTS:
            width = self.width() * getattr(self._held, part.name) / whole
            _fill(painter, QRectF(start, 0, width, self.height()), part.name, self.colours)
            start += width
        if self._held.total > self._free:
            end = self.width() * self._free / whole
            painter.fillRect(QRectF(end - 1, 0, 2, self.height()), QColor(self.colours.text))
        painter.setPen(QColor(self.colours.border))
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))


class _Swatch(QWidget):
    """A small square that looks as its part of the bar does."""

    def __init__(self, name: str, colours: Colours) -> None:
        super().__init__()
        self.colours = colours
        self._name = name
        self.setFixedSize(_HEIGHT, _HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draws it."""
        _fill(QPainter(self), QRectF(self.rect()), self._name, self.colours)


def _fill(painter: QPainter, place: QRectF, name: str, colours: Colours) -> None:
    """A tinted ground under the part's own pattern."""
    colour = QColor(_colour(name, colours))
    ground = QColor(colour)
    ground.setAlphaF(0.25)
    painter.fillRect(place, ground)
    painter.fillRect(place, QBrush(colour, _PATTERNS[name]))


def _colour(name: str, colours: Colours) -> str:
    return {
        "target": colours.accent,
        "draft": colours.speculative,
        "caches": colours.baseline,
        "working": colours.muted,
    }[name]


def _fullest(fit: Fit) -> tuple[Held, int]:
    """The device with the least room to spare, and what is free on it."""
    free = {device.name: device.free_bytes for device in fit.devices}
    found = [(held, free.get(numbered(held.device), held.total)) for held in fit.held]
    return max(found, key=lambda one: one[0].total / max(one[1], 1))
