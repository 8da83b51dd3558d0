"""The layers that EAGLE heads are made of, to be filled with published weights.

EAGLE-1 and 2: Li et al. 2024 (arXiv 2401.15077, section 3; 2406.16858). EAGLE-3: Li et al. 2025
(arXiv 2503.01840, section 3), with the options that came later: where norms stand, and what is fed
back.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from app.library.eagle_folder import EagleForm
from app.models.head_layer import HeadLayer


class EagleHead(HeadLayer):
    """One decoder layer; how its input is put together is what the versions differ in."""

    def __init__(self, form: EagleForm, reads: int) -> None:
        """`reads` numbers of each token go into queries, keys and values."""
        super().__init__()
        self.form, self.head_size = form, form.head_size
        hidden, size = form.hidden, form.head_size
        bias = {one: form.has(f"layers.0.self_attn.{one}_proj.bias") for one in "qkvo"}
        self.q_proj = nn.Linear(reads, form.heads * size, bias=bias["q"])
        self.k_proj = nn.Linear(reads, form.shared_heads * size, bias=bias["k"])
        self.v_proj = nn.Linear(reads, form.shared_heads * size, bias=bias["v"])
        normed = form.has("layers.0.self_attn.q_norm.weight")
        self.q_norm = self.new_norm(size) if normed else None
        self.k_norm = self.new_norm(size) if normed else None
        self.o_proj = nn.Linear(form.heads * size, hidden, bias=bias["o"])
        self.between_norm = self.new_norm(hidden)
        self.gate_proj = nn.Linear(hidden, form.intermediate, bias=False)
        self.up_proj = nn.Linear(hidden, form.intermediate, bias=False)
        self.down_proj = nn.Linear(form.intermediate, hidden, bias=False)

    @abstractmethod
    def first(self, features: Tensor) -> Tensor:
        """What is joined with an embedding, [..., hidden], from the target's features."""

    @abstractmethod
    def joined(self, embeddings: Tensor, features: Tensor) -> Tensor:
        """The layer's input [..., width] from embeddings of tokens t + 1 and features of t."""

    @abstractmethod
    def feature(self, x: Tensor, attended: Tensor) -> Tensor:
        """The predicted feature [..., hidden] from the input and what its rows gathered."""

    def new_norm(self, size: int) -> nn.RMSNorm:
        """A norm of this head's kind."""
        return nn.RMSNorm(size, eps=self.form.norm_epsilon)


class Eagle1Head(EagleHead):
    """Predicts the target's next feature, which the target's own output rows turn into tokens."""

    def __init__(self, form: EagleForm) -> None:
        super().__init__(form, form.hidden)
        self.fc = nn.Linear(2 * form.hidden, form.hidden, bias=form.has("fc.bias"))

    def first(self, features: Tensor) -> Tensor:
        """The features themselves."""
        return features

    def joined(self, embeddings: Tensor, features: Tensor) -> Tensor:
        """Both as one, [..., hidden]: the embedding comes first."""
        answer: Tensor = self.fc(torch.cat([embeddings, features], dim=-1))
        return answer

    def read_from(self, x: Tensor) -> Tensor:
        """The input itself: this layer has no norm before attention."""
        return x

    def feature(self, x: Tensor, attended: Tensor) -> Tensor:
        """The layer's output."""
        return self.behind_layer(x, attended)


class Eagle3Head(EagleHead):
    """Reads inner states of its target, and has output rows of its own."""

    def __init__(self, form: EagleForm) -> None:
        hidden = form.hidden
        super().__init__(form, 2 * hidden)
        wide = form.feature_count * form.target_hidden
        self.states_norm = self.new_norm(wide) if form.norm_before_fc else None
        count = form.feature_count if form.fc_norm else 0
        self.state_norms = nn.ModuleList(self.new_norm(form.target_hidden) for _ in range(count))
        self.fc = nn.Linear(wide, hidden, bias=False)
        self.embedding_norm = self.new_norm(hidden)
        self.feature_norm = self.new_norm(hidden)
        self.norm = self.new_norm(hidden)
        self.output = nn.Linear(hidden, form.vocabulary, bias=False)

    def first(self, features: Tensor) -> Tensor:
        """The target's states, [..., states x target's hidden], made one of [..., hidden]."""
        if self.states_norm is not None:
            features = self.states_norm(features)
        if len(self.state_norms):
            states = features.chunk(len(self.state_norms), dim=-1)
            normed = [norm(one) for norm, one in zip(self.state_norms, states, strict=True)]
            features = torch.cat(normed, dim=-1)
        answer: Tensor = self.fc(features)
        return answer

    def joined(self, embeddings: Tensor, features: Tensor) -> Tensor:
        """Normed embedding, normed feature and what the layer adds to, [..., 3 hidden]."""
        normed = self.feature_norm(features)
        residual = normed if self.form.norm_before_residual else features
        return torch.cat([self.embedding_norm(embeddings), normed, residual], dim=-1)

    def read_from(self, x: Tensor) -> Tensor:
        """Normed embedding and normed feature, [..., 2 hidden]."""
        return x[..., : 2 * self.form.hidden]

    def feature(self, x: Tensor, attended: Tensor) -> Tensor:
        """The layer's output, not normed unless the head wants it so."""
        answer = self.behind_layer(x[..., 2 * self.form.hidden :], attended)
        return self.norm(answer) if self.form.norm_output else answer

    def logits(self, features: Tensor) -> Tensor:
        """The logits [..., vocabulary] of predicted features."""
        normed = features if self.form.norm_output else self.norm(features)
        answer: Tensor = self.output(normed)
        return answer
