"""A path that a person has written, found on this machine: never taken for a name on the Hub."""

from __future__ import annotations

from pathlib import Path

from app.library.hub_folder import meant_in_cache
from app.library.weight_files import refuse_dangling
from app.run.problems import Problem

_ONE_PIECE = "Use a GGUF file in one piece: `llama-gguf-split --merge FIRST-PART WHOLE` makes one."


def find_on_disk(written: str) -> Path:
    """The folder of safetensors, or the GGUF file, that a written path means.

    Absolute, `~` expanded, the Hub's cache layout resolved to its snapshot. Raises Problem for a
    path that does not exist and for a folder that holds no model or several.
    """
    try:
        path = Path(written).expanduser().absolute()
    except RuntimeError as error:
        raise Problem(f"{written!r} names no home folder: {error}", "Write it out.") from error
    try:
        return _found(path)
    except OSError as error:
        raise Problem(
            f"{path} cannot be read: {error.strerror or error}.",
            "Check its spelling, and that you may read it.",
        ) from error


def _found(path: Path) -> Path:
    """What lies at a path. Raises OSError too."""
    if not path.exists():
        refuse_dangling(path)
        raise Problem(
            f"There is no folder {path}.",
            "Check its spelling, and whether its drive is connected.",
        )
    if path.is_file():
        return _gguf_file(path)
    return _model_in(meant_in_cache(path))


def _gguf_file(path: Path) -> Path:
    """The file itself, if it is a GGUF: by its name, or by its beginning, as Ollama keeps them."""
    if path.suffix.lower() != ".gguf" and not _begins_as_gguf(path):
        # In the Hub's cache, contents lie apart from the folder that gives them their names.
        folder = path.parents[1] if path.parent.name == "blobs" else path.parent
        raise Problem(f"{path} is a file, not a folder.", f"Name its folder: {folder}.")
    refuse_part(path)
    return path


def refuse_part(path: Path) -> None:
    """Raises Problem for a part of a split GGUF file, by its name."""
    if "-of-0" in path.stem:
        raise Problem(f"{path.name} is one part of several.", _ONE_PIECE)


def _begins_as_gguf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"


def _model_in(folder: Path) -> Path:
    """The folder, or its one GGUF file if it holds nothing else to load."""
    ggufs = sorted(folder.glob("*.gguf"))
    if not ggufs or (folder / "config.json").exists():
        return folder
    if len(ggufs) > 1:
        names = ", ".join(path.name for path in ggufs)
        raise Problem(f"{folder} holds several models: {names}.", "Name one of these files.")
    return _gguf_file(ggufs[0])
