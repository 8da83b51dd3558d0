"""Finds words that have less room than they need, by measuring what is shown in a window.

Some may give way: they end in an ellipsis, and the whole of them is told on hover.
"""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QStyle,
    QStyleOptionComboBox,
    QTableView,
    QWidget,
)

from app.gui.choice import Choice
from app.gui.elided import Elided
from app.gui.plain import tip
from app.gui.whole_text import whole_text

SLACK = 1
"""Pixels that a rounded width may be short of."""


def cut_off(window: QWidget) -> list[str]:
    """What is cut off, with where it stands, in the whole window."""
    found = []
    for kind, measured in _MEASURES:
        for widget in window.findChildren(kind):
            if widget.isVisible():
                found += [f"{_place(widget)}: {words}" for words in measured(widget)]
    return found


def _labels(label: QLabel) -> Iterator[str]:
    if isinstance(label, Elided):
        yield from _untold(label.text(), whole_text(label, label.text()))
    elif label.text():
        yield from _short(label, label.text())


def _buttons(button: QAbstractButton) -> Iterator[str]:
    if button.text():
        yield from _short(button, button.text())


def _short(widget: QLabel | QAbstractButton, text: str) -> Iterator[str]:
    """The text, if the widget is smaller than it asks for or reaches past its parents."""
    wraps = isinstance(widget, QLabel) and widget.wordWrap()
    needed = widget.sizeHint()
    height = widget.heightForWidth(widget.width()) if wraps else needed.height()
    least = widget.minimumSizeHint() if wraps else needed
    narrow = widget.width() < least.width() - SLACK
    if narrow or widget.height() < height - SLACK or _past_its_parents(widget):
        yield text


def _past_its_parents(widget: QWidget) -> bool:
    """Whether something around it hides a part; what can be scrolled to is not hidden."""
    parent, child = widget.parentWidget(), widget
    left, right = 0, widget.width()
    while parent is not None and not child.isWindow():
        left, right = left + child.x(), right + child.x()
        if left < -SLACK or right > parent.width() + SLACK:
            area = parent.parentWidget()
            scrolls = isinstance(area, QAbstractScrollArea) and parent is area.viewport()
            off = Qt.ScrollBarPolicy.ScrollBarAlwaysOff
            return not (scrolls and area.horizontalScrollBarPolicy() != off)
        parent, child = parent.parentWidget(), parent
    return False


def _combos(combo: QComboBox) -> Iterator[str]:
    option = QStyleOptionComboBox()
    combo.initStyleOption(option)
    complex_, part = QStyle.ComplexControl.CC_ComboBox, QStyle.SubControl.SC_ComboBoxEditField
    room = combo.style().subControlRect(complex_, option, part, combo).width()
    text = combo.currentText()
    if combo.fontMetrics().horizontalAdvance(text) > room + SLACK:
        yield from _untold(text, whole_text(combo, text) if isinstance(combo, Choice) else "")
    if _past_its_parents(combo):
        yield text


def _spins(spin: QAbstractSpinBox) -> Iterator[str]:
    yield from _line(spin.lineEdit(), spin.text())


def _lines(line: QLineEdit) -> Iterator[str]:
    """A text of the person's own may be longer than the line; what the line says must not."""
    if not isinstance(line.parent(), QAbstractSpinBox) and not line.text():
        yield from _line(line, line.placeholderText())


def _line(line: QLineEdit, text: str) -> Iterator[str]:
    room = line.rect().marginsRemoved(line.textMargins()).width() - 2 * _LINE_MARGIN
    if line.fontMetrics().horizontalAdvance(text) > room + SLACK or _past_its_parents(line):
        yield text


_LINE_MARGIN = 2
"""Qt leaves so many pixels at either side of a line's text."""


def _tables(table: QTableView) -> Iterator[str]:
    """Headings, and cells whose whole text is not told on hover."""
    header, model = table.horizontalHeader(), table.model()
    for column in range(model.columnCount()):
        title = model.headerData(column, Qt.Orientation.Horizontal) or ""
        needed = header.sectionSizeHint(column)
        if header.sectionSize(column) < needed - SLACK:
            yield f"heading {title}"
        for row in range(model.rowCount()):
            text = str(model.index(row, column).data() or "")
            told = str(model.index(row, column).data(Qt.ItemDataRole.ToolTipRole) or "")
            yield from _untold(text, told)


def _untold(text: str, told: str) -> Iterator[str]:
    if text and text not in told and tip(text)[4:-5] not in told:
        yield f"not told on hover: {text}"


def _place(widget: QWidget) -> str:
    names = []
    while widget is not None and not widget.isWindow():
        names.append(type(widget).__name__)
        widget = widget.parentWidget()
    return "/".join(names[:3])


_MEASURES = (
    (QLabel, _labels),
    (QAbstractButton, _buttons),
    (QComboBox, _combos),
    (QAbstractSpinBox, _spins),
    (QLineEdit, _lines),
    (QTableView, _tables),
)
