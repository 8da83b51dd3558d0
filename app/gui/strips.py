"""Strips above the lanes: what takes a while, with Cancel; and what went wrong, with what to do."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QPushButton, QWidget

from app.gui.plain import label
from app.run.auditing import Audited, audit_words
from app.run.events import Progress
from app.run.pace import Pace

_STEPS = 1000


class ProgressStrip(QFrame):
    """How far a set-up, a load or a prompt pass has come."""

    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("progress")
        self._text = label()
        self._pace = Pace()
        self._bar = QProgressBar()
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName("Progress")
        self.cancel = QPushButton("Cancel")
        self.cancel.setAccessibleName("Cancel what is going on")
        self.cancel.clicked.connect(self.cancelled)
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 5, 6, 5)
        row.setSpacing(12)
        row.addWidget(self._text)
        row.addWidget(self._bar, 100)
        row.addStretch(1)
        row.addWidget(self.cancel)
        self.hide()

    def show_progress(self, progress: Progress | None) -> None:
        """Shows how far it has come; None hides the strip."""
        self.setVisible(progress is not None)
        if progress is None:
            return
        pace = self._pace.words(progress)
        self._text.setText(", ".join(filter(None, (progress_words(progress), pace))))
        # Without a total there is no bar: a moving one repaints sixty times a second, and takes
        # from the engine what it is waiting for.
        self._bar.setVisible(bool(progress.total))
        if progress.total:
            self._bar.setValue(round(_STEPS * min(progress.done / progress.total, 1.0)))


class Notice(QFrame):
    """A message and its remedy, until it is dismissed or overtaken."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("notice")
        self._message = ""
        self.text = label(wrap=True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        dismiss = QPushButton("Dismiss")
        dismiss.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 6, 6, 6)
        row.addWidget(self.text, 1)
        row.addWidget(dismiss, 0, Qt.AlignmentFlag.AlignTop)
        self.hide()

    def show_trouble(self, message: str, remedy: str = "") -> None:
        """Says what went wrong and what to do."""
        self._show(f"{message}\n{remedy}".strip(), kind="trouble")
        self._message = message

    def show_news(self, message: str) -> None:
        """Says that something went well."""
        self._show(message, kind="news")

    def show_audit(self, found: Audited) -> None:
        """Says what an audit has found: news if the law was kept, else trouble."""
        self._show(audit_words(found), kind="news" if found.passed else "trouble")

    def hide_news(self) -> None:
        """Takes good news away; trouble stays."""
        if self.property("kind") == "news":
            self.hide()

    def withdraw(self, message: str) -> None:
        """Takes this trouble away, and no other."""
        if self._message == message:
            self.hide()

    def _show(self, text: str, *, kind: str) -> None:
        self._message = ""
        self.setProperty("kind", kind)
        for widget in (self, self.text):
            widget.style().unpolish(widget)
            widget.style().polish(widget)
        self.text.setText(text)
        self.setAccessibleName(text)
        self.show()


def progress_words(progress: Progress) -> str:
    """A step, and how far it has come in its own unit."""
    stage = progress.stage[:1].upper() + progress.stage[1:]
    if not progress.total:
        return f"{stage}…"
    if progress.unit == "s":  # such a stage tells itself how long it will take
        return stage
    if progress.unit == "bytes":
        return f"{stage}: {progress.done / 1e6:.0f} of {progress.total / 1e6:.0f} MB"
    return f"{stage}: {progress.done:.0f} of {progress.total:.0f} {progress.unit}".rstrip()
