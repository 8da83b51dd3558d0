"""The file from which a bench goes on: a line a finished run, and the costs of passes."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from app.run.cost import MethodCosts
from app.run.preparation import preparation
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.settings import RunSettings


class KeptRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="run"):
    """One finished turn of a prompt."""

    prompt: str
    category: str
    record: RunRecord


class KeptCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="method costs"):
    """What passes and guesses cost for the method of these settings, up to their draft length."""

    settings: RunSettings
    costs: MethodCosts

    def hold_for(self, wanted: RunSettings) -> bool:
        """Whether they are those of the same models and method, for drafts of this length."""
        mine = self.settings
        same = mine.method == wanted.method and mine.method_options == wanted.method_options
        return (
            same
            and preparation(mine) == preparation(wanted)
            and mine.draft_length >= wanted.draft_length
        )


class CostsOfAll(msgspec.Struct, frozen=True, tag="costs"):
    """A line of an earlier version: one measurement for all methods, which does not say for which
    of them it holds. It is passed over, and the costs are measured anew.
    """


_Line = KeptRun | KeptCosts | CostsOfAll


class BenchFile:
    """What was kept, and where more is kept; without a path nothing is written."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._runs: dict[tuple[str, bytes], KeptRun] = {}
        self._costs: list[KeptCosts] = []
        for one in _read(path) if path else []:
            self._take(one)

    def record(self, prompt: str, settings: RunSettings) -> RunRecord | None:
        """The record of this prompt with exactly these settings, if it is kept."""
        found = self._runs.get(_key(prompt, settings))
        return found.record if found else None

    def costs(self, wanted: RunSettings) -> MethodCosts | None:
        """The costs that were measured last for the method of these settings, if there are any."""
        held = [one for one in self._costs if one.hold_for(wanted)]
        return held[-1].costs if held else None

    def keep(self, one: KeptRun | KeptCosts) -> None:
        """Adds a line. Raises Problem if it cannot be written."""
        self._take(one)
        if self._path is None:
            return
        try:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(one) + b"\n")
        except OSError as error:
            raise Problem(
                f"{self._path} cannot be written: {error.strerror}.", "Name another file."
            ) from None

    def _take(self, one: _Line) -> None:
        if isinstance(one, KeptRun):
            self._runs[_key(one.prompt, one.record.settings)] = one
        elif isinstance(one, KeptCosts):
            self._costs.append(one)


def _key(prompt: str, settings: RunSettings) -> tuple[str, bytes]:
    """The same for the same prompt, turn and settings, and for the same replies before it."""
    return prompt, msgspec.json.encode(settings)


def _read(path: Path) -> list[_Line]:
    """What an earlier bench has kept; a last line that a kill has cut off is taken away."""
    try:
        if not path.exists():
            return []
        *lines, cut = path.read_bytes().split(b"\n")
        kept = [_decoded(line, number, path=path) for number, line in enumerate(lines, start=1)]
        if cut:
            os.truncate(path, path.stat().st_size - len(cut))
    except OSError as error:
        remedy = "Name a file that an earlier bench has written, or a new one."
        raise Problem(f"{path} cannot be read: {error.strerror}.", remedy) from None
    return kept


def _decoded(line: bytes, number: int, *, path: Path) -> _Line:
    try:
        return msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, ValueError):
        raise Problem(
            f"{path}, line {number} is not a run of a bench.",
            "Name the file that an earlier bench has written, or a new one.",
        ) from None
