"""A training's hold on its folder, and the time that was spent."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.library.training_folder import CLAIM, Claimed, Identity, differences, read_claim
from app.run.problems import Problem


class Claim:
    """A folder that belongs to one training."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        """Takes a new folder, or goes on with its own.

        Raises Problem if it belongs to another training, or cannot be written.
        """
        self._file = folder / CLAIM
        self._claim = read_claim(folder) or Claimed(identity)
        different = differences(self._claim.identity, identity)
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
