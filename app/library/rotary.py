"""How positions turn a layer's vectors, as a config.json tells it in the words of transformers."""

from __future__ import annotations

import msgspec

STEADY: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "llama3": (
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        "original_max_position_embeddings",
    ),
    "yarn": ("factor", "original_max_position_embeddings"),
}
"""Kinds whose angles do not depend on how long the text is, and the numbers that each needs."""


class Rotary(msgspec.Struct, frozen=True, omit_defaults=True):
    """A `rope_parameters`, or the older `rope_scaling`, whose kind may be called `type`."""

    rope_type: str | None = None
    type: str | None = None
    rope_theta: float | None = None
    factor: float | None = None
    low_freq_factor: float | None = None
    high_freq_factor: float | None = None
    original_max_position_embeddings: int | None = None
    attention_factor: float | None = None
    beta_fast: float | None = None
    beta_slow: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool | None = None
    partial_rotary_factor: float | None = None
