"""Whose a training folder is: what its texts and its head are for, and the time that was spent."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.run.problems import Problem

_FILE = "training.json"


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What cannot change from one time to the next."""

    target: str
    """The target's name."""
    fingerprint: str
    """Of its weights."""
    prompts: str
    """A hash of a person's own prompts; empty for generated ones."""
    seed: int
    draft_vocabulary: int


class _Claim(msgspec.Struct, forbid_unknown_fields=True):
    identity: Identity
    writing_seconds: float = 0.0


class Claim:
    """A folder that belongs to one training."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        """Takes a new folder, or goes on with its own.

        Raises Problem if it belongs to another training, or cannot be written.
        """
        self._file = folder / _FILE
        self._claim = self._read() or _Claim(identity)
        theirs = self._claim.identity
        different = [
            f"{field.replace('_', ' ')} {getattr(theirs, field)!r} instead of "
            f"{getattr(identity, field)!r}"
            for field in Identity.__struct_fields__
            if getattr(theirs, field) != getattr(identity, field)
        ]
        if different:
            raise Problem(
                f"{folder} holds another training: {'; '.join(different)}.",
                "Choose another folder, or ask for the same as before to go on with it.",
            )
        self._write()

    @property
    def writing_seconds(self) -> float:
        """Seconds in which the target has written so far."""
        return self._claim.writing_seconds

    def spend(self, seconds: float) -> None:
        """Notes that the target has written for so many seconds in all."""
        self._claim.writing_seconds = seconds
        self._write()

    def _read(self) -> _Claim | None:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=_Claim)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise Problem(
                f"{self._file} cannot be read: {error}.", "Choose another folder, or delete it."
            ) from None

    def _write(self) -> None:
        unfinished = self._file.with_suffix(".part")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(self._claim)))
            unfinished.replace(self._file)
        except OSError as error:
            raise Problem(
                f"{self._file} cannot be written: {error.strerror or error}.",
                "Choose another folder, or make room on the disk.",
            ) from None
