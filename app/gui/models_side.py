"""What there is to say of the chosen model, and what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QAction, QDesktopServices, QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.gui.elided import Elided
from app.gui.models_facts import facts_of
from app.gui.models_words import state_words
from app.gui.plain import dress_heading, label, scaled_font, set_tone, tip, visible
from app.gui.rows_panel import PanelRow
from app.library.inventory import Listed
from app.library.together import Together

CHOOSE = "No model is chosen."
ROWS_OF_BUTTONS = (("use_target", "use_draft"), ("fetch_model", "remove_model", "check_model"))
"""The actions that have a button on the panel."""

_STATE_TONES = {"ready": "good", "faulty": "caution"}
_VERDICTS = {"fits": "Fits", "cannot": "Cannot", "open": "Not known yet"}
_VERDICT_TONES = {"fits": "good", "cannot": "caution", "open": "muted"}


class ModelsSide(QFrame):
    """One model is described; its buttons stay in sight while the rest is scrolled."""

    told = Signal(str)
    """Something a person should read."""

    def __init__(self, actions: dict[str, QAction]) -> None:
        super().__init__()
        self.setObjectName("panel")
        self.setAccessibleName("The chosen model")
        self._path: Path | None = None
        self.title, self.state = label(wrap=True), label(wrap=True)
        scaled_font(self.title, 1.1, bold=True)
        self.remedy = label(tone="muted", wrap=True)
        self.pairing = label("As a draft", wrap=True)
        dress_heading(self.pairing)
        self.verdict = label(wrap=True)
        self.verdict_remedy = label(tone="muted", wrap=True)
        self.facts, self.notes = _Facts(), label(tone="muted", wrap=True)
        self.fit = QVBoxLayout()
        """Where it is shown whether the model fits into memory; see `show_fit`."""
        self.path = Elided(tone="muted")
        self.copy, self.open = _small_button("Copy path"), _small_button("Show in folder")
        self.copy.clicked.connect(self._copy)
        self.open.clicked.connect(self._open)
        for small in (self.remedy, self.verdict, self.verdict_remedy, self.notes, self.path):
            scaled_font(small, 0.92)
        self._lay_out(actions)
        self.show_row(None)

    def show_row(self, row: Listed | None) -> None:
        """Describes a row; None: nothing is chosen."""
        self._body.setVisible(row is not None)
        self.title.setText(visible(row.title) if row else CHOOSE)
        self._path = row.path if row else None
        if row is None:
            return
        words = state_words(row)
        self.state.setText(words[:1].upper() + words[1:])
        set_tone(self.state, _STATE_TONES.get(row.standing, "muted"))
        _fill(self.remedy, visible(row.remedy))
        self.facts.show_rows(facts_of(row))
        _fill(self.notes, "\n".join(map(visible, row.notes)))
        for widget in (self.path, self.copy, self.open):
            widget.setVisible(self._path is not None)
        self.path.setText(visible(str(self._path or "")))
        self.path.setToolTip(tip(str(self._path or "")))

    def show_verdict(self, target: str, found: Together | None) -> None:
        """Says whether it can guess for a target; without a target nothing, else that it is asked.

        `found` is None while that is being looked into.
        """
        for widget in (self.pairing, self.verdict):
            widget.setVisible(bool(target))
        self.pairing.setText(f"AS DRAFT FOR {visible(target)}".upper())
        self.pairing.setToolTip(tip(f"{target} is the target of the pair in the Playground."))
        if found is None:
            self.verdict.setText("Comparing…")
            set_tone(self.verdict, "muted")
            self.verdict_remedy.hide()
            return
        words = f"{_VERDICTS[found.verdict]}. {found.reason}".strip()
        self.verdict.setText(visible(words))
        set_tone(self.verdict, _VERDICT_TONES[found.verdict])
        _fill(self.verdict_remedy, visible(found.remedy))

    def show_fit(self, widget: QWidget | None) -> None:
        """Shows in its place whether the chosen model fits into memory; None takes it away."""
        while (item := self.fit.takeAt(0)) is not None:
            old = item.widget()
            if old is not None and old is not widget:
                old.setParent(None)
        if widget is not None:
            self.fit.addWidget(widget)
            widget.show()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(str(self._path))
        self.told.emit("The path is copied.")

    def _open(self) -> None:
        """Shows the folder that it is, or lies in, in the person's own program."""
        assert self._path is not None
        folder = self._path if self._path.is_dir() else self._path.parent
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
            self.told.emit(f"No program opens folders here. It is in {folder}.")

    def _lay_out(self, actions: dict[str, QAction]) -> None:
        self._body = QWidget()
        self._body.setObjectName("form")  # which the style sheet leaves without a ground of its own
        column = QVBoxLayout(self._body)
        column.setContentsMargins(0, 0, 6, 0)
        column.setSpacing(5)
        column.addWidget(self.state)
        column.addWidget(self.remedy)
        column.addSpacing(4)
        column.addWidget(self.pairing)
        column.addWidget(self.verdict)
        column.addWidget(self.verdict_remedy)
        column.addLayout(self.fit)
        column.addSpacing(4)
        column.addWidget(self.facts)
        column.addWidget(self.notes)
        column.addWidget(self.path)
        buttons = QHBoxLayout()
        buttons.addWidget(self.copy)
        buttons.addWidget(self.open)
        buttons.addStretch()
        column.addLayout(buttons)
        column.addStretch()
        scroll = QScrollArea()
        scroll.setWidget(self._body)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(12, 10, 6, 10)
        whole.setSpacing(6)
        whole.addWidget(self.title)
        whole.addWidget(scroll, 1)
        for names in ROWS_OF_BUTTONS:
            whole.addLayout(_row_of(names, actions))


class _Facts(QWidget):
    """Names and values, what each means on hover; labels are made once and filled anew."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(10)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(1, 1)
        self._lines: list[tuple[QLabel, QLabel]] = []

    def show_rows(self, rows: Sequence[PanelRow]) -> None:
        """Shows these rows instead of those before."""
        while len(self._lines) < len(rows):
            self._add_line()
        for place, (name, value) in enumerate(self._lines):
            shown = place < len(rows)
            for widget in (name, value):
                widget.setVisible(shown)
            if shown:
                for widget, text in zip((name, value), rows[place].cells, strict=True):
                    widget.setText(text)
                    widget.setToolTip(tip(f"{rows[place].cells[0]}\n{rows[place].meaning}"))

    def words(self) -> dict[str, str]:
        """What is shown."""
        return {name.text(): value.text() for name, value in self._lines if not name.isHidden()}

    def _add_line(self) -> None:
        name, value = label(tone="muted"), label(wrap=True)
        name.setAlignment(Qt.AlignmentFlag.AlignTop)
        for widget in (name, value):
            scaled_font(widget, 0.92)
        value.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        place = len(self._lines)
        self._grid.addWidget(name, place, 0)
        self._grid.addWidget(value, place, 1)
        self._lines.append((name, value))


def _row_of(names: Sequence[str], actions: dict[str, QAction]) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(6)
    row.setContentsMargins(0, 0, 6, 0)
    for name in names:
        button = QToolButton()
        button.setDefaultAction(actions[name])
        button.setSizePolicy(QSizePolicy.Policy.MinimumExpanding, QSizePolicy.Policy.Fixed)
        row.addWidget(button)
    return row


def _small_button(text: str) -> QToolButton:
    made = QToolButton()
    made.setObjectName("quiet")
    made.setText(text)
    return made


def _fill(widget: QLabel, text: str) -> None:
    """Shows a text; a label without one takes no room."""
    widget.setText(text)
    widget.setVisible(bool(text))
