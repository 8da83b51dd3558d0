"""The prompt: its text, the system message, raw or chat, and how many tokens it is."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout, QWidget

from app.gui.plain import label, scaled_font, section_label, tip
from app.gui.prompt_field import PromptField

SAMPLE = (
    "Repeat this list with a number before every line:\n"
    "a red kite over the harbour\n"
    "a blue kite over the harbour\n"
    "a green kite over the harbour\n"
    "a white kite over the harbour\n"
    "a yellow kite over the harbour\n"
    "a black kite over the harbour\n"
    "a silver kite over the harbour\n"
    "a golden kite over the harbour"
)
"""What is asked until the person asks something else."""


class PromptPanel(QWidget):
    """Everything that is given to the model to read."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.prompt = PromptField("Prompt", placeholder="What the model is asked")
        self.prompt.setPlainText(SAMPLE)
        self.prompt.setMinimumHeight(4 * self.prompt.fontMetrics().lineSpacing())
        self.system = PromptField("System message", placeholder="System message (optional)")
        self.system.set_lines(1)
        self.raw = QCheckBox("Raw")
        self.raw.setToolTip(
            tip("Give the prompt to the model as it is, without its chat template.")
        )
        self.private = QCheckBox("Private run")
        self.private.setToolTip(tip("The run is not kept; exports leave out prompt and text."))
        self.tokens = label(tone="muted")
        scaled_font(self.tokens, 0.88)
        self._lay_out()
        self.show_count(None)
        self.raw.toggled.connect(self._refresh)
        for field in (self.prompt, self.system):
            field.textChanged.connect(self.changed)

    def fill(self, prompt: str, *, system: str, raw: bool) -> None:
        """Shows another prompt."""
        self.prompt.setPlainText(prompt)
        self.system.setPlainText(system)
        self.raw.setChecked(raw)

    def show_count(self, tokens: int | None) -> None:
        """Shows how many tokens the prompt is; None while that is not known."""
        count = "– tokens" if tokens is None else f"{tokens} tokens"
        self.tokens.setText(f"{count} · {'raw' if self.raw.isChecked() else 'chat template'}")

    @property
    def system_text(self) -> str:
        """The system message; none is given with a raw prompt."""
        return "" if self.raw.isChecked() else self.system.text()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(section_label("Prompt"))
        head.addStretch()
        head.addWidget(self.private)
        head.addWidget(self.raw)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 4, 12, 4)
        column.setSpacing(5)
        column.addLayout(head)
        column.addWidget(self.system)
        column.addWidget(self.prompt, 1)
        column.addWidget(self.tokens)

    def _refresh(self) -> None:
        self.system.setVisible(not self.raw.isChecked())
        self.changed.emit()
