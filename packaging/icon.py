"""Draws the program's icon for systems that take no SVG.

python packaging/icon.py ico build/foretoken.ico           for Windows
python packaging/icon.py iconset build/foretoken.iconset   for macOS's iconutil
"""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
from PySide6.QtGui import QGuiApplication, QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgRenderer

DRAWING = Path(__file__).resolve().parents[1] / "resources" / "icons" / "foretoken.svg"


def png(size: int) -> bytes:
    """The icon as a PNG of so many pixels a side."""
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(DRAWING)).render(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(buffer.data().data())


def ico(file: Path) -> None:
    """Windows' format: a table of sizes, then a PNG for each."""
    sizes = (16, 24, 32, 48, 64, 128, 256)
    images = [png(size) for size in sizes]
    place = 6 + 16 * len(images)
    table = struct.pack("<HHH", 0, 1, len(images))
    for size, image in zip(sizes, images, strict=True):
        side = size % 256  # 0 stands for 256
        table += struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(image), place)
        place += len(image)
    file.write_bytes(table + b"".join(images))


def iconset(folder: Path) -> None:
    """A folder as iconutil takes it: each size at once and at twice the pixels."""
    folder.mkdir(exist_ok=True)
    for size in (16, 32, 128, 256, 512):
        (folder / f"icon_{size}x{size}.png").write_bytes(png(size))
        (folder / f"icon_{size}x{size}@2x.png").write_bytes(png(2 * size))


MAKERS = {"ico": ico, "iconset": iconset}


def main(arguments: list[str]) -> int:
    """Draws what was asked for; returns the exit code."""
    if len(arguments) != 2 or arguments[0] not in MAKERS:
        print(__doc__, file=sys.stderr)
        return 2
    application = QGuiApplication([])
    target = Path(arguments[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    MAKERS[arguments[0]](target)
    del application
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
