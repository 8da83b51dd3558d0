"""The text of one lane: tokens coloured by how they came to be, appended a frame at a time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from PySide6.QtCore import QEvent, QMimeData, QPointF, QRect, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QTextEdit, QWidget

from app.gui.colours import Colours
from app.gui.continuation import before_stop, whole_text
from app.gui.lane_feed import LaneFeed, Piece
from app.gui.lane_spans import Span, Spans
from app.gui.plain import shown
from app.gui.token_formats import earlier_format, token_formats
from app.run.record import Repetition

TOKENS_A_FRAME = 1500
"""Most tokens that one frame reads, so that no frame is long."""

_LINE_HEIGHT = 142
_LONGEST_BLOCK = 3000
"""A paragraph is laid out anew whenever it grows; past this many characters another begins."""


class LaneText(QTextEdit):
    """Shows a repetition as it grows. A copy comes from the record, never from the widget."""

    inspected = Signal(object, QRect)
    """A span under the pointer or the caret (or None), and where it is on the screen."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("lane")
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setTabChangesFocus(True)
        self.setTabStopDistance(4 * self.fontMetrics().horizontalAdvance(" "))
        self.document().setDocumentMargin(6)
        self.viewport().setMouseTracking(True)
        self._colours = colours
        self._formats = token_formats(colours)
        self._earlier = ""
        self._repetition: Repetition | None = None
        self._feed: LaneFeed | None = None
        self._restore: int | None = None
        self._thrown = False
        self._seams_shown = False
        self._at_bottom = True
        self.verticalScrollBar().valueChanged.connect(self._note_place)
        self._clear()

    @property
    def behind(self) -> bool:
        """Whether part of what the record holds has not been appended yet."""
        return self._feed is not None and self._feed.behind

    def show_repetition(self, repetition: Repetition | None, earlier: str = "") -> None:
        """Shows this repetition behind what was written earlier, unless it is shown already."""
        if repetition is not self._repetition or earlier != self._earlier:
            self._repetition, self._earlier = repetition, earlier
            self._rebuild()

    def set_thrown(self, shown_: bool) -> None:
        """Shows or hides, in their place, the guesses that were thrown away."""
        self._thrown = shown_
        self._rebuild()

    def set_seams(self, shown_: bool) -> None:
        """Shows or hides where one round ends and the next begins."""
        self._seams_shown = shown_
        self.viewport().update()

    def set_colours(self, colours: Colours) -> None:
        """Takes on another scheme."""
        self._colours = colours
        self._formats = token_formats(colours)
        self._rebuild()

    def advance(self) -> None:
        """Appends what has come since the last frame, in one edit."""
        if self._feed is None or self._repetition is None:
            return
        if self._before != before_stop(self._earlier, self._repetition):
            self._clear()
        bar = self.verticalScrollBar()
        follows = self._restore is None and self._at_bottom
        pieces = list(self._feed.pieces(TOKENS_A_FRAME))
        if pieces:
            cursor = QTextCursor(self.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.beginEditBlock()
            for piece in pieces:
                self._append(cursor, piece)
            cursor.endEditBlock()
        if self._restore is not None:
            bar.setValue(self._restore)
            self._restore = self._restore if self._feed.behind else None
        elif follows and pieces:
            bar.setValue(bar.maximum())

    def record_text(self) -> str:
        """The record's text of this lane, behind what was written earlier."""
        return whole_text(self._earlier, self._repetition) if self._repetition else ""

    def span_at(self, place: int) -> Span | None:
        """The tokens that show at this place of the document."""
        return self._spans.at(place)

    def createMimeDataFromSelection(self) -> QMimeData:
        """What a copy or a drag takes along: the record's characters, exactly."""
        cursor = self.textCursor()
        data = QMimeData()
        data.setText(self._spans.text(cursor.selectionStart(), cursor.selectionEnd()))
        return data

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tells which token is under the pointer."""
        super().mouseMoveEvent(event)
        if not event.buttons():
            self._inspect_at(event.position())

    def leaveEvent(self, event: QEvent) -> None:
        """Tells that no token is under the pointer any more."""
        super().leaveEvent(event)
        self.inspected.emit(None, QRect())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Moves the caret and tells which token is behind it."""
        super().keyPressEvent(event)
        if event.key() in _CARET_KEYS:
            self._inspect_caret()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Tells that no token is looked at any more."""
        super().focusOutEvent(event)
        self.inspected.emit(None, QRect())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stays at the bottom, if that is where it was."""
        at_bottom = self._at_bottom
        super().resizeEvent(event)
        if at_bottom:
            self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paints the text, where this run begins and, if wanted, the seams between rounds."""
        super().paintEvent(event)
        if self._joint:
            self._paint_lines([self._joint], self._colours.accent, width=2)
        if self._seams_shown:
            self._paint_seams()

    def _clear(self) -> None:
        self.clear()
        self._spans = Spans()
        self._seams: list[int] = []
        self._block_length = 0
        self._joint, self._before = 0, ""
        self._restore = None
        self._feed = LaneFeed(self._repetition, thrown=self._thrown) if self._repetition else None
        cursor = QTextCursor(self.document())
        spacing = QTextBlockFormat()
        spacing.setLineHeight(
            _LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value
        )
        cursor.setBlockFormat(spacing)
        if self._repetition and self._earlier:
            self._before = before_stop(self._earlier, self._repetition)
            self._append_earlier(cursor)

    def _rebuild(self) -> None:
        """Shows all anew, at the place where the reader was."""
        place = None if self._at_bottom else self.verticalScrollBar().value()
        self._clear()
        self._restore = place
        self.advance()

    def _note_place(self, value: int) -> None:
        """Remembers whether the reader is at the bottom."""
        self._at_bottom = value >= self.verticalScrollBar().maximum() - 2

    def _append(self, cursor: QTextCursor, piece: Piece) -> None:
        """Appends one piece and notes where it stands."""
        status = piece.tokens[-1].token.status
        start = self._write(cursor, piece, self._formats[status])
        if piece.opens_round:
            self._seams.append(start)

    def _append_earlier(self, cursor: QTextCursor) -> None:
        """Appends what was written earlier; this run begins at its end."""
        written = earlier_format(self._colours)
        for place in range(0, len(self._before), _LONGEST_BLOCK):
            piece = Piece(self._before[place : place + _LONGEST_BLOCK], (), opens_round=False)
            self._write(cursor, piece, written)
        self._joint = cursor.position()

    def _write(self, cursor: QTextCursor, piece: Piece, written: QTextCharFormat) -> int:
        """Writes one piece, and returns where it begins."""
        if self._block_length > _LONGEST_BLOCK:
            cursor.insertBlock()
            self._block_length = 0
        start = cursor.position()
        cursor.insertText(shown(piece.text), written)
        self._spans.add(Span(start, cursor.position(), piece.text, piece.tokens))
        _, newline, behind = piece.text.rpartition("\n")
        self._block_length = len(behind) + (0 if newline else self._block_length)
        return start

    def _inspect_at(self, point: QPointF) -> None:
        """Emits the span under a point of the viewport."""
        offset = QPointF(self.horizontalScrollBar().value(), self.verticalScrollBar().value())
        layout = self.document().documentLayout()
        place = layout.hitTest(point + offset, Qt.HitTestAccuracy.ExactHit)
        self._emit_inspected(place, on_line_of=point)

    def _inspect_caret(self) -> None:
        """Emits the span behind the caret."""
        self._emit_inspected(self.textCursor().position(), on_line_of=None)

    def _emit_inspected(self, place: int, *, on_line_of: QPointF | None) -> None:
        span = self._spans.at(place) if place >= 0 else None
        if span is None:
            self.inspected.emit(None, QRect())
            return
        cursor = QTextCursor(self.document())
        cursor.setPosition(span.start if span.tokens else place)
        box = self.cursorRect(cursor)
        if on_line_of is not None:
            box.moveTo(int(on_line_of.x()), box.y())
        self.inspected.emit(span, QRect(self.viewport().mapToGlobal(box.topLeft()), box.size()))

    def _paint_seams(self) -> None:
        """Draws a thin line before the first token of every round in sight."""
        viewport = self.viewport()
        first = self.cursorForPosition(viewport.rect().topLeft()).position()
        last = self.cursorForPosition(viewport.rect().bottomRight()).position()
        in_sight = self._seams[bisect_left(self._seams, first) : bisect_right(self._seams, last)]
        self._paint_lines(in_sight, self._colours.muted, width=1)

    def _paint_lines(self, places: list[int], colour: str, *, width: int) -> None:
        """Draws a line before each of these places."""
        painter = QPainter(self.viewport())
        painter.setPen(QPen(QColor(colour), width))
        cursor = QTextCursor(self.document())
        for place in places:
            cursor.setPosition(place)
            box = self.cursorRect(cursor)
            painter.drawLine(box.left(), box.top(), box.left(), box.bottom())
        painter.end()


_CARET_KEYS = {
    Qt.Key.Key_Left,
    Qt.Key.Key_Right,
    Qt.Key.Key_Up,
    Qt.Key.Key_Down,
    Qt.Key.Key_Home,
    Qt.Key.Key_End,
    Qt.Key.Key_PageUp,
    Qt.Key.Key_PageDown,
}
