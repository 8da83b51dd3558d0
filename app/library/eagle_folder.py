"""A published EAGLE head as it lies in a folder, checked by its config and its headers alone.

EAGLE-1 and 2 (Li et al. 2024, arXiv 2401.15077 and 2406.16858) share their weights' layout; EAGLE-3
(Li et al. 2025, arXiv 2503.01840) reads inner layers of its target and guesses from a vocabulary
of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from app.library.eagle_config import EagleConfig, peek, read_config, refuse_odd
from app.library.head_size import HeadSize
from app.library.weight_files import TensorPlace, WeightFile, weight_files
from app.run.problems import Problem

Kind = Literal["eagle-1", "eagle-3"]
_AGAIN = "Get the head again, or another one for this target."
_LAYER = "layers.0."
_UNREAD = ("rotary_emb.inv_freq", "verifier_norm.weight", "verifier_lm_head.weight")
"""Ends of names that may be there and tell nothing new."""
_TRACES = {"midlayer.hidden_norm.weight", "layers.0.hidden_norm.weight", "d2t"}
"""Names that only EAGLE-3 has."""


class EagleForm(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to know of an EAGLE head before its weights are read."""

    kind: Kind
    title: str
    """What it is called: the target's name where it tells it, else its folder's."""
    hidden: int
    intermediate: int
    heads: int
    head_size: int
    shared_heads: int
    """Heads of keys and values."""
    norm_epsilon: float
    target_hidden: int
    target_vocabulary: int
    """Ids of the target."""
    vocabulary: int
    """Tokens that it can guess."""
    layers: tuple[int, ...] | None
    """The target's layers whose inputs it reads; none: its last feature; None: left to the target's
    count of layers."""
    rotary: dict[str, Any]
    """As transformers' `rope_parameters`."""
    norm_before_fc: bool
    """Whether what it reads of its target is normed, all at once."""
    fc_norm: bool
    """Whether what it reads of its target is normed, each layer's by itself."""
    norm_before_residual: bool
    norm_output: bool
    """Whether what is fed back is normed."""
    names: dict[str, str]
    """The names of its tensors in the files, by the names of SafeAILab's first layout."""

    @property
    def feature_count(self) -> int:
        """States of the target that it reads of each token."""
        return 1 if self.layers == () else len(self.layers or (0, 0, 0))

    def has(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        return name in self.names

    def layers_of(self, count: int) -> tuple[int, ...]:
        """The layers whose inputs it reads, of a target with so many. Raises Problem for one that
        the target does not have.
        """
        layers = (2, count // 2, count - 3) if self.layers is None else self.layers
        if all(0 <= layer < count for layer in layers):
            return layers
        raise Problem(
            f"{self.title} reads the inputs of the layers {', '.join(map(str, layers))} (counted "
            f"from 0), and the target has {count} layers.",
            "Choose its own target, or another head.",
        )


def is_eagle(folder: Path) -> bool:
    """Whether a folder holds a published head: its config says so, or the names of its weights."""
    config = peek(folder)
    if config is None:
        return False
    if config.names_a_head:
        return True
    if config.decoder.num_hidden_layers != 1:
        return False
    try:
        return "fc.weight" in _tensors(weight_files(folder))
    except (Problem, OSError):
        return False


def check_eagle(folder: Path) -> tuple[EagleForm, tuple[WeightFile, ...]]:
    """Reads a head's config and the headers of its weights. Raises Problem for what cannot be run,
    for weights that are no safetensors, and for those that are not what the config tells of.
    """
    config = read_config(folder)
    try:
        files = weight_files(folder)
    except OSError as error:
        remedy = "Check that the drive is connected and that you may read the folder."
        raise Problem(f"The weights in {folder} cannot be read: {error}.", remedy) from error
    places = _tensors(files)
    if not config.names_a_head and "fc.weight" not in places:
        raise Problem(f"{folder} holds no draft head.", "Choose the folder of one.")
    refuse_odd(folder, config)
    names = {_first_layout(name): name for name in places if not name.endswith(_UNREAD)}
    form = _form(folder, config, {name: places[names[name]] for name in names}, names)
    _refuse_shapes(folder, form, {name: places[names[name]].shape for name in names})
    return form, files


def size_of(form: EagleForm, files: tuple[WeightFile, ...]) -> HeadSize:
    """The memory that the head takes for itself.

    Embeddings of the target's shape are not among it: published heads carry a copy of the target's,
    and where it is that, the target's own serve.
    """
    elements = {name: place.elements for name, place in _tensors(files).items()}
    shared = {"d2t", "t2d"}
    if form.hidden == form.target_hidden:
        shared.add("embed_tokens.weight")
    read = [name for name in form.names if name not in shared]
    return HeadSize(
        weights=sum(elements[form.names[name]] for name in read),
        kept=2 * form.shared_heads * form.head_size,
        features=form.feature_count * form.target_hidden,
    )


def _tensors(files: tuple[WeightFile, ...]) -> dict[str, TensorPlace]:
    return {name: place for file in files for name, place in file.tensors.items()}


def _first_layout(name: str) -> str:
    """A tensor's name, with the one layer called as EAGLE-1 called it."""
    return _LAYER + name.removeprefix("midlayer.") if name.startswith("midlayer.") else name


def _form(
    folder: Path, config: EagleConfig, places: Mapping[str, TensorPlace], names: dict[str, str]
) -> EagleForm:
    """What config and headers say together; whether they agree is seen from all shapes."""
    decoder = config.decoder
    asked = ("fc.weight", *(f"{_LAYER}self_attn.{one}_proj.weight" for one in "qk"))
    lost = [name for name in asked if len(places.get(name, _NO_PLACE).shape) != 2]
    if lost:
        raise Problem(f"The head in {folder} lacks {', '.join(lost)}.", _AGAIN)
    third = config.speculators_model_type is not None or config.draft_vocab_size is not None
    third = third or bool(_TRACES & {*places, *names.values()})
    hidden, heads = decoder.hidden_size or 0, decoder.num_attention_heads or 0
    size = decoder.head_dim or places[asked[1]].shape[0] // heads
    layers = config.layers if third else ()
    count = len(layers or (0, 0, 0)) if third else 1
    width = places["fc.weight"].shape[1]
    vocabulary = decoder.vocab_size or 0
    rows = next(iter(places.get("lm_head.weight", _NO_PLACE).shape), vocabulary)
    return EagleForm(
        kind="eagle-3" if third else "eagle-1",
        title=config.verifier or folder.name,
        hidden=hidden,
        intermediate=decoder.intermediate_size or 0,
        heads=heads,
        head_size=size,
        shared_heads=places[asked[2]].shape[0] // max(size, 1),
        norm_epsilon=decoder.rms_norm_eps,
        target_hidden=config.target_hidden_size or (width // count if third else hidden),
        target_vocabulary=vocabulary,
        vocabulary=(config.draft_vocab_size or rows) if third else vocabulary,
        layers=layers,
        rotary=config.rotary,
        norm_before_fc=third and (bool(config.norm_before_fc) or "input_norm.weight" in names),
        fc_norm=third and (bool(config.fc_norm) or "fc_norm.0.weight" in names),
        norm_before_residual=bool(config.norm_before_residual),
        norm_output=bool(config.norm_output),
        names=names,
    )


_NO_PLACE = TensorPlace("", (), (0, 0))


def _refuse_shapes(folder: Path, form: EagleForm, found: Mapping[str, tuple[int, ...]]) -> None:
    """Raises Problem unless the tensors are those of the form, no fewer and no others."""
    needed, optional = _needed(form), _optional(form)
    lost = [name for name in needed if name not in found]
    if lost:
        raise Problem(f"The head in {folder} lacks {_listed(lost)}.", _AGAIN)
    unknown = [form.names[name] for name in found if name not in needed and name not in optional]
    if unknown:
        raise Problem(
            f"The head in {folder} holds {_listed(unknown)}, which this version does not know.",
            "Choose another head: leaving parts out would change what it guesses.",
        )
    for name, shape in {**needed, **optional}.items():
        if name in found and found[name] != shape:
            raise Problem(
                f"The head in {folder} holds {form.names[name]} of the shape {list(found[name])}; "
                f"by its config.json that is {list(shape)}.",
                _AGAIN,
            )
    if not form.has("embed_tokens.weight") and form.hidden != form.target_hidden:
        raise Problem(
            f"The head in {folder} has no embeddings of its own, and is of another width "
            f"({form.hidden}) than its target ({form.target_hidden}).",
            _AGAIN,
        )
    if form.vocabulary != form.target_vocabulary and not form.has("d2t"):
        raise Problem(
            f"The head in {folder} guesses {form.vocabulary} of {form.target_vocabulary} tokens, "
            "but no d2t says which.",
            _AGAIN,
        )


def _needed(form: EagleForm) -> dict[str, tuple[int, ...]]:
    """The tensors that a head of this form has, with their shapes."""
    hidden, inside, third = form.hidden, form.intermediate, form.kind == "eagle-3"
    queries, keys = form.heads * form.head_size, form.shared_heads * form.head_size
    read = 2 * hidden if third else hidden
    wide = form.feature_count * form.target_hidden if third else 2 * hidden
    shapes: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, wide),
        f"{_LAYER}self_attn.q_proj.weight": (queries, read),
        f"{_LAYER}self_attn.k_proj.weight": (keys, read),
        f"{_LAYER}self_attn.v_proj.weight": (keys, read),
        f"{_LAYER}self_attn.o_proj.weight": (hidden, queries),
        f"{_LAYER}mlp.gate_proj.weight": (inside, hidden),
        f"{_LAYER}mlp.up_proj.weight": (inside, hidden),
        f"{_LAYER}mlp.down_proj.weight": (hidden, inside),
        f"{_LAYER}post_attention_layernorm.weight": (hidden,),
    }
    if third:
        shapes |= {
            f"{_LAYER}input_layernorm.weight": (hidden,),
            f"{_LAYER}hidden_norm.weight": (hidden,),
            "norm.weight": (hidden,),
            "lm_head.weight": (form.vocabulary, hidden),
        }
    if form.norm_before_fc:
        shapes["input_norm.weight"] = (wide,)
    if form.fc_norm:
        for place in range(form.feature_count):
            shapes[f"fc_norm.{place}.weight"] = (form.target_hidden,)
    return shapes


def _optional(form: EagleForm) -> dict[str, tuple[int, ...]]:
    """The tensors that it may have besides."""
    hidden, third = form.hidden, form.kind == "eagle-3"
    queries, keys = form.heads * form.head_size, form.shared_heads * form.head_size
    shapes: dict[str, tuple[int, ...]] = {
        "embed_tokens.weight": (form.target_vocabulary, hidden),
        f"{_LAYER}self_attn.q_proj.bias": (queries,),
        f"{_LAYER}self_attn.k_proj.bias": (keys,),
        f"{_LAYER}self_attn.v_proj.bias": (keys,),
        f"{_LAYER}self_attn.o_proj.bias": (hidden,),
        f"{_LAYER}self_attn.q_norm.weight": (form.head_size,),
        f"{_LAYER}self_attn.k_norm.weight": (form.head_size,),
    }
    if not third:
        return shapes | {"fc.bias": (hidden,)}
    return shapes | {"d2t": (form.vocabulary,), "t2d": (form.target_vocabulary,)}


def _listed(names: list[str]) -> str:
    """Up to four names, and how many more there are."""
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
