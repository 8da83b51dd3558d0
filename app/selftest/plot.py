"""The Qt side: one plot drawn without a screen, and the icons."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"

import pyqtgraph as pg  # Qt's platform is chosen before
from PySide6.QtGui import QColor, QIcon, QImage
from PySide6.QtWidgets import QApplication

from app import files
from app.run.problems import Problem
from app.selftest.result import Result, tried

_CURVE = QColor(255, 0, 0)
_FEWEST = 200
"""Pixels that a curve across the whole plot certainly has."""


def checks(folder: Path) -> Iterator[Result]:
    """The checks, each as it is done."""
    application = QApplication([])
    yield tried("plot", _plot)
    yield tried("icon", _icon)
    application.quit()


def _plot() -> str:
    """Draws a curve and looks for its pixels."""
    plot = pg.PlotWidget()
    plot.resize(400, 300)
    plot.plot(range(100), [(x - 50) ** 2 for x in range(100)], pen=pg.mkPen(_CURVE, width=2))
    image = plot.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    plot.close()
    pixels = sum(
        image.pixelColor(x, y) == _CURVE
        for x in range(image.width())
        for y in range(image.height())
    )
    if pixels < _FEWEST:
        raise Problem(f"The curve has {pixels} pixels, not {_FEWEST} or more.", "")
    return f"{pixels} pixels of a curve in {image.width()} x {image.height()}"


def _icon() -> str:
    """Whether Qt can draw the SVG files that the window shows."""
    pixmap = QIcon(str(files.resource("icons/foretoken.svg"))).pixmap(64, 64)
    if pixmap.isNull():
        raise Problem("The program's icon cannot be drawn.", "Install Foretoken again.")
    return f"{pixmap.width()} x {pixmap.height()}"
