"""The names under which checkpoints hold modules for multi-token prediction (MTP).

Sources: DeepSeek-V3 (arXiv 2412.19437, section 2.2) and the checkpoints of DeepSeek-V3, GLM-4.5,
Qwen3-Next, Qwen3.5 and MiMo. transformers leaves these weights out when it loads a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app.library.model_files import Config, read_json
from app.library.weight_files import weight_files
from app.run.problems import Problem

_OTHER_METHOD = "Choose another method: n-grams need nothing but the target."
_EVERY = -1
"""In place of a module's number: the tensor belongs to every module."""


@dataclass(frozen=True, slots=True)
class MtpLayout:
    """One way of naming and joining the parts of a module."""

    title: str
    kinds: tuple[str, ...]
    """The model types that it is read for, as the language part of a config.json has them."""
    module: re.Pattern[str]
    """The names of a module's tensors; the groups `number` (none: of every module) and `rest`."""
    parts: dict[str, str]
    """Our name of a part by its own; whatever is not named here belongs to the block."""
    after_layers: bool = False
    """Whether modules are numbered on from the target's layers."""
    shared: tuple[str, ...] = ()
    """Copies of the target's own tensors, which are not read."""
    hidden_first: bool = False
    """Whether the feature stands before the embedding where both are joined."""
    feeds_normed: bool = True
    """Whether a module that is used again gets its own answer behind the final norm."""

    def place(self, name: str, layers: int) -> tuple[int, str] | None:
        """A tensor's module, counted from 0 or `_EVERY`, and our name; None if it is in none."""
        found = self.module.fullmatch(name)
        if found is None:
            return None
        given, rest = found["number"], found["rest"]
        number = _EVERY if given is None else int(given) - (layers if self.after_layers else 0)
        if given is not None and number < 0:
            return None
        part = next((part for part in self.parts if rest.startswith(f"{part}.")), None)
        if part is None:
            return number, f"block.{rest}"
        return number, self.parts[part] + rest[len(part) :]


LAYOUTS = (
    MtpLayout(
        "DeepSeek-V3",
        ("deepseek_v3", "glm4_moe", "glm4_moe_lite"),
        re.compile(r"model\.layers\.(?P<number>\d{1,6})\.(?P<rest>.+)"),
        {
            "enorm": "embedding_norm",
            "hnorm": "feature_norm",
            "eh_proj": "joining",
            "shared_head.norm": "norm",
        },
        after_layers=True,
        shared=("block.embed_tokens.weight", "block.shared_head.head.weight"),
        feeds_normed=False,
    ),
    MtpLayout(
        "Qwen3-Next",
        ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"),
        re.compile(r"mtp\.(?:layers\.(?P<number>\d{1,6})\.)?(?P<rest>.+)"),
        {
            "pre_fc_norm_embedding": "embedding_norm",
            "pre_fc_norm_hidden": "feature_norm",
            "fc": "joining",
            "norm": "norm",
        },
        shared=("block.embed_tokens.weight", "block.lm_head.weight"),
    ),
    MtpLayout(
        "MiMo",
        ("qwen2",),
        re.compile(r"model\.mtp_layers\.(?P<number>\d{1,6})\.(?P<rest>.+)"),
        {
            "token_layernorm": "embedding_norm",
            "hidden_layernorm": "feature_norm",
            "input_proj": "joining",
            "final_layernorm": "norm",
        },
        hidden_first=True,
    ),
)


@dataclass(frozen=True, slots=True)
class MtpModules:
    """The modules that a checkpoint holds, each as its tensors' names by ours."""

    layout: MtpLayout
    modules: tuple[dict[str, str], ...]
    layers: int
    """Of the target itself."""

    @property
    def names(self) -> frozenset[str]:
        """The name of every tensor that is read, each once."""
        return frozenset(name for module in self.modules for name in module.values())

    def owns(self, name: str) -> bool:
        """Whether a tensor belongs to them, by its name in a file or in transformers."""
        return self.layout.place(name, self.layers) is not None


def mtp_of(folder: Path) -> MtpModules | None:
    """The modules that a model's folder holds; None if none. Raises Problem for a broken folder."""
    text = read_json(folder / "config.json", Config).text
    names = [name for file in weight_files(folder) for name in file.tensors]
    return find_mtp(names, text.num_hidden_layers or 0)


def refuse_none(folder: Path, title: str) -> None:
    """Raises Problem for a target without modules, or with some that this version does not read."""
    found = mtp_of(folder)
    if found is None:
        raise Problem(f"{title} has no modules for multi-token prediction.", _OTHER_METHOD)
    kind = read_json(folder / "config.json", Config).text.model_type
    if kind not in found.layout.kinds:
        raise Problem(
            f"The modules for multi-token prediction of {title}, a model of the kind {kind!r}, are "
            "not read by this version.",
            _OTHER_METHOD,
        )


def find_mtp(names: Iterable[str], layers: int) -> MtpModules | None:
    """The modules among a checkpoint's tensors, of a target with so many layers; None if none."""
    names = tuple(names)
    for layout in LAYOUTS:
        placed = [(place, name) for name in names if (place := layout.place(name, layers))]
        modules: dict[int, dict[str, str]] = {}
        for (number, own), name in placed:
            if own not in layout.shared:
                modules.setdefault(number, {})[own] = name
        of_every = modules.pop(_EVERY, {})
        held = [{**of_every, **modules[number]} for number in sorted(modules)]
        if held and all("joining.weight" in module for module in held):
            return MtpModules(layout, tuple(held), layers)
    return None
