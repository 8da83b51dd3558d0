"""Whether it pays, in one line, with why on hover; and what to mind, in a word each."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.appraisal.appraise import appraise
from app.appraisal.findings import Finding, findings
from app.gui.elided import Elided
from app.gui.plain import label, scaled_font, set_tone, tip
from app.run.figures import FIGURES, LENIENCY, badge, cut_short, promise
from app.run.flagged import cautions
from app.run.flags import Flag
from app.run.record import RunRecord
from app.run.rules import is_lossy

BEFORE = "Whether speculation pays here is said in this line once a run has ended."
MEANWHILE = "The verdict comes when the run has ended, its passes measured too."


class VerdictLine(QWidget):
    """A sentence at the left; at the right the badge of what is not lossless, and cautions."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.sentence = Elided(BEFORE, tone="muted")
        self.ending = label(tone="caution")
        """That the run was cut short."""
        self.cautions = label(tone="caution")
        scaled_font(self.cautions, 0.92, bold=True)
        self.badge = label(tone="trouble")
        scaled_font(self.badge, 0.92, bold=True)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(16)
        row.addWidget(self.sentence)
        row.addWidget(self.ending)
        row.addStretch()
        row.addWidget(self.badge)
        row.addWidget(self.cautions)
        for part in (self.ending, self.cautions, self.badge):
            part.hide()

    def show_record(self, record: RunRecord | None) -> None:
        """Shows the verdict on a record that has ended, and what was seen while it ran."""
        ended = record is not None and record.outcome != "running"
        if record is None or not ended:
            self._say(BEFORE if record is None else MEANWHILE, "muted", [])
        else:
            found = appraise(record).verdict
            sure = record.outcome == "finished" and not found.doubtful
            self._say(
                found.text[:1].upper() + found.text[1:],
                "good" if found.outcome == "pays" and sure else "",
                findings(record),
            )
        words = cut_short(record) if record else ""
        self.ending.setText(words)
        self.ending.setVisible(bool(words))
        self._mark(record)
        self._warn(cautions(record) if record and ended else ())

    def _say(self, sentence: str, tone: str, reasons: list[Finding]) -> None:
        if self.sentence.text() != sentence:
            self.sentence.setText(sentence)
        if self.sentence.property("tone") != tone:
            set_tone(self.sentence, tone)
        told = [f"{one.label}: {one.value}" for one in reasons]
        self.sentence.setToolTip(tip("\n".join(told)) if told else "")
        self.sentence.setAccessibleDescription("\n".join(told))

    def _mark(self, record: RunRecord | None) -> None:
        """Shows what a run that is not lossless is marked with, from its beginning."""
        words = badge(record) if record else ""
        self.badge.setText(words)
        told = "" if record is None or not words else promise(record)
        if record is not None and is_lossy(record.settings) and record.outcome != "running":
            told += f"\n{FIGURES[LENIENCY].label}: {FIGURES[LENIENCY].text(record)}"
        self.badge.setToolTip(tip(told) if told else "")
        self.badge.setAccessibleDescription(told)
        self.badge.setVisible(bool(words))

    def _warn(self, flags: tuple[Flag, ...]) -> None:
        words = f"Caution: {', '.join(flag.kind for flag in flags)}" if flags else ""
        told = "\n".join(flag.message for flag in flags)
        self.cautions.setText(words)
        self.cautions.setToolTip(tip(told) if told else "")
        self.cautions.setAccessibleDescription(told)
        self.cautions.setVisible(bool(flags))
