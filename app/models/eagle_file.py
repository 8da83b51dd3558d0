"""Published EAGLE heads: their weights, read beside the target that they are for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from app.library.eagle_folder import EagleForm
from app.library.head_folder import HeadFacts
from app.models.eagle_head import Eagle1Head, Eagle3Head, EagleHead
from app.models.head_parts import HeadParts
from app.models.language_model import LanguageModel
from app.run.problems import Problem

_LAYER = "layers.0."
_NAMES = {
    "fc.": "fc.",
    "input_norm.": "states_norm.",
    "fc_norm.": "state_norms.",
    f"{_LAYER}self_attn.": "",
    f"{_LAYER}mlp.": "",
    f"{_LAYER}input_layernorm.": "embedding_norm.",
    f"{_LAYER}hidden_norm.": "feature_norm.",
    f"{_LAYER}post_attention_layernorm.": "between_norm.",
    "norm.": "norm.",
    "lm_head.": "output.",
}
"""What names of tensors begin with, and what stands in its place in a module's names."""


def eagle_parts(facts: HeadFacts, target: LanguageModel) -> HeadParts:
    """The head beside its target, its weights as they are stored.

    Raises Problem for weights that cannot be read, for a vocabulary that is none of the target's,
    and for a target without the layers that the head reads.
    """
    form = facts.description
    assert isinstance(form, EagleForm)
    held = _read(facts, form)
    ids = _ids(facts, form, held)
    inner: Any = target.inner
    embeddings = _embeddings(held.pop("embed_tokens.weight", None), inner, target)
    with torch.device("meta"):
        module: EagleHead = Eagle3Head(form) if form.kind == "eagle-3" else Eagle1Head(form)
    try:
        module.load_state_dict({_module_name(name): held[name] for name in held}, assign=True)
    except RuntimeError as error:
        raise _broken(facts.folder, str(error).splitlines()[-1].strip()) from None
    theirs: nn.Module = inner.get_output_embeddings()
    return HeadParts(
        module=module.eval().requires_grad_(False),
        logits=module.logits if isinstance(module, Eagle3Head) else theirs,
        ids=ids,
        embeddings=embeddings,
        rotary=_rotary(form),
        layers=form.layers_of(len(inner.model.layers)),
    )


def target_ids(d2t: Tensor, t2d: Tensor | None, vocabulary: int) -> Tensor | None:
    """The target's id of each token that a head can guess, [draft vocabulary], ascending int64.

    `d2t` holds what is to be added to a token's place, or, in int32 exports, the ids themselves;
    `t2d` marks the same ids in the target's vocabulary. None if neither reading yields such ids.
    """
    ids = d2t.long()
    offset = ids + torch.arange(len(ids))
    readings = (ids, offset) if d2t.dtype == torch.int32 else (offset, ids)
    return next((one for one in readings if _names_tokens(one, t2d, vocabulary)), None)


def _names_tokens(ids: Tensor, t2d: Tensor | None, vocabulary: int) -> bool:
    """Whether these ascend, are the target's, and are those that are marked."""
    if not len(ids) or int(ids[0]) < 0 or int(ids[-1]) >= vocabulary:
        return False
    if not bool((ids.diff() > 0).all()):
        return False
    return t2d is None or torch.equal(t2d.bool().nonzero()[:, 0], ids)


def _read(facts: HeadFacts, form: EagleForm) -> dict[str, Tensor]:
    """The tensors by the names of the first layout."""
    wanted = {stored: name for name, stored in form.names.items()}
    held: dict[str, Tensor] = {}
    try:
        for file in facts.files:
            with safe_open(file.path, framework="pt") as stream:
                for stored in file.tensors:
                    if stored in wanted:
                        held[wanted[stored]] = stream.get_tensor(stored)
    except (OSError, SafetensorError) as error:
        raise _broken(facts.folder, str(error).splitlines()[0]) from None
    return held


def _ids(facts: HeadFacts, form: EagleForm, held: dict[str, Tensor]) -> Tensor:
    """The target's ids of what the head can guess, taken out of what was read."""
    d2t, t2d = held.pop("d2t", None), held.pop("t2d", None)
    if d2t is None:
        return torch.arange(form.vocabulary)
    ids = target_ids(d2t, t2d, form.target_vocabulary)
    if ids is None:
        raise _broken(facts.folder, "d2t is no ascending list of the target's ids")
    return ids


def _embeddings(own: Tensor | None, inner: Any, target: LanguageModel) -> nn.Embedding:
    """The head's own embeddings; the target's where it has none, or the same."""
    theirs: nn.Embedding = inner.get_input_embeddings()
    if own is None:
        return theirs
    mine = own.to(target.device, target.dtype)
    if mine.shape == theirs.weight.shape and torch.equal(mine, theirs.weight):
        return theirs
    return nn.Embedding(mine.shape[0], mine.shape[1], _weight=mine, _freeze=True)


def _rotary(form: EagleForm) -> nn.Module:
    """What turns the head's vectors by position: its own, which may differ from its target's."""
    config = LlamaConfig(
        hidden_size=form.hidden,
        num_attention_heads=form.heads,
        head_dim=form.head_size,
        rope_parameters=dict(form.rotary),
    )
    rotary: nn.Module = LlamaRotaryEmbedding(config)
    return rotary


def _module_name(name: str) -> str:
    """A tensor's name in the module, from its name in the first layout."""
    start = next(start for start in _NAMES if name.startswith(start))
    return _NAMES[start] + name.removeprefix(start)


def _broken(folder: Path, reason: str) -> Problem:
    return Problem(f"The head in {folder} is broken: {reason}.", "Get it again.")
