"""The row of numbers over a learning curve, and what came of a training in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.gui.charts.learning import DEPTHS, short_count
from app.gui.plain import label, scaled_font, set_tone, tip
from app.run.teaching import CurvePoint, Taught

_KEPT = (
    "On held-out texts: of the guesses at this depth whose forerunners were kept, the share that "
    "the target would keep too."
)
_TILES = (
    *((f"kept_{depth}", f"kept at depth {depth}", _KEPT) for depth in range(1, DEPTHS + 1)),
    (
        "kept",
        f"guesses kept of {DEPTHS}",
        "How many guesses of a draft of this length are kept, on average. What a loop writes is "
        "one token more.",
    ),
    ("tokens", "tokens learned from", "Tokens of the lessons so far; those of each visit count."),
    ("minutes", "min of lessons", "Time spent on lessons so far; the writing comes on top."),
    (
        "coverage",
        "of tokens can be guessed",
        "The share of the tokens that the target wrote that is in the draft vocabulary. It is "
        "known when the training has ended.",
    ),
)
"""The numbers: name, caption, definition."""

NOTHING = "–"

INVITATION = (
    "Numbers and curve come with the first lesson, once the target has written for its part."
)

USE = "Adds an entry to your models.yaml, and chooses its pair in the playground."


class TrainTiles(QFrame):
    """The numbers of the latest judgement or of the best one, a sentence, and Use it now."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("panel")
        self.setAccessibleName("Outcome of the training")
        self.tiles = {name: _Tile(caption, meaning) for name, caption, meaning in _TILES}
        self.sentence = label(tone="muted", wrap=True)
        self.use = QPushButton("Use it now")
        self.use.setObjectName("run")
        self.use.setToolTip(tip(USE))
        self.use.setAccessibleDescription(USE)
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        for place, tile in enumerate(self.tiles.values()):
            grid.addWidget(tile, 0, place)
            grid.setColumnStretch(place, 1)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self.sentence, 1)
        row.addWidget(self.use)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 14, 8)
        column.setSpacing(6)
        column.addLayout(grid)
        column.addLayout(row)
        self.show_points(())

    def show_points(self, points: Sequence[CurvePoint]) -> None:
        """Shows the latest judgement."""
        point = points[-1] if points else None
        self._show_point(point)
        self.tiles["coverage"].show_number(NOTHING)
        self.sentence.setText(point_words(point) if point else INVITATION)

    def show_taught(self, taught: Taught) -> None:
        """Shows what came of a training: the best judgement, as that head was kept."""
        self._show_point(taught.best)
        self.tiles["coverage"].show_number(f"{100 * taught.coverage:.1f} %")
        self.sentence.setText(taught_words(taught))

    def show_trained(self, sentence: str) -> None:
        """Says how the head in the folder was trained, if there is one."""
        self.sentence.setText(sentence or INVITATION)

    def _show_point(self, point: CurvePoint | None) -> None:
        shown = {
            f"kept_{depth}": f"{100 * share:.0f} %"
            for depth, share in enumerate(point.acceptance if point else (), start=1)
        }
        if point:
            shown |= {
                "kept": f"{point.kept:.2f}",
                "tokens": short_count(point.tokens),
                "minutes": f"{point.seconds / 60:.1f}",
            }
        for name, tile in self.tiles.items():
            tile.show_number(shown.get(name, NOTHING))


class _Tile(QWidget):
    """A number above its caption; its definition on hover."""

    def __init__(self, caption: str, meaning: str) -> None:
        super().__init__()
        self._caption = caption
        self.number = label()
        scaled_font(self.number, 1.4, bold=True)
        below = label(caption, tone="muted", wrap=True)
        scaled_font(below, 0.88)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addWidget(self.number)
        column.addWidget(below)
        column.addStretch()
        self.setToolTip(tip(f"{caption}\n{meaning}"))
        self.setAccessibleDescription(meaning)
        self.show_number(NOTHING)

    def show_number(self, number: str) -> None:
        """Shows another number."""
        if number != self.number.text():
            set_tone(self.number, "muted" if number == NOTHING else "")
            self.number.setText(number)
            self.setAccessibleName(f"{self._caption}: {number}")


def point_words(point: CurvePoint) -> str:
    """A judgement in a sentence."""
    shares = " / ".join(f"{100 * share:.1f}" for share in point.acceptance) + " %"
    loss = " / ".join(f"{one:.2f}" for one in point.loss)
    if not point.tokens:
        return f"Before the first lesson {shares} of guesses are kept, by depth."
    told = f"After {point.tokens:,} tokens, {shares} of guesses are kept, by depth"
    return f"{told}; loss {loss}." if loss else f"{told}."


def taught_words(taught: Taught) -> str:
    """What came of a training in some sentences."""
    best = taught.best
    told = (
        f"Done. The target wrote {taught.written:,} tokens in {taught.writing_seconds / 60:.1f} "
        f"min. {point_words(best)} That head is kept in {taught.head}."
    )
    return f"{told} It ended early, as it got no better." if taught.stopped_early else told
