"""A folder or a file that a person points at: the models that it is or holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.library.catalogue import Catalogue
from app.library.scan import Found, judged, scan
from app.library.scan_candidates import candidates_in
from app.library.scan_entry import Offering
from app.library.scan_walk import Folder
from app.library.whole_folder import Pause
from app.run.problems import Problem

PLACE = "your folder"
WANTED = "A folder with config.json and *.safetensors, or a GGUF file, is a model."
_OF_A_FOLDER = (".safetensors", ".json", ".bin", ".model", ".jinja")
"""Ends of files that stand for the folder they lie in."""


def look_into(
    path: Path,
    catalogue: Catalogue,
    *,
    pause: Pause,
    report: Callable[[str], None] = lambda told: None,
) -> tuple[Found, ...]:
    """The models at a path, usable or not. `pause` may raise Cancelled.

    Raises Problem for a path that is not there, and for one without a model.
    """
    path = path.expanduser().absolute()
    try:
        if path.is_dir():
            return _in_folder(path, catalogue, pause=pause, report=report)
        if not path.is_file():
            raise Problem(f"There is no {path}.", "Check that its drive is connected.")
        return _in_file(path, catalogue)
    except OSError as error:
        said = f"{path} cannot be read: {error.strerror or error}."
        raise Problem(said, "Check that you may read it.") from None


def _in_folder(
    path: Path, catalogue: Catalogue, *, pause: Pause, report: Callable[[str], None]
) -> tuple[Found, ...]:
    seen = scan([path], catalogue, pause=pause, report=report, usual=False)
    if not seen.found:
        told = " ".join((f"No model lies in {path}.", *seen.troubles[:1]))
        raise Problem(told, WANTED)
    return seen.found


def _in_file(path: Path, catalogue: Catalogue) -> tuple[Found, ...]:
    """The model of a GGUF file with all its parts, or of the folder that the file belongs to."""
    of_folder = path.suffix.lower() in _OF_A_FOLDER
    beside = sorted(other.name for other in path.parent.iterdir() if not other.is_dir())
    for one in candidates_in(Folder(path.parent, tuple(beside), ()), PLACE):
        if path == one.path or path in one.files or (of_folder and path.parent == one.path):
            return (judged(one, Offering(catalogue), {}),)
    raise Problem(f"{path} is no model.", WANTED)
