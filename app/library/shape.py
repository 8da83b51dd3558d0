"""The sizes of a model from which the memory it takes follows, whoever tells them."""

from __future__ import annotations

from typing import Annotated

import msgspec

_Count = Annotated[int, msgspec.Meta(gt=0)]


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decoder in numbers, named as a config.json names them; the file's own, never guessed."""

    parameters: _Count
    """Every weight, each once: an output layer that shares the embeddings' table adds none."""
    layers: _Count
    hidden: _Count
    """Numbers a token is described by between layers."""
    heads: _Count
    """Of the queries."""
    key_value_heads: _Count
    head_size: _Count
    """Numbers of one head; not always `hidden / heads`."""
    intermediate: _Count
    """Numbers inside a feed-forward layer; of one expert, in a mixture."""
    vocabulary: _Count
    """Rows of the output layer, padding included."""
    tied: bool
    """Whether the output layer is the embeddings' table."""
    context_length: _Count | None = None
