"""The main page: settings on the left; verdict, lanes and charts on the right."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.gui.background import Background
from app.gui.chart_pages import ChartPages
from app.gui.colours import Colours
from app.gui.elided import Elided
from app.gui.form import Form
from app.gui.form_page import form_panel, lay_out
from app.gui.lane_view import LaneView
from app.gui.legend import Legend
from app.gui.memory_desk import MemoryDesk
from app.gui.plain import scaled_font, set_tone, tip
from app.gui.prompt_panel import PromptPanel
from app.gui.strips import Notice, ProgressStrip
from app.gui.token_card import TokenCard
from app.gui.verdict import Verdict
from app.library.catalogue import Catalogue
from app.library.device_precision import Refused
from app.run.figures import standing
from app.run.preparation import DeviceMemory
from app.run.problems import EMPTY_PROMPT
from app.run.record import RunRecord
from app.run.settings import RunSettings

INVITATIONS = (
    "Run (Ctrl+Enter) writes here.",
    "The same target, alone, writes here.",
)
"""What stands in the lanes before the first run."""


class Playground(QWidget):
    """Lays out the page and hands a record to its parts."""

    def __init__(self, catalogue: Catalogue, background: Background, colours: Colours) -> None:
        super().__init__()
        self.form = Form(catalogue)
        self.prompt = PromptPanel()
        self.run_button, self.stop_button = QPushButton("Run both lanes"), QPushButton("Stop")
        self.continue_button = QPushButton("Continue")
        self.run_button.setObjectName("run")
        self.memory = MemoryDesk(catalogue, background, colours)
        self.verdict = Verdict()
        self.progress, self.notice = ProgressStrip(), Notice()
        self.lanes = (
            LaneView("speculative", colours, promise="", invitation=INVITATIONS[0]),
            LaneView(
                "baseline", colours, promise="same target, no draft", invitation=INVITATIONS[1]
            ),
        )
        self.legend = Legend(colours)
        self.hints = Elided("R rejected guesses · L loop seams · point at a token", tone="muted")
        scaled_font(self.hints, 0.88)
        self.charts = ChartPages(colours)
        self.card = TokenCard(colours, self)
        lay_out(self, self._left(), (self.verdict, self.progress, self.notice, self._middle()))
        for lane in self.lanes:
            lane.inspected.connect(self.card.show_span)
        self.form.changed.connect(self._renew_memory)
        self.form.pair_changed.connect(self.renew_memory)
        self.prompt.changed.connect(self._see_prompt)

    def take_devices(self, devices: Sequence[DeviceMemory]) -> None:
        """Compares with what is free on these devices from now on."""
        self.memory.take_devices(devices)

    def take_refused(self, refused: Refused) -> None:
        """Proposes nothing any more that a device cannot take."""
        self.memory.take_refused(refused)

    def renew_memory(self) -> None:
        """Reads the sizes of the pair anew: it may have been fetched since."""
        self.memory.forget()
        self._renew_memory()

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Offers the pairs of another catalogue."""
        self.memory.take_catalogue(catalogue)
        self.form.take_catalogue(catalogue)
        self._renew_memory()

    def settings(self) -> RunSettings:
        """What would be run now."""
        prompt = self.prompt
        return self.form.settings(
            prompt.prompt.text(), system=prompt.system_text, raw=prompt.raw.isChecked()
        )

    def run_words(self) -> str:
        """What the run button says while a run may begin."""
        return "Run both lanes" if self.form.speculation.isChecked() else "Run"

    def fill(self, settings: RunSettings) -> None:
        """Puts the settings of a run into the form."""
        self.form.fill(settings)
        self.prompt.fill(settings.prompt, system=settings.system, raw=settings.raw)

    def advance(self, record: RunRecord | None, earlier: str = "") -> None:
        """The fast clock: appends what has come to the lanes, behind what was written earlier."""
        for lane in self.lanes:
            lane.advance(record, earlier)

    def show_counts(self, record: RunRecord | None) -> None:
        """Renews what stands around the lanes."""
        for lane in self.lanes:
            lane.show_counts(record)
        if record:
            self._name_lanes(record)

    def read_lanes(self) -> None:
        """Gives the keyboard to the text that is being written, where letters are shortcuts."""
        self.lanes[0].text.setFocus()

    def set_colours(self, colours: Colours) -> None:
        """Takes on another scheme."""
        self.legend.set_colours(colours)
        self.memory.bar.set_colours(colours)
        self.charts.set_colours(colours)
        self.card.set_colours(colours)
        for lane in self.lanes:
            lane.text.set_colours(colours)

    def set_thrown(self, shown: bool) -> None:
        """Shows or hides guesses that were thrown away."""
        self.legend.set_thrown(shown)
        for lane in self.lanes:
            lane.text.set_thrown(shown)

    def set_seams(self, shown: bool) -> None:
        """Shows or hides the seams between rounds."""
        for lane in self.lanes:
            lane.text.set_seams(shown)

    def _name_lanes(self, record: RunRecord) -> None:
        """Says what the lanes promise; a run without a baseline has one lane only."""
        fast, slow = self.lanes
        speculates = record.settings.method != "nothing"
        fast.title.setText("Speculative" if speculates else "Plain decoding")
        found = standing(record)
        promise = f"{found} · {record.settings.rule} rule"
        fast.promise.setText(promise if speculates else "no draft")
        set_tone(fast.promise, "trouble" if found == "LOSSY" else "muted")
        fast.promise.setToolTip(tip("\n".join(record.notes)) if record.notes else "")
        slow.setVisible(record.settings.baseline)

    def _see_prompt(self) -> None:
        """Says no more that the prompt is empty once it is not."""
        if self.prompt.prompt.text().strip():
            self.notice.withdraw(EMPTY_PROMPT)

    def _renew_memory(self) -> None:
        self.memory.show(self.settings())

    def _left(self) -> QWidget:
        panel, column = form_panel(spacing=4)
        column.addWidget(_FormScroll(self.form))
        column.addWidget(self.memory.bar)
        column.addWidget(self.prompt, 1)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(12, 0, 12, 0)
        buttons.addWidget(self.run_button, 1)
        buttons.addWidget(self.continue_button)
        buttons.addWidget(self.stop_button)
        column.addLayout(buttons)
        return panel

    def _middle(self) -> QWidget:
        lanes = QWidget()
        column = QVBoxLayout(lanes)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(7)
        row = QHBoxLayout()
        row.setSpacing(10)
        for lane in self.lanes:
            row.addWidget(lane, 1)
        column.addLayout(row, 1)
        below = QHBoxLayout()
        below.addWidget(self.legend, 0, Qt.AlignmentFlag.AlignVCenter)
        below.addStretch()
        below.addWidget(self.hints)
        below.addSpacing(10)
        below.addWidget(self.charts.switch)
        column.addLayout(below)
        splitter = QSplitter(Qt.Orientation.Vertical)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(lanes)
        splitter.addWidget(self.charts)
        splitter.setSizes([640, 260])
        splitter.setStretchFactor(0, 5)
        splitter.setStretchFactor(1, 2)
        return splitter


class _FormScroll(QScrollArea):
    """As high as the form, and less where there is no room."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        self._form = form
        self.setObjectName("settings")
        self.setWidget(form)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        form.installEventFilter(self)

    def sizeHint(self) -> QSize:
        """The form's own, with its texts wrapped as they are in its width."""
        hint = self._form.sizeHint()
        needed = self._form.heightForWidth(self.viewport().width())
        line = self.height() - self.viewport().height()  # the style sheet draws one below
        return QSize(hint.width(), max(hint.height(), needed) + line)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In another width the texts wrap otherwise."""
        super().resizeEvent(event)
        self.updateGeometry()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Asks for other room whenever the form does."""
        if watched is self._form and event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)
