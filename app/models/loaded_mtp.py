"""A target's modules for multi-token prediction in memory, in its type and on its device."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache

from app.models.attention import Masks
from app.models.exhausted import memory_guard
from app.models.loaded_head import PRECISIONS
from app.models.loading import LoadedModel
from app.models.mtp_file import read_modules
from app.models.mtp_session import MtpSession
from app.models.packed_linear import pack, why_not_packed
from app.models.session import Session
from app.run.events import ModelFacts
from app.run.problems import Problem


class LoadedMtp:
    """What the sessions of the modules share; embeddings, output rows and rotation are the
    target's.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        """Raises Problem for a target that has no modules, or whose modules cannot be read."""
        target = loaded.model
        if target.offloaded:
            raise Problem(
                "Multi-token prediction works with all of its target on one device, and "
                f"{100 * target.offloaded:.0f} % of the weights are offloaded.",
                "Choose a smaller precision for the target, or another method.",
            )
        inner: Any = target.inner
        self.target = target
        self.device, self._dtype = target.device, target.dtype
        with memory_guard(f"while the modules of {target.name} were read"):
            found, modules = read_modules(loaded.folder, inner, target.name, self._dtype)
            self._parameters = _numbers(modules)
            self._modules = nn.ModuleList(modules).to(self.device)
            self._kernel = ""
            if self.device.type == "cpu" and why_not_packed(self._dtype) is None:
                self._kernel = pack(self._modules, self._dtype)
        self.modules = modules
        """In the order of their depth."""
        self.layout = found.layout
        self.ids = torch.arange(target.width, device=self.device)
        """The target's id of each token that is guessed: all of them, [width]."""
        self._inner = inner
        self._rotary = getattr(inner, inner.base_model_prefix).rotary_emb
        asked = inspect.signature(modules[0].block.forward).parameters
        self._cache_name = "cache" if "cache" in asked else "past_key_values"

    @property
    def name(self) -> str:
        """What they are called in figures and reports."""
        return f"MTP modules of {self.target.name}"

    @property
    def depth(self) -> int:
        """Modules, each of which was trained to guess one token more."""
        return len(self.modules)

    def note(self, draft_length: int) -> str:
        """What to know of drafts that are longer than there are modules; empty for others."""
        if draft_length <= self.depth:
            return ""
        trained = "one module" if self.depth == 1 else f"{self.depth} modules"
        return (
            f"The target has {trained} for multi-token prediction: a draft's guesses from number "
            f"{self.depth + 1} on are chained beyond the trained depth."
        )

    def open_target(self, capacity: int) -> Session:
        """An empty session of the target that keeps the features that the modules read."""
        return self.target.open(capacity, features=True)

    def open(self, target: Session, capacity: int) -> MtpSession:
        """An empty session beside a session of the target that keeps its features."""
        return MtpSession(self, target, capacity)

    def normed(self, depth: int, answers: Tensor) -> Tensor:
        """A module's answers behind its norm, as output rows and the next module take them."""
        found: Tensor = self.modules[depth].norm(answers)
        return found

    def logits(self, answers: Tensor) -> Tensor:
        """The logits [rows, width] of normed answers [rows, hidden]."""
        found: Tensor = self._inner.get_output_embeddings()(answers)
        return found

    def answers(
        self, depth: int, ids: Tensor, features: Tensor, *, start: int, cache: Cache
    ) -> Tensor:
        """What a module's block answers at places from `start` on, before its norm: [n, hidden].

        Takes ids [n] and features [n, hidden]. A place's position is that of its token, depth + 1
        behind the feature's.
        """
        module = self.modules[depth]
        x = module.joined(self._inner.get_input_embeddings()(ids), features)
        end = start + len(ids)
        mask = Masks(start, end, x).of(None)
        first = depth + 1
        places = torch.arange(start + first, end + first, device=self.device)[None]
        found: Tensor = module.block(
            x[None],
            attention_mask=None if mask is None else mask[None, None],
            position_ids=places,
            position_embeddings=self._rotary(x[None], position_ids=places),
            use_cache=True,
            **{self._cache_name: cache},
        )
        return found[0]

    @property
    def facts(self) -> ModelFacts:
        """The modules as they are named on screen and in reports."""
        target = self.target
        return ModelFacts(
            name=self.name,
            folder=str(target.folder),
            precision=PRECISIONS[self._dtype],
            precision_note="as the target computes",
            device=str(self.device),
            parameters=self._parameters,
            weight_bytes=self._parameters * self._dtype.itemsize,
            vocabulary=target.width,
            context_length=target.context_length,
            attention=target.attention,
            rewinds=True,
            rewind_note="keeps only what came from the target",
            rows_independent=True,
            rows_note="guesses one token a pass",
            kernel=self._kernel,
        )


def _numbers(modules: list[Any]) -> int:
    """Weights of all modules; what several of them share counts once."""
    held = {id(weight): weight.numel() for module in modules for weight in module.parameters()}
    return sum(held.values())
