"""What the config.json of a published EAGLE head says, in either of the two layouts.

SafeAILab's repositories (and SpecForge's exports) describe the head as a small Llama; the library
speculators wraps that description, and names the kind of head.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from app.library.json_text import decode
from app.library.model_files import read_json
from app.library.rotary import STEADY, Rotary
from app.run.problems import Problem

_HEAD_CLASS = re.compile(r"^Eagle\w*(CausalLM|Speculator|DraftModel)$|CausalLMEagle")
"""The classes that heads are of; models for pictures are called Eagle as well."""
_OTHER = "Choose an EAGLE-1, EAGLE-2 or EAGLE-3 head, or another method."


class _AuxiliaryLayers(msgspec.Struct, frozen=True):
    """Where SpecForge and what learned from it put the layers."""

    eagle_aux_hidden_state_layer_ids: list[int] | None = None


class _Decoder(msgspec.Struct, frozen=True):
    """The one layer, described as a model of transformers is; defaults are Llama's."""

    hidden_size: int | None = None
    intermediate_size: int | None = None
    num_attention_heads: int | None = None
    num_hidden_layers: int | None = None
    head_dim: int | None = None
    vocab_size: int | None = None
    rms_norm_eps: float = 1e-6
    hidden_act: str = "silu"
    rope_theta: float | None = None
    rope_scaling: Rotary | None = None
    rope_parameters: Rotary | None = None
    layer_types: list[str] | None = None


class EagleConfig(_Decoder, frozen=True):
    """A head's config.json, as far as the program asks."""

    architectures: list[str] | None = None
    draft_vocab_size: int | None = None
    target_hidden_size: int | None = None
    norm_before_residual: bool | None = None
    norm_before_fc: bool | None = None
    fc_norm: bool | None = None
    norm_output: bool | None = None
    eagle_aux_hidden_state_layer_ids: list[int] | None = None
    eagle_config: _AuxiliaryLayers | None = None
    speculators_model_type: str | None = None
    speculators_config: dict[str, Any] | None = None
    transformer_layer_config: _Decoder | None = None

    @property
    def decoder(self) -> _Decoder:
        """The description of the layer."""
        return self.transformer_layer_config or self

    @property
    def names_a_head(self) -> bool:
        """Whether it can only be a head's."""
        said = (self.speculators_model_type, self.draft_vocab_size, self.eagle_config)
        named = any(map(_HEAD_CLASS.search, self.architectures or ()))
        return named or any(one is not None for one in said)

    @property
    def layers(self) -> tuple[int, ...] | None:
        """The layers whose inputs the head reads, counted from 0; None where it names none.

        Named at the top they are inputs of layers, as vLLM and speculators count; SpecForge names
        the layers whose outputs are meant, and the next layer's input is that.
        """
        if self.eagle_aux_hidden_state_layer_ids:
            return tuple(self.eagle_aux_hidden_state_layer_ids)
        named = self.eagle_config and self.eagle_config.eagle_aux_hidden_state_layer_ids
        return tuple(layer + 1 for layer in named) if named else None

    @property
    def verifier(self) -> str:
        """The target that the head was made for, where it says so."""
        told = (self.speculators_config or {}).get("verifier")
        name = told.get("name_or_path") if isinstance(told, dict) else None
        return name if isinstance(name, str) else ""

    @property
    def rotary(self) -> dict[str, Any]:
        """How positions turn vectors, in the words of transformers' `rope_parameters`."""
        decoder = self.decoder
        told = decoder.rope_parameters or decoder.rope_scaling or Rotary()
        said: dict[str, Any] = msgspec.to_builtins(told)
        named = said.pop("type", "default")
        theta = decoder.rope_theta or 10000.0
        return {"rope_type": named, "rope_theta": theta} | said


def peek(folder: Path) -> EagleConfig | None:
    """What the config.json of a folder says of a head; None if it cannot be read as one's."""
    try:
        return decode((folder / "config.json").read_bytes(), EagleConfig)
    except (OSError, msgspec.DecodeError):
        return None


def read_config(folder: Path) -> EagleConfig:
    """The config.json of a head. Raises Problem for one that cannot be read."""
    return read_json(folder / "config.json", EagleConfig)


def refuse_odd(folder: Path, config: EagleConfig) -> None:
    """Raises Problem for a head that asks for what this version does not compute, by its name."""
    kind = config.speculators_model_type
    if kind not in (None, "eagle3"):
        raise Problem(f"{folder} holds a head of the kind {kind!r}, which is not run.", _OTHER)
    decoder = config.decoder
    rotary = config.rotary
    asked = STEADY.get(rotary["rope_type"], ())
    unsaid = [name for name in ("rope_theta", *asked) if not rotary.get(name, 0) > 0]
    odd = [
        (decoder.num_hidden_layers not in (None, 1), f"{decoder.num_hidden_layers} layers"),
        (decoder.hidden_act != "silu", f"the activation {decoder.hidden_act!r}"),
        ("sliding_attention" in (decoder.layer_types or ()), "a sliding window"),
        (rotary["rope_type"] not in STEADY, f"positions of the kind {rotary['rope_type']!r}"),
        (rotary.get("partial_rotary_factor", 1.0) != 1.0, "positions that turn a part only"),
        (bool(unsaid), f"positions without {', '.join(unsaid)}"),
        (bool(config.fc_norm and config.norm_before_fc), "both fc_norm and norm_before_fc"),
    ]
    if said := [what for is_odd, what in odd if is_odd]:
        raise Problem(
            f"The head in {folder} has {', '.join(said)}: such heads are not run.", _OTHER
        )
    sizes = ("hidden_size", "intermediate_size", "num_attention_heads", "vocab_size")
    lost = [name for name in sizes if (getattr(decoder, name) or 0) < 1]
    if lost:
        raise Problem(
            f"{folder / 'config.json'} does not say {', '.join(lost)}.", "Get the head again."
        )
