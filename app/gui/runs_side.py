"""What there is to say of the chosen run, and what a person writes to it: tags and a note."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QVBoxLayout, QWidget

from app.gui.plain import label, scaled_font, section_label, tip, visible
from app.gui.prompt_field import PromptField
from app.gui.runs_model import method_label, when
from app.history import Entry
from app.run.figures import FIGURES

_PROMPT = 160


class NoteField(PromptField):
    """Says when the keyboard leaves it."""

    left = Signal()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Tells it."""
        super().focusOutEvent(event)
        self.left.emit()


class RunsSide(QFrame):
    """One run is described; of several only the number is told."""

    tagged = Signal(str, list)
    """A run, and the tags that it is to have."""
    noted = Signal(str, str)
    """A run, and the note that it is to have."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("panel")
        self._entry: Entry | None = None
        self._about = QWidget()
        self.title, self.facts = label(wrap=True), label(tone="muted", wrap=True)
        self.prompt = label(wrap=True)
        scaled_font(self.title, 1.1, bold=True)
        scaled_font(self.facts, 0.92)
        self.tags = QLineEdit()
        self.tags.setPlaceholderText("Tags, with commas between")
        self.tags.setAccessibleName("Tags of the run")
        self.tags.setToolTip(tip("Kept when you press Enter or leave the field."))
        self.note = NoteField("Note on the run", placeholder="A note")
        self.note.setToolTip(tip("Kept when you leave the field."))
        self.tags.editingFinished.connect(self.flush)
        self.note.left.connect(self.flush)
        self._lay_out()
        self.show_entries([])

    def show_entries(self, entries: list[Entry]) -> None:
        """Describes what is chosen; what was written to the run before is kept first."""
        self.flush()
        entry = entries[0] if len(entries) == 1 else None
        same = entry is not None and self._entry is not None and entry.run == self._entry.run
        self.title.setText(visible(entry.pair) if entry else _several(len(entries)))
        self.facts.setText(facts_of(entry) if entry else "")
        self.prompt.setText(_short(entry.prompt_start) if entry else "")
        if same:  # the fields may be ahead of what has been kept
            return
        self._entry = entry
        self.tags.setText(", ".join(entry.tags) if entry else "")
        self.note.setPlainText(entry.note if entry else "")
        self._about.setVisible(entry is not None)

    def forget(self) -> None:
        """Gives up what was written and could not be kept."""
        self._entry = None

    def flush(self) -> None:
        """Sends what was written and has not been sent."""
        entry = self._entry
        if entry is None:
            return
        tags, note = _tags(self.tags.text()), self.note.text()
        if set(tags) != set(entry.tags):
            self._entry = entry = _changed(entry, tags=tuple(tags))
            self.tagged.emit(entry.run, tags)
        if note != entry.note:
            self._entry = _changed(entry, note=note)
            self.noted.emit(entry.run, note)

    def _lay_out(self) -> None:
        whole = QVBoxLayout(self)
        whole.setContentsMargins(12, 10, 12, 10)
        whole.addWidget(self.title)
        whole.addWidget(self._about, 1)
        whole.addStretch()
        column = QVBoxLayout(self._about)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.facts)
        column.addWidget(section_label("Prompt"))
        column.addWidget(self.prompt)
        column.addWidget(section_label("Tags"))
        column.addWidget(self.tags)
        column.addWidget(section_label("Note"))
        column.addWidget(self.note, 1)


def facts_of(entry: Entry) -> str:
    """The run in a few lines."""
    draft = visible(entry.draft)
    if draft:
        draft = f", {draft}" if draft.startswith("draft ") else f", draft {draft}"
    lines = (
        f"{when(entry)} · {entry.outcome}",
        f"Run {visible(entry.run)}",
        f"{visible(entry.target)} {entry.precision}{draft}",
        f"{method_label(entry)} · γ {entry.draft_length} · temperature {entry.temperature:g}",
        *_figures(entry),
        _SAME[entry.same_text],
    )
    return "\n".join(filter(None, lines))


def _figures(entry: Entry) -> list[str]:
    """The headline figures that there are, with their names."""
    figures = (
        ("decode_speedup", entry.decode_speedup),
        ("speculative_decode_tokens_per_second", entry.speculative_speed),
        ("baseline_decode_tokens_per_second", entry.baseline_speed),
        ("acceptance_rate", entry.acceptance_rate),
        ("tokens_per_loop", entry.tokens_per_loop),
    )
    return [
        f"{FIGURES[name].label} {FIGURES[name].written(value)}"
        for name, value in figures
        if value is not None
    ]


_SAME = {None: "", True: "Both lanes wrote the same text.", False: "The lanes' texts differ."}


def _several(number: int) -> str:
    return f"{number} runs are chosen" if number else "No run is chosen"


def _short(text: str) -> str:
    return text if len(text) <= _PROMPT else text[: _PROMPT - 1] + "…"


def _tags(text: str) -> list[str]:
    return list(dict.fromkeys(filter(None, (tag.strip() for tag in text.split(",")))))


def _changed(entry: Entry, **fields: object) -> Entry:
    return msgspec.structs.replace(entry, **fields)
