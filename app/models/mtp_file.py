"""Modules for multi-token prediction, read from the target's own files."""

from __future__ import annotations

import copy
import re
from typing import Any

import torch
from torch import Tensor, nn

from app.library.mtp_layout import MtpModules, mtp_of, refuse_none
from app.library.preflight import FolderFacts
from app.library.weight_files import weight_files
from app.models.mtp_module import MtpModule
from app.models.weight_reading import read_tensors
from app.run.problems import Damaged, Problem

_READ = ("F32", "BF16", "F16")
"""Types that are read as they are."""
_EXPERT = re.compile(r"(?P<stem>.+\.experts)\.(?P<number>\d{1,6})\.(?P<part>\w+)\.weight")


def read_modules(
    folder: FolderFacts, inner: Any, name: str, dtype: torch.dtype
) -> tuple[MtpModules, list[MtpModule]]:
    """The modules of a loaded target in `dtype`, on the CPU, and how their files hold them.

    Raises Problem for a target that has none, and for modules that cannot be read.
    """
    refuse_none(folder.folder, name)
    found = mtp_of(folder.folder)
    assert found is not None
    _refuse_packed(folder, found, name)
    held = read_tensors(folder.weight_files, found.names)
    decoder = getattr(inner, inner.base_model_prefix)
    exact = tuple(inner._keep_in_fp32_modules_strict or ())
    config = _config(inner.config.get_text_config(decoder=True), found)
    modules = []
    for number, names in enumerate(found.modules):
        with torch.device("meta"):
            module = _empty(decoder, config, number, hidden_first=found.layout.hidden_first)
        state = {
            own: held[at].float() if exact and own.endswith(exact) else held[at].to(dtype)
            for own, at in names.items()
        }
        modules.append(_filled(module, state, f"{name}, module {number + 1}"))
    return found, modules


def _refuse_packed(folder: FolderFacts, found: MtpModules, name: str) -> None:
    """Raises Problem for weights that are quantised, or stored in a type that is not read."""
    for file in weight_files(folder.folder):
        for tensor, place in file.tensors.items():
            if tensor in found.names and place.dtype not in _READ:
                raise Problem(
                    f"{tensor}, of the modules for multi-token prediction of {name}, is stored as "
                    f"{place.dtype}, which is not read for them.",
                    "Choose the model's files in bf16, or another method.",
                )


def _empty(decoder: Any, config: Any, number: int, *, hidden_first: bool) -> MtpModule:
    """A module without weights, of the classes that its target is made of."""
    hidden = int(config.hidden_size)

    def norm() -> nn.Module:
        made: nn.Module = type(decoder.norm)(hidden, eps=config.rms_norm_eps)
        return made

    block = type(decoder.layers[-1])(config, number)
    return MtpModule(block, norm, hidden, hidden_first=hidden_first)


def _config(config: Any, found: MtpModules) -> Any:
    """The target's configuration for its modules alone: full attention, experts where they lie."""
    count = len(found.modules)
    sparse = any(".experts." in own for own in found.modules[0])
    changed = {
        "num_hidden_layers": count,
        "layer_types": ["full_attention"] * count,
        "mlp_layer_types": ["sparse" if sparse else "dense"] * count,
        "first_k_dense_replace": 0 if sparse else count,
        "mlp_only_layers": [] if sparse else list(range(count)),
        "decoder_sparse_step": 1,
    }
    made = copy.deepcopy(config)
    for field, value in changed.items():
        if getattr(made, field, None) is not None:
            setattr(made, field, value)
    return made


def _fused(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same weights with experts as the classes hold them: all of them in one tensor.

    Gates lie above the projections that they scale: [experts, 2 x inner, hidden].
    """
    fused = {own: tensor for own, tensor in state.items() if _EXPERT.fullmatch(own) is None}
    apart: dict[str, dict[str, dict[int, Tensor]]] = {}
    for own, tensor in state.items():
        if expert := _EXPERT.fullmatch(own):
            parts = apart.setdefault(expert["stem"], {})
            parts.setdefault(expert["part"], {})[int(expert["number"])] = tensor
    for stem, parts in apart.items():
        whole = {
            part: torch.stack([one[number] for number in sorted(one)])
            for part, one in parts.items()
        }
        if {"gate_proj", "up_proj"} <= whole.keys():
            both = [whole.pop("gate_proj"), whole.pop("up_proj")]
            whole["gate_up_proj"] = torch.cat(both, dim=1)
        fused.update((f"{stem}.{part}", tensor) for part, tensor in whole.items())
    return fused


def _filled(module: MtpModule, state: dict[str, Tensor], title: str) -> MtpModule:
    """The module with these weights. Raises Problem unless they are all of its weights."""
    try:
        module.load_state_dict(_fused(state), assign=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split()[:40])
        raise Damaged(
            f"{title} for multi-token prediction is not whole: {reason}",
            "Fetch the model again; its weights and its config.json do not belong together.",
        ) from None
    return module.eval().requires_grad_(False)
