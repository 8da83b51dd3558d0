"""What has no room: the measure finds it, an ellipsis says so, and hover tells the whole."""

from __future__ import annotations

import pytest
from cut_off import cut_off
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAccessible, QHelpEvent
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QStyleOptionComboBox,
    QTableWidget,
    QToolTip,
    QWidget,
)

from app.gui.choice import Choice
from app.gui.elided import Elided
from app.gui.plain import dress_heading, label, tip
from app.gui.whole_text import whole_text

WORDS = "Exact (speculative sampling)"


@pytest.fixture
def page(application):
    """A wide window without a layout, so that each part has the room it is given."""
    made = QWidget()
    made.resize(600, 400)
    made.show()
    yield made
    QToolTip.hideText()
    made.close()
    made.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def put(page: QWidget, part: QWidget, width: int) -> QWidget:
    part.setParent(page)
    part.setGeometry(0, 0, width, max(part.sizeHint().height(), 24))
    part.show()
    QApplication.processEvents()
    return part


def line(words: str) -> QLineEdit:
    made = QLineEdit()
    made.setPlaceholderText(words)
    return made


def number() -> QSpinBox:
    made = QSpinBox()
    made.setSpecialValueText(WORDS)
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda: QLabel(WORDS),
        lambda: QPushButton(WORDS),
        lambda: label("i" + "n" * 23, wrap=True),
        lambda: line(WORDS),
        number,
    ],
)
def test_what_has_no_room_is_found(page, make):
    part = put(page, make(), 40)
    assert len(cut_off(page)) == 1
    part.resize(400, part.height())
    assert cut_off(page) == []


def test_what_reaches_past_its_parent_is_found(page):
    part = put(page, QLabel(WORDS), 300)
    part.move(page.width() - 30, 0)
    assert len(cut_off(page)) == 1


def test_headings_and_cells_are_measured(page):
    table = put(page, QTableWidget(1, 1), 300)
    table.setHorizontalHeaderLabels([WORDS])
    table.setColumnWidth(0, 60)
    assert cut_off(page) == [f"QTableWidget: heading {WORDS}"]
    table.setColumnWidth(0, 280)
    table.model().setData(table.model().index(0, 0), WORDS)
    assert cut_off(page) == [f"QTableWidget: not told on hover: {WORDS}"]
    table.item(0, 0).setToolTip(tip(WORDS))
    assert cut_off(page) == []


@pytest.mark.parametrize("make", [lambda: Choice([(WORDS, 1)]), lambda: Elided(WORDS)])
def test_what_gives_way_is_told_whole_on_hover(page, make):
    part = put(page, make(), 70)
    part.setToolTip(tip("Rule\nWhat decides."))
    assert cut_off(page) == []
    at = QPoint(5, 5)
    for width, told in (70, f"{WORDS}<br>Rule<br>What decides."), (400, "Rule<br>What decides."):
        part.resize(width, part.height())
        QApplication.sendEvent(part, QHelpEvent(QEvent.Type.ToolTip, at, part.mapToGlobal(at)))
        assert QToolTip.text() == f"<qt>{told}</qt>"


def test_a_choice_ends_in_an_ellipsis_where_there_is_no_room(page):
    part = put(page, Choice([(WORDS, 1)]), 100)
    option = QStyleOptionComboBox()
    part.initStyleOption(option)
    assert option.currentText.endswith("…")
    assert WORDS.startswith(option.currentText.removesuffix("…"))
    assert part.currentText() == WORDS


def test_the_list_of_a_choice_is_as_wide_as_its_names(page):
    part = put(page, Choice([("One", 1), (WORDS, 2)]), 70)
    part.showPopup()
    try:
        assert part.view().viewport().width() >= part.view().sizeHintForColumn(0)
    finally:
        part.hidePopup()


def test_hover_tells_what_the_surrounding_tells_too_and_nothing_twice(page):
    inner = put(page, Elided("a < b"), 10)
    assert whole_text(inner, inner.text()) == "<qt>a &lt; b</qt>"
    page.setToolTip(tip("Around"))
    assert whole_text(inner, inner.text()) == "<qt>a &lt; b<br>Around</qt>"
    inner.setToolTip(tip("a < b: more"))
    assert whole_text(inner, inner.text()) == "<qt>a &lt; b: more</qt>"


def test_a_long_word_is_wrapped_and_given_back_as_it_was(page):
    name = "Meta_Llama_3.1_405B_Instruct_GPTQ_INT4_128g_actorder_true"
    part = put(page, label(name, wrap=True), 120)
    assert part.minimumSizeHint().width() <= 120
    assert part.heightForWidth(120) >= 3 * part.fontMetrics().height()
    assert part.text() == name
    words = label("an ordinary sentence/with-marks", wrap=True)
    assert QLabel.text(words) == words.text() == "an ordinary sentence/with-marks"


def told_aloud(part: QWidget) -> str:
    return QAccessible.queryAccessibleInterface(part).text(QAccessible.Text.Name)


def test_breaks_within_words_are_neither_read_out_nor_copied(page):
    name = "Meta_Llama_3.1_405B_Instruct_GPTQ_INT4_128g_actorder_true"
    part = put(page, label(name, wrap=True), 120)
    assert QLabel.text(part) != name
    assert told_aloud(part) == name
    part.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    part.setSelection(0, len(name))
    assert part.selectedText() == name
    part.setText(2 * name)
    assert (QLabel.text(part), told_aloud(part)) == (2 * name, 2 * name)
    part.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
    assert QLabel.text(part) != 2 * name


def test_a_heading_is_read_out_as_it_was_given(page):
    for heading in (label("As a draft", wrap=True), label("As a draft")):
        dress_heading(put(page, heading, 120))
        assert (heading.text(), told_aloud(heading)) == ("AS A DRAFT", "As a draft")
