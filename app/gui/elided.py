"""A label that gives way: where there is no room its text ends in an ellipsis, and is told whole on
hover.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QStyleOption

from app.gui.whole_text import tells_whole


class Elided(QLabel):
    """One line of plain text that may be narrower than its text."""

    def __init__(self, text: str = "", *, tone: str = "") -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        if tone:
            self.setProperty("tone", tone)

    def event(self, event: QEvent) -> bool:
        """Tells the whole of a text that is cut off."""
        told = tells_whole(self, event, self.text(), room=self.width())
        return told or super().event(event)

    def minimumSizeHint(self) -> QSize:
        """As high as the text, and as narrow as need be."""
        return QSize(2 * self.fontMetrics().averageCharWidth(), super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paints as much of the text as there is room for."""
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_Widget, option, painter, self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), self.alignment(), text)
