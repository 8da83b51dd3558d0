"""A draft head in memory, beside its target: in the target's type, on the target's device."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from app.library.eagle_folder import EagleForm
from app.library.head_folder import HeadFacts
from app.models.draft_head import refuse_kind
from app.models.eagle_file import eagle_parts
from app.models.fixed.room import Rooms
from app.models.fused_linear import fuse
from app.models.head_file import head_parts
from app.models.head_parts import HeadModule, packs
from app.models.head_session import HeadSession
from app.models.language_model import LanguageModel
from app.models.packed_linear import pack
from app.models.rotary_table import RotaryTable
from app.models.session import Session
from app.run.events import ModelFacts
from app.run.problems import Problem
from app.run.settings import Precision

PRECISIONS: dict[torch.dtype, Precision] = {
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
}
"""What a head is held in: what its target computes in, however that holds its own weights."""


class LoadedHead:
    """What a head's sessions share: its weights, and what it has of its target's."""

    def __init__(self, facts: HeadFacts, target: LanguageModel) -> None:
        """Raises Problem for a head that is broken or was made for another kind of target."""
        if target.offloaded:
            raise Problem(
                "A draft head works with all of its target on one device, and "
                f"{100 * target.offloaded:.0f} % of the weights are offloaded.",
                "Choose a smaller precision for the target, or another method.",
            )
        refuse_kind(target.inner)
        own = not isinstance(facts.description, EagleForm)
        parts = (head_parts if own else eagle_parts)(facts, target)
        self.target = target
        self.device, self._dtype = target.device, target.dtype
        self.rooms = Rooms()
        """What its sessions work in where their chains and trees of guesses are of fixed shape."""
        self.embeddings = parts.embeddings
        self.rotary = RotaryTable(parts.rotary.to(self.device))
        self.ids = parts.ids.to(self.device)
        """The target's id of each token that the head can guess: [vocabulary]."""
        self.layers = parts.layers
        """The target's layers whose inputs are its features; none: the state behind the last."""
        self._facts = facts
        shared = target.inner.get_input_embeddings()
        self._parameters = sum(weight.numel() for weight in parts.module.parameters())
        if parts.embeddings is not shared:
            self._parameters += parts.embeddings.weight.numel()
        self._copied_rows = parts.copied_rows
        held = parts.module.to(self.device, self._dtype)
        self.module = cast(HeadModule, held)
        self._logits = parts.logits
        self._kernel = ""
        if packs(target):
            fuse(held, self._dtype)
            self._kernel = pack(held, self._dtype)

    @property
    def dtype(self) -> torch.dtype:
        """What it is held in and computes in."""
        return self._dtype

    @property
    def hidden(self) -> int:
        """Numbers of a feature that it predicts."""
        return int(self.embeddings.embedding_dim)

    @property
    def name(self) -> str:
        """What it is called in figures and reports."""
        return self._facts.name

    def open_target(self, capacity: int) -> Session:
        """An empty session of the target that keeps the features that this head reads."""
        return self.target.open(capacity, features=True, layers=self.layers)

    def open(self, target: Session, capacity: int) -> HeadSession:
        """An empty session beside a session of the target that keeps this head's features."""
        return HeadSession(self, target, capacity)

    def logits(self, features: Tensor) -> Tensor:
        """The logits [rows, vocabulary] of features [rows, hidden]."""
        return self._logits(features)

    @property
    def facts(self) -> ModelFacts:
        """The head as it is named on screen and in reports."""
        target = self.target
        return ModelFacts(
            name=self.name,
            folder=str(self._facts.folder),
            precision=PRECISIONS[self._dtype],
            precision_note=f"as its target computes; stored as {self._facts.stored}{self._copied}",
            device=str(self.device),
            parameters=self._parameters,
            weight_bytes=self._held * self._dtype.itemsize,
            vocabulary=len(self.ids),
            context_length=target.context_length,
            attention="sdpa",
            rewinds=True,
            rewind_note="keeps only what came from the target",
            rows_independent=True,
            rows_note="guesses one token a pass",
            kernel=self._kernel,
        )

    @property
    def _held(self) -> int:
        """Numbers of its weights in memory, those that it copied from its target among them."""
        return self._parameters + self._copied_rows * self.hidden

    @property
    def _copied(self) -> str:
        if not self._copied_rows:
            return ""
        return f"; its weights count {self._copied_rows:,} output rows copied from the target"
