"""The verdict as a picture that stands alone: the row as shown, what ran, where and when."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QImage, QPainter
from PySide6.QtWidgets import QWidget

from app.gui.colours import Colours
from app.gui.plain import visible
from app.run.figures import promise
from app.run.methods import METHODS
from app.run.record import RunRecord

SCALE = 2
"""Pixels of the picture a pixel of the window, so that it is sharp elsewhere too."""

_MARGIN = 14
_GAP = 6


def picture_of(verdict: QWidget, record: RunRecord, colours: Colours) -> QImage:
    """The row of a record with a heading above it and three lines below, in this scheme."""
    font = verdict.font()
    line = QFontMetrics(font).height() + _GAP
    below = facts(record)
    size = verdict.size() + QSize(2 * _MARGIN, 2 * _MARGIN + line * (1 + len(below)) + _GAP)
    picture = QImage(size * SCALE, QImage.Format.Format_RGB32)
    picture.setDevicePixelRatio(SCALE)
    picture.fill(QColor(colours.window))
    painter = QPainter(picture)
    place = QRect(_MARGIN, _MARGIN, verdict.width(), line)
    _write(painter, place, heading(record), font=_bold(font), colour=colours.text)
    verdict.render(painter, QPoint(_MARGIN, place.bottom() + 1))
    place.translate(0, line + verdict.height() + _GAP)
    for text in below:
        _write(painter, place, text, font=font, colour=colours.muted)
        place.translate(0, line)
    painter.end()
    return picture


def heading(record: RunRecord) -> str:
    """The pair and how it guessed."""
    settings = record.settings
    method = METHODS[settings.method].label if settings.method in METHODS else settings.method
    return f"Foretoken · {settings.pair} · {method}, draft length {settings.draft_length}"


def facts(record: RunRecord) -> tuple[str, ...]:
    """What the figures are worth; the models; the machine and the date."""
    models = [f"{m.name} {m.precision}" for m in (record.target, record.draft) if m is not None]
    around = record.environment
    machine = f"{around.device} · {around.processor} · {around.threads} threads"
    return promise(record), " · ".join(models), f"{machine} · {record.started}"


def _write(painter: QPainter, place: QRect, text: str, *, font: QFont, colour: str) -> None:
    """One line of text, cut where it has no room."""
    painter.setFont(font)
    painter.setPen(QColor(colour))
    cut = QFontMetrics(font).elidedText(visible(text), Qt.TextElideMode.ElideRight, place.width())
    painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop, cut)


def _bold(font: QFont) -> QFont:
    made = QFont(font)
    made.setBold(True)
    return made
