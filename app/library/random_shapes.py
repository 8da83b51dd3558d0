"""Shapes of known models, which `bench --random-model` fills with random weights: a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from app.library.shape import Shape
from app.run.problems import Problem

Kind = Literal["llama", "qwen2"]
"""The kind of a decoder, as a config.json names it."""


class RandomShape(msgspec.Struct, frozen=True):
    """A decoder's sizes, as the config.json of the model that it is named for has them."""

    name: str
    of: str
    """The model that has this shape."""
    kind: Kind
    layers: int
    hidden: int
    heads: int
    key_value_heads: int
    intermediate: int
    vocabulary: int
    tied: bool
    context_length: int
    rope: Mapping[str, Any]

    @property
    def biased(self) -> bool:
        """Whether queries, keys and values have a bias."""
        return self.kind == "qwen2"

    @property
    def head_size(self) -> int:
        """Numbers of one head."""
        return self.hidden // self.heads

    @property
    def parameters(self) -> int:
        """Weights, each once: an output layer that is the table of embeddings adds none."""
        keys = self.key_value_heads * self.head_size
        attention = 2 * self.hidden * self.hidden + 2 * self.hidden * keys
        attention += (self.hidden + 2 * keys) if self.biased else 0
        layer = attention + 3 * self.hidden * self.intermediate + 2 * self.hidden
        tables = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * layer + self.hidden + tables

    @property
    def sizes(self) -> Shape:
        """The same for whoever plans memory."""
        return Shape(
            parameters=self.parameters,
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            key_value_heads=self.key_value_heads,
            head_size=self.head_size,
            intermediate=self.intermediate,
            vocabulary=self.vocabulary,
            tied=self.tied,
            context_length=self.context_length,
        )


_LLAMA_3: dict[str, Any] = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
_OF_1B, _OF_8B = {**_LLAMA_3, "factor": 32.0}, {**_LLAMA_3, "factor": 8.0}
_OF_QWEN = {"rope_type": "default", "rope_theta": 1_000_000.0}
_OF_TINY = {"rope_type": "default", "rope_theta": 10_000.0}

# fmt: off
RANDOM_SHAPES: dict[str, RandomShape] = {
    shape.name: shape
    for shape in (
        #           name, of, kind, layers, hidden, heads, shared heads, inside, ids, tied, context
        RandomShape("llama-8b", "Llama 3.1 8B", "llama", 32, 4096, 32, 8, 14336, 128256, False, 131072, _OF_8B),  # noqa: E501
        RandomShape("llama-1b", "Llama 3.2 1B", "llama", 16, 2048, 32, 8, 8192, 128256, True, 131072, _OF_1B),  # noqa: E501
        RandomShape("qwen-0.5b", "Qwen2.5 0.5B", "qwen2", 24, 896, 14, 2, 4864, 151936, True, 32768, _OF_QWEN),  # noqa: E501
        RandomShape("tiny", "a toy for a CPU", "llama", 4, 128, 4, 2, 256, 512, True, 2048, _OF_TINY),  # noqa: E501
        RandomShape("tiny-draft", "a toy's draft", "llama", 1, 64, 2, 1, 128, 512, True, 2048, _OF_TINY),  # noqa: E501
    )
}
# fmt: on
"""Every shape by its name."""

NO_DRAFT = "none"
"""What is said in the place of a draft's shape where there is to be none."""


def random_shape(name: str) -> RandomShape:
    """The shape of this name. Raises Problem if there is none."""
    if name not in RANDOM_SHAPES:
        raise Problem(
            f"There is no shape {name!r} for random weights.",
            f"Choose one of: {', '.join(RANDOM_SHAPES)}.",
        )
    return RANDOM_SHAPES[name]


def draft_shape(target: RandomShape, asked: str | None) -> RandomShape | None:
    """The shape that is to draft for a target: the one asked for, or the next smaller one that
    reads the same ids. None where there is none, or where none is asked for.

    Raises Problem for a shape that there is not, or that reads other ids.
    """
    if asked == NO_DRAFT:
        return None
    if asked is not None:
        found = random_shape(asked)
        if found.vocabulary != target.vocabulary:
            raise Problem(
                f"{found.name} reads {found.vocabulary} ids and {target.name} "
                f"{target.vocabulary}: it cannot draft for it.",
                f"Choose {_or(_of_same_ids(target))}.",
            )
        return found
    smaller = [one for one in _of_same_ids(target) if one.parameters < target.parameters]
    return max(smaller, key=lambda one: one.parameters, default=None)


def _of_same_ids(target: RandomShape) -> list[RandomShape]:
    return [one for one in RANDOM_SHAPES.values() if one.vocabulary == target.vocabulary]


def _or(shapes: list[RandomShape]) -> str:
    return " or ".join([*(one.name for one in shapes), NO_DRAFT])
