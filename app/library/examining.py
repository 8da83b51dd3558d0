"""What a model on this machine is, and whether it can be loaded: its headers say, in milliseconds.

An unreadable or broken model is an answer too, with its reason and its remedy.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.library.gguf_check import gguf_facts, refuse_gguf
from app.library.gguf_header import GgufHeader
from app.library.head_folder import check_head
from app.library.model_files import Config, read_json
from app.library.preflight import check
from app.library.scan_candidates import Candidate, Kind
from app.library.scan_walk import size_of
from app.library.weight_files import unfinished_files
from app.run.problems import Problem


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """A model, as far as its headers tell; None or empty: they do not."""

    path: Path
    kind: Kind
    loads: bool
    reason: str = ""
    """Why it cannot be loaded."""
    remedy: str = ""
    architecture: str = ""
    model_type: str = ""
    parameters: int | None = None
    context_length: int | None = None
    quantisation: str = ""
    """How its weights are held: a type such as bfloat16, a GGUF format, or a method (gptq)."""
    bytes_on_disk: int
    notes: tuple[str, ...] = ()


def examine(candidate: Candidate) -> Examined:
    """What a candidate is. Never raises for what lies on the disk."""
    path = candidate.path
    parts: Iterable[Path] = candidate.files or (path,)
    size = sum(map(size_of, parts)) if path.is_file() else folder_bytes(path)
    blank = Examined(
        path=path,
        kind=candidate.kind,
        loads=False,
        reason=candidate.reason,
        remedy=candidate.remedy,
        bytes_on_disk=size,
        notes=candidate.notes,
    )
    if candidate.kind == "other":
        return blank
    look = {"GGUF file": _gguf, "safetensors folder": _folder, "draft head": _head}[candidate.kind]
    try:
        return look(blank)
    except Problem as problem:
        return _refused(blank, problem)
    except OSError as error:
        said = f"{error.filename or path} cannot be read: {error.strerror or error}."
        return _refused(blank, Problem(said, "Check that you may read it, and the drive."))


def folder_bytes(folder: Path) -> int:
    """Bytes of the files directly in a folder, links followed; 0 if it cannot be read."""
    try:
        return sum(size_of(path) for path in folder.iterdir() if path.is_file())
    except OSError:
        return 0


def _refused(told: Examined, problem: Problem) -> Examined:
    return msgspec.structs.replace(told, loads=False, reason=problem.message, remedy=problem.remedy)


def _gguf(told: Examined) -> Examined:
    header = GgufHeader(told.path)
    facts = gguf_facts(header)
    known = msgspec.structs.replace(
        told,
        architecture=facts.architecture,
        model_type=facts.architecture,
        parameters=facts.parameters,
        context_length=facts.context_length,
        quantisation=facts.quantisation,
        loads=True,
    )
    try:
        refuse_gguf(header)
    except Problem as problem:
        return _refused(known, problem)
    return known


def _folder(told: Examined) -> Examined:
    try:
        facts = check(told.path)
    except Problem as problem:
        return _refused(_from_config(told), _with_unfinished(told.path, problem))
    return msgspec.structs.replace(
        told,
        architecture=facts.architecture,
        model_type=facts.model_type,
        parameters=facts.parameters,
        context_length=facts.context_length,
        quantisation=facts.quantised.method if facts.quantised else facts.dtype,
        notes=(*told.notes, *facts.notes),
        loads=True,
    )


def _from_config(told: Examined) -> Examined:
    """What config.json alone says of a folder that cannot be loaded; nothing if it is broken."""
    try:
        config = read_json(told.path / "config.json", Config)
    except (Problem, OSError):
        return told
    return msgspec.structs.replace(
        told,
        architecture=", ".join(config.architectures or []),
        model_type=config.model_type,
        context_length=config.text.max_position_embeddings,
    )


def _with_unfinished(folder: Path, problem: Problem) -> Problem:
    """The problem, naming unfinished downloads beside what they left out."""
    try:
        names = ", ".join(path.name for path in unfinished_files(folder)[:3])
    except OSError:
        names = ""
    if not names or "nfinished" in problem.message:
        return problem
    return Problem(f"{problem.message} Unfinished downloads: {names}.", problem.remedy)


def _head(told: Examined) -> Examined:
    facts = check_head(told.path)
    return msgspec.structs.replace(
        told,
        architecture=facts.name,
        parameters=sum(place.elements for place in facts.tensors.values()),
        quantisation=facts.stored,
        loads=True,
    )
