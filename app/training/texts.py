"""Texts that a target has written, with its features, kept on disk in shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from app.run.problems import Problem

_UNKNOWN = -1
"""Stands for a choice of the target that was not computed: those within a prompt."""


@dataclass(frozen=True, slots=True)
class Text:
    """One conversation as the target read and wrote it."""

    ids: Tensor
    """Every id that was fed, prompt first: [n], int32."""
    best: Tensor
    """The target's likeliest token behind each, -1 where it was not asked: [n], int32."""
    features: Tensor
    """The target's features: [n, hidden]."""
    prompt: int
    """Tokens of the prompt."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def written(self) -> int:
        """Tokens that the target wrote."""
        return len(self.ids) - self.prompt


def text_of(ids: Sequence[int], best: Sequence[int], features: Tensor, *, prompt: int) -> Text:
    """A text from what was collected; `best` is of the last `len(best)` tokens."""
    unknown = [_UNKNOWN] * (len(ids) - len(best))
    return Text(
        ids=torch.tensor(ids, dtype=torch.int32),
        best=torch.tensor([*unknown, *best], dtype=torch.int32),
        features=features,
        prompt=prompt,
    )


class TextFolder:
    """Shards in one folder; a shard is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def shards(self) -> list[Path]:
        """The files, in the order of writing."""
        return sorted(self._folder.glob("texts-*.safetensors"))

    @property
    def byte_count(self) -> int:
        """Bytes on disk."""
        return sum(file.stat().st_size for file in self.shards)

    @property
    def written(self) -> int:
        """Tokens that the target wrote; the features are not read for it. Raises Problem for a
        shard that cannot be read.
        """
        return sum(_written(file) for file in self.shards)

    def add(self, texts: Sequence[Text]) -> Path:
        """Writes one more shard. Raises Problem if the disk does not take it."""
        name = f"texts-{len(self.shards):05}.safetensors"
        lengths = [len(text) for text in texts]
        tensors = {
            "ids": torch.cat([text.ids for text in texts]),
            "best": torch.cat([text.best for text in texts]),
            "features": torch.cat([text.features for text in texts]),
            "lengths": torch.tensor(lengths, dtype=torch.int32),
            "prompts": torch.tensor([text.prompt for text in texts], dtype=torch.int32),
        }
        unfinished = self._folder / f"{name}.part"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            save_file(tensors, unfinished)
            unfinished.replace(self._folder / name)
        except (OSError, SafetensorError) as error:
            raise Problem(
                f"The texts could not be written to {self._folder}: {error}.",
                "Make room on the disk, or choose another folder; what was written is kept.",
            ) from None
        return self._folder / name

    def read(self, shards: Sequence[Path] | None = None) -> Iterator[Text]:
        """Every text. Raises Problem for a shard that cannot be read."""
        for file in self.shards if shards is None else shards:
            try:
                held = load_file(file)
                lengths, prompts = held["lengths"].tolist(), held["prompts"].tolist()
                parts = [torch.split(held[name], lengths) for name in ("ids", "best", "features")]
            except (OSError, SafetensorError, KeyError, RuntimeError) as error:
                raise _unreadable(file, error) from None
            for ids, best, features, prompt in zip(*parts, prompts, strict=True):
                yield Text(ids, best, features, prompt)


def _written(file: Path) -> int:
    """Tokens of a shard that are not of its prompts."""
    try:
        with safe_open(file, framework="pt") as shard:
            lengths, prompts = (shard.get_tensor(name) for name in ("lengths", "prompts"))
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise _unreadable(file, error) from None
    return int(lengths.sum() - prompts.sum())


def _unreadable(file: Path, error: Exception) -> Problem:
    return Problem(
        f"The texts in {file} cannot be read: {error}.",
        "Delete that file; the texts in it are written anew.",
    )
