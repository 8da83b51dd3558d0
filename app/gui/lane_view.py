"""One lane on the page: its name, what is promised of it, its text, and its counts."""

from __future__ import annotations

from PySide6.QtCore import QRect, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout

from app.gui.colours import Colours
from app.gui.elided import Elided
from app.gui.lane_text import LaneText
from app.gui.plain import label, scaled_font
from app.run.events import LaneName
from app.run.metrics import counts, decode_speed
from app.run.record import Repetition, RunRecord


class LaneView(QFrame):
    """A lane's newest repetition."""

    inspected = Signal(object, QRect)
    """Forwarded from the text."""

    def __init__(self, lane: LaneName, colours: Colours, *, promise: str, invitation: str) -> None:
        super().__init__()
        self.setObjectName("panel")
        self.lane = lane
        self.text = LaneText(colours)
        self.text.setAccessibleName(f"Text of the {lane} lane")
        scaled_font(self.text, 1.06)
        self.text.inspected.connect(self.inspected)
        self.title = label(lane.capitalize())
        scaled_font(self.title, 1.0, bold=True)
        self.text.setPlaceholderText(invitation)
        self.promise = Elided(promise, tone="muted")
        self.footer = label(tone="muted", wrap=True)
        for small in (self.promise, self.footer):
            scaled_font(small, 0.88)
        self._lay_out()

    def show_record(self, record: RunRecord | None, earlier: str = "") -> None:
        """Shows this lane of a record from its beginning, behind what was written earlier."""
        repetitions = record.repetitions(self.lane) if record else []
        self.text.show_repetition(repetitions[-1] if repetitions else None, earlier)

    def advance(self, record: RunRecord | None, earlier: str = "") -> None:
        """Takes in what has come since the last frame."""
        self.show_record(record, earlier)
        self.text.advance()

    def show_counts(self, record: RunRecord | None) -> None:
        """Renews the line below the text."""
        repetitions = record.repetitions(self.lane) if record else []
        goes_on = record is not None and record.outcome == "running"
        of = record.settings.repetitions if record else 1
        self.footer.setText(summary(repetitions, of=of, goes_on=goes_on) if repetitions else "")

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.title)
        head.addStretch()
        head.addWidget(self.promise)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 8, 10, 8)
        column.setSpacing(4)
        column.addLayout(head)
        column.addWidget(self.text, 1)
        column.addWidget(self.footer)


def summary(repetitions: list[Repetition], *, of: int, goes_on: bool) -> str:
    """The newest repetition in one line, and which it is `of` how many there are to be."""
    newest = repetitions[-1]
    tally = counts(newest)
    speed = decode_speed(newest)
    parts = [
        f"repetition {len(repetitions)} of {max(of, len(repetitions))}" if of > 1 else "",
        f"{speed:.1f} tokens/s" if speed else "",
        f"{tally.committed} tokens",
        f"{tally.rounds} loops",
        f"accepted {tally.accepted}" if tally.drafted else "",
        f"corrected {tally.corrected}" if tally.drafted else "",
        f"bonus {tally.bonus}" if tally.drafted else "",
        f"plain {tally.plain}" if tally.drafted and tally.plain else "",
        _ending(newest, goes_on=goes_on),
    ]
    return " · ".join(filter(None, parts))


def _ending(repetition: Repetition, *, goes_on: bool) -> str:
    """How the repetition ended, or that it goes on."""
    if repetition.finish:
        return f"ended: {repetition.finish}"
    return "running…" if goes_on else "broke off"
