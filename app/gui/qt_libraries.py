"""Libraries of the system that Qt's wheels need on Linux and do not bring along."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from pathlib import Path

import PySide6

QT_NEEDS: Mapping[str, str] = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11.so.6": "libx11-6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libxkbcommon.so.0": "libxkbcommon0",
}
"""What any window needs: files, and Debian's packages of them."""

X11_NEEDS: Mapping[str, str] = {
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
}
"""What a window on an X server needs besides."""


def missing_libraries(x11: bool) -> str | None:
    """One line that names every library Qt lacks here, and what to install; None if none is."""
    qt = Path(PySide6.__file__).parent / "Qt"
    widgets = [qt / "lib" / f"libQt6{part}.so.6" for part in ("Widgets", "Network")]
    plugin = [qt / "plugins" / "platforms" / "libqxcb.so"] if x11 else []
    said = [error for file in (*widgets, *plugin) if file.exists() and (error := _refusal(file))]
    if not said:
        return None
    needed = {**QT_NEEDS, **(X11_NEEDS if x11 else {})}
    missing = [name for name in needed if _refusal(name)]
    if not missing:
        return f"Foretoken cannot open a window: a library of Qt cannot be loaded ({said[0]})"
    return _named(missing, dict.fromkeys(needed[name] for name in missing))


def _refusal(library: Path | str) -> str:
    """Why the system cannot load a library; "" if it can."""
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        return str(error)
    return ""


def _named(missing: Iterable[str], packages: Iterable[str]) -> str:
    return (
        "Foretoken cannot open a window: Qt needs libraries that are missing here: "
        f"{', '.join(missing)}. Install them. Debian and Ubuntu: sudo apt install "
        f"{' '.join(packages)}; elsewhere the package manager tells which packages hold these "
        "files (Fedora: dnf provides FILE; Arch: pacman -F FILE)"
    )
