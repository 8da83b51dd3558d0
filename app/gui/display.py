"""Whether a window can be opened here; Qt itself would abort without a word a person can use."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import PySide6

from app.gui.qt_libraries import missing_libraries


def obstacle() -> str | None:
    """One line that says why no window can open and what to do; None if nothing is in the way."""
    asked = os.environ.get("QT_QPA_PLATFORM", "").split(":")[0].split(";")[0]
    unknown = _unknown_platform(asked) if asked else None
    if unknown or not sys.platform.startswith("linux"):
        return unknown
    wayland, display = os.environ.get("WAYLAND_DISPLAY"), os.environ.get("DISPLAY")
    if not (asked or wayland or display):
        return (
            "Foretoken cannot open a window: neither DISPLAY nor WAYLAND_DISPLAY is set. Start it "
            "in a desktop session, or use the command line: foretoken run --help"
        )
    x11 = asked == "xcb" or not (asked or wayland)
    return missing_libraries(x11) or (_unreachable_display() if x11 else None)


def _unknown_platform(asked: str) -> str | None:
    """QT_QPA_PLATFORM names a plugin that this Qt does not have."""
    folder = Path(PySide6.__file__).parent
    found = {
        file.stem.removeprefix("lib").removeprefix("q")
        for plugins in (folder / "Qt" / "plugins", folder / "plugins")
        for file in (plugins / "platforms").glob("*q*")
    }
    if not found or asked in found:
        return None
    known = ", ".join(sorted(found))
    return f"QT_QPA_PLATFORM is {asked!r}, which Qt does not have here. Unset it, or use: {known}"


def _unreachable_display() -> str | None:
    """No X server answers where DISPLAY says that one is."""
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return None
    xcb.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(xcb.xcb_connect(None, None))
    failed = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    if failed:
        return (
            "Foretoken cannot open a window: no X server answers at "
            f"DISPLAY={os.environ.get('DISPLAY', '')}. Check it, or use the command line: "
            "foretoken run --help"
        )
    return None
