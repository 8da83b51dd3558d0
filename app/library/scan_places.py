"""Where the programs that people run models with keep them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

import msgspec

Layout = Literal["hub", "ollama", "folder"]


class Place(msgspec.Struct, frozen=True):
    """A place that may hold models, whose they are, and how it is laid out."""

    whose: str
    folder: Path
    layout: Layout = "folder"


def usual_places() -> list[Place]:
    """The places of this person and this system, there or not; the environment has its say."""
    places = [Place("Hugging Face cache", hub_cache(), "hub")]
    for home in _homes():
        studio = (home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models")
        places += [Place("LM Studio", folder) for folder in studio]
    places += [Place("llama.cpp", folder) for folder in _llama_cpp()]
    places += [Place("Ollama", folder, "ollama") for folder in _ollama()]
    return places


def hub_cache() -> Path:
    """The cache of the Hugging Face Hub, by the rules of its own library."""
    if named := _said("HF_HUB_CACHE") or _said("HUGGINGFACE_HUB_CACHE"):
        return named
    return (_said("HF_HOME") or _caches() / "huggingface") / "hub"


def _llama_cpp() -> list[Path]:
    if named := _said("LLAMA_CACHE"):
        return [named]
    if sys.platform == "darwin":
        return [home / "Library" / "Caches" / "llama.cpp" for home in _homes()]
    if sys.platform == "win32":
        local = _said("LOCALAPPDATA")
        return [local / "llama.cpp"] if local else []
    return [_caches() / "llama.cpp"]


def _ollama() -> list[Path]:
    if named := _said("OLLAMA_MODELS"):
        return [named]
    places = [home / ".ollama" / "models" for home in _homes()]
    if sys.platform.startswith("linux"):  # where its service keeps them
        places.append(Path("/usr/share/ollama/.ollama/models"))
    return places


def _caches() -> Path:
    return _said("XDG_CACHE_HOME") or Path(os.path.expanduser("~/.cache"))


def _homes() -> list[Path]:
    """The person's home folder; none where the system names none."""
    try:
        return [Path.home()]
    except RuntimeError:
        return []


def _said(variable: str) -> Path | None:
    """The folder that a variable of the environment names."""
    value = os.environ.get(variable, "").strip()
    return Path(os.path.expandvars(os.path.expanduser(value))).absolute() if value else None
