"""The verdict row: whether speculation pays, in a few numbers with their definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QVBoxLayout, QWidget

from app.gui.elided import Elided
from app.gui.plain import label, scaled_font, set_tone, tip
from app.gui.verdict_line import VerdictLine
from app.run.figures import FIGURES, LENIENCY, NOTHING, Figure, agreement
from app.run.flagged import cautions_on
from app.run.metrics import Spread, same_text
from app.run.record import RunRecord


@dataclass(frozen=True)
class Shown:
    """What a tile shows of a record."""

    number: str
    addition: str = ""
    """Put behind the caption."""
    tone: str | None = None
    """None: the tile's own."""
    detail: str = ""
    """A sentence more, on hover."""


@dataclass(frozen=True)
class TileSpec:
    """One number of the row."""

    name: str
    caption: str
    tone: str
    definition: str
    value: Callable[[RunRecord], Shown]


class Tile(QWidget):
    """A number above its caption; its definition on hover."""

    def __init__(self, spec: TileSpec, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spec = spec
        self.number = label("–", tone=spec.tone)
        scaled_font(self.number, 1.62, bold=True)
        self.caption = label(spec.caption, tone="muted")
        scaled_font(self.caption, 0.88)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addWidget(self.number)
        column.addWidget(self.caption)
        self.show_record(None)

    def show_record(self, record: RunRecord | None) -> None:
        """Shows this number of a record."""
        shown = self._spec.value(record) if record else Shown("–")
        tone = "muted" if shown.number in ("–", NOTHING) else shown.tone or self._spec.tone
        caption = self._spec.caption + shown.addition
        if self.number.text() != shown.number or self.number.property("tone") != tone:
            set_tone(self.number, tone)
            self.number.setText(shown.number)
        self.caption.setText(caption)
        told = (self._spec.caption, self._spec.definition, shown.detail)
        self.setToolTip(tip("\n".join(filter(None, told))))
        self.setAccessibleName(f"{caption}: {shown.number}")
        self.setAccessibleDescription(self._spec.definition)


class Verdict(QFrame):
    """All tiles in a row."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("panel")
        self.setAccessibleName("Verdict")
        self.tiles = {spec.name: Tile(spec) for spec in TILES}
        self.line = VerdictLine()
        self.origin = Elided(tone="muted")
        """What the run was made with, once the form asks for something else."""
        scaled_font(self.origin, 0.88)
        self.origin.hide()
        self._columns = 0
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 14, 8)
        column.setSpacing(6)
        self._grid = QGridLayout()
        column.addLayout(self._grid)
        column.addWidget(self.line)
        column.addWidget(self.origin)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(8)
        self._arrange(len(TILES))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Takes a second row where one has no room for all numbers."""
        super().resizeEvent(event)
        self._fit()

    def show_record(self, record: RunRecord | None) -> None:
        """Shows the numbers of a record as far as it has come."""
        for tile in self.tiles.values():
            tile.show_record(record)
        self.line.show_record(record)
        self._fit()

    def show_origin(self, sentence: str) -> None:
        """Says what the run was made with; nothing takes no room."""
        self.origin.setText(sentence)
        self.origin.setVisible(bool(sentence))

    def _fit(self) -> None:
        needed = sum(tile.sizeHint().width() for tile in self.tiles.values())
        needed += 16 * (len(self.tiles) - 1) + 28
        self._arrange(len(TILES) if needed <= self.width() else -(-len(TILES) // 2))

    def _arrange(self, columns: int) -> None:
        """Puts the tiles into so many columns."""
        if columns == self._columns:
            return
        self._columns = columns
        for place, tile in enumerate(self.tiles.values()):
            self._grid.addWidget(tile, place // columns, place % columns)
        for column in range(len(self.tiles)):
            self._grid.setColumnStretch(column, int(column < columns - 1))

    def minimumSizeHint(self) -> QSize:
        """Wide enough for two rows."""
        widest = max(tile.sizeHint().width() for tile in self.tiles.values())
        columns = -(-len(TILES) // 2)
        return QSize(columns * widest // 2, super().minimumSizeHint().height())


def figure_tile(
    name: str, caption: str, tone: str = "", *, beside: tuple[str, ...] = ()
) -> TileSpec:
    """A tile that shows a figure of the shared table; its unit stands in the caption. Other figures
    may stand `beside` its definition.
    """
    figure = FIGURES[name]

    def value(record: RunRecord) -> Shown:
        found = figure.value(record)
        if found is None:
            return Shown(NOTHING)
        number = figure.written(found)
        if figure.unit not in ("×", "%"):
            number = number.removesuffix(figure.unit).strip()
        spread = figure.spread(record) if figure.spread else None
        told = _more(record, name, beside) if record.outcome != "running" else []
        return Shown(number, range_words(figure, spread) if spread else "", detail="\n".join(told))

    return TileSpec(name, caption, tone, figure.definition, value)


def _more(record: RunRecord, name: str, beside: tuple[str, ...]) -> list[str]:
    """Other figures that belong to this one, and what it is to be read with in mind."""
    others = [FIGURES[other] for other in beside if FIGURES[other].text(record) != NOTHING]
    told = [f"{figure.label}: {figure.text(record)}" for figure in others]
    return told + [flag.message for flag in cautions_on(record, name)]


def range_words(figure: Figure, spread: Spread) -> str:
    """How far the pairs behind a median lie apart."""
    if spread.single:
        return ", one pair"
    low, high = figure.written(spread.low), figure.written(spread.high)
    return f", {low}–{high} in {len(spread.values)} pairs"


def _both_first_tokens(record: RunRecord) -> Shown:
    """The time to the first token of either lane."""
    figures = [FIGURES[f"{lane}_time_to_first_token_s"] for lane in ("speculative", "baseline")]
    known = [value for value in (figure.value(record) for figure in figures) if value is not None]
    return Shown(" / ".join(short_seconds(value) for value in known) or NOTHING)


def short_seconds(seconds: float) -> str:
    """Seconds as a person reads them."""
    if seconds >= 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def _same_text(record: RunRecord) -> Shown:
    """Whether both lanes wrote the same, or where they first differ."""
    found = same_text(record)
    sentence = agreement(record)
    if found is None or not found.compared:
        return Shown(NOTHING, detail=sentence)
    if found.first_difference is None:
        return Shown("Same", f", {found.compared} tokens", "good", sentence)
    where = f" from token {found.first_difference + 1}"
    if record.divergence is not None and record.divergence.tie:
        return Shown("Tie", f", differs{where}", None, sentence)
    return Shown("Differs", where, "trouble", sentence)


TILES: tuple[TileSpec, ...] = (
    figure_tile(
        "decode_speedup", "decode speed-up", "accent", beside=("request_speedup", "verify_cost")
    ),
    figure_tile("acceptance_rate", "acceptance rate", beside=("conditional_acceptance", LENIENCY)),
    figure_tile("tokens_per_loop", "tokens per loop"),
    figure_tile("speculative_decode_tokens_per_second", "tokens/s speculative", "speculative"),
    figure_tile("baseline_decode_tokens_per_second", "tokens/s baseline", "baseline"),
    TileSpec(
        "time_to_first_token",
        "to first token, both lanes",
        "",
        FIGURES["speculative_time_to_first_token_s"].definition + " Speculative / baseline.",
        _both_first_tokens,
    ),
    TileSpec(
        "same_text",
        "text",
        "",
        "Whether both lanes wrote the same tokens. Only at temperature 0 do they have to; with a "
        "draw both follow the same law.",
        _same_text,
    ),
)
"""The row, from left to right."""
