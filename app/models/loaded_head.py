"""A draft head in memory, beside its target: in the target's type, on the target's device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from app.library.head_folder import HeadFacts
from app.models.draft_head import shape_for
from app.models.fused_linear import fuse
from app.models.head_file import read_head
from app.models.head_session import HeadSession
from app.models.language_model import LanguageModel
from app.models.packed_linear import PackedLinear, pack, why_not_packed
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
    """What a head's sessions share: its weights, and the target's embeddings and output rows."""

    def __init__(self, facts: HeadFacts, target: LanguageModel) -> None:
        """Raises Problem for a head that is broken or was made for another kind of target."""
        if target.offloaded:
            raise Problem(
                "A draft head works with all of its target on one device, and "
                f"{100 * target.offloaded:.0f} % of the weights are offloaded.",
                "Choose a smaller precision for the target, or another method.",
            )
        inner: Any = target.inner
        shape = shape_for(inner, facts.description.shape.vocabulary)
        if shape != facts.description.shape:
            raise Problem(
                f"The draft head in {facts.folder} has another form than its target's layers.",
                "Choose its own target, or train a head for this one (`foretoken train`).",
            )
        module, ids = read_head(facts)
        self.target = target
        self.device, self._dtype = target.device, target.dtype
        self.embeddings: nn.Embedding = inner.get_input_embeddings()
        self.rotary = RotaryTable(inner.model.rotary_emb)
        self.ids = ids.to(self.device)
        """The target's id of each token that the head can guess: [vocabulary]."""
        self._facts = facts
        self._parameters = sum(weight.numel() for weight in module.parameters())
        self.module = module.to(self.device, self._dtype)
        self._packs = self.device.type == "cpu" and why_not_packed(self._dtype) is None
        self._output: nn.Module = self._output_rows(inner, ids)
        self._kernel = ""
        if self._packs:
            fuse(self.module, self._dtype)
            self._kernel = pack(self.module, self._dtype)

    @property
    def name(self) -> str:
        """What it is called in figures and reports."""
        return f"draft head for {self._facts.description.target.title}"

    def open(self, target: Session, capacity: int) -> HeadSession:
        """An empty session beside a session of the target that keeps its features."""
        return HeadSession(self, target, capacity)

    def logits(self, features: Tensor) -> Tensor:
        """The logits [rows, vocabulary] of features [rows, hidden]."""
        answer: Tensor = self._output(features)
        return answer

    @property
    def facts(self) -> ModelFacts:
        """The head as it is named on screen and in reports."""
        target, shape = self.target, self._facts.description.shape
        return ModelFacts(
            name=self.name,
            folder=str(self._facts.folder),
            precision=PRECISIONS[self._dtype],
            precision_note="as its target computes; stored as 16-bit floating point",
            device=str(self.device),
            parameters=self._parameters,
            weight_bytes=self._parameters * self._dtype.itemsize,
            vocabulary=shape.vocabulary,
            context_length=target.context_length,
            attention="sdpa",
            rewinds=True,
            rewind_note="keeps only what came from the target",
            rows_independent=True,
            rows_note="guesses one token a pass",
            kernel=self._kernel,
        )

    def _output_rows(self, inner: Any, ids: Tensor) -> nn.Module:
        """The target's output rows of the tokens that the head can guess."""
        given = inner.get_output_embeddings()
        tied = bool(inner.config.tie_word_embeddings)
        weight = self.embeddings.weight if tied else given.weight
        rows = nn.Linear(weight.shape[1], len(ids), bias=False, device="meta")
        rows.weight = nn.Parameter(weight[self.ids].to(self._dtype), requires_grad=False)
        if self._packs:
            return PackedLinear([rows], self._dtype)
        return rows
