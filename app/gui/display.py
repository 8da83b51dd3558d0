"""Whether a window can be opened here; Qt itself would abort without a word a person can use."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import PySide6


def obstacle() -> str | None:
    """One line that says why no window can open and what to do; None if nothing is in the way."""
    asked = os.environ.get("QT_QPA_PLATFORM", "").split(":")[0].split(";")[0]
    if asked:
        return _unknown_platform(asked)
    if not sys.platform.startswith("linux"):
        return None
    if os.environ.get("WAYLAND_DISPLAY"):
        return None
    if not os.environ.get("DISPLAY"):
        return (
            "Foretoken cannot open a window: neither DISPLAY nor WAYLAND_DISPLAY is set. Start it "
            "in a desktop session, or use the command line: foretoken run --help"
        )
    return _missing_library() or _unreachable_display()


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


def _missing_library() -> str | None:
    """The X11 plugin needs a library that not every system has."""
    try:
        ctypes.CDLL("libxcb-cursor.so.0")
    except OSError:
        return (
            "Foretoken cannot open a window: libxcb-cursor.so.0 is missing. Install it (Debian and "
            "Ubuntu: apt install libxcb-cursor0; Fedora: dnf install xcb-util-cursor)"
        )
    return None


def _unreachable_display() -> str | None:
    """DISPLAY is set, but nobody answers there."""
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
            f"DISPLAY={os.environ['DISPLAY']}. Check it, or use the command line: "
            "foretoken run --help"
        )
    return None
