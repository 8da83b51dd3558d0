"""Where things live, in a source tree, an installed wheel, or a frozen program."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from platformdirs import PlatformDirs

_HOME_VARIABLE = "FORETOKEN_HOME"


def program_folder() -> Path:
    """The folder that holds `models.yaml` and `resources`."""
    frozen = getattr(sys, "_MEIPASS", None)
    if frozen:
        return Path(frozen)
    package = Path(__file__).resolve().parent
    source_tree = package.parent
    return source_tree if (source_tree / "models.yaml").is_file() else package


def resource(name: str) -> Path:
    """The path of the file `name` among the resources that ship with the program."""
    return program_folder() / "resources" / name


def shipped_catalogue() -> Path:
    """The `models.yaml` that ships with the program."""
    return program_folder() / "models.yaml"


def user_catalogue() -> Path:
    """The person's own `models.yaml`, whose entries win over the shipped ones."""
    return _user_folder("config") / "models.yaml"


def window_choices() -> Path:
    """What the person has chosen in the window for good."""
    return _user_folder("config") / "window.ini"


def data_folder() -> Path:
    """What was fetched or made and must be kept: model files, the history."""
    return _user_folder("data")


def history_file() -> Path:
    """The database of the runs that were kept."""
    return data_folder() / "history.sqlite"


def kept_texts_file() -> Path:
    """The database of the texts that suffix decoding copies from."""
    return data_folder() / "texts.sqlite"


def cache_folder() -> Path:
    """What can be made again: converted models, measurements of this machine."""
    return _user_folder("cache")


def log_folder() -> Path:
    """Where the program writes its logs."""
    return _user_folder("log")


def _user_folder(kind: str) -> Path:
    """The person's folder of this kind, all below one folder if FORETOKEN_HOME names it."""
    home = os.environ.get(_HOME_VARIABLE)
    if home:
        return Path(home).expanduser().resolve() / kind
    folders = PlatformDirs("foretoken", appauthor=False)
    return Path(getattr(folders, f"user_{kind}_dir"))
