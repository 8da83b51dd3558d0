"""The types between loop, proposers, verifiers and drivers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from app.decoding.sampling import warp
from app.decoding.shared_noise import NO_SEED, SharedNoise
from app.models.block import Block
from app.models.growing import Growing, TreeGuesses
from app.models.machine import moved
from app.models.picking import ChainReading, Picking, Told
from app.models.session import Reading
from app.run.settings import Sampling

Role = Literal["target", "draft", "head"]
"""Which model of a pair a pass is for."""


@dataclass(frozen=True, slots=True)
class Read:
    """A request for one forward pass, yielded by the loop and answered by a driver."""

    role: Role
    text: Sequence[int]
    """The committed ids; only the first `upto` of them are to be read."""
    upto: int
    block: Block | None = None
    rows: int = 1
    """Logits wanted: those of the last so many tokens fed; a head answers with one row, or with one
    for each guess that a tree has grown by.
    """
    prompt: bool = False
    """Whether this pass is the draft's own pass over the prompt."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A question: how many tokens of the text has this role's session not read yet?"""

    role: Role
    text: Sequence[int]


@dataclass(frozen=True, slots=True)
class Chain:
    """A request for a whole chain of guesses behind a text, each fed before the next is made. The
    answer is None where they have to be asked for one by one.
    """

    role: Role
    text: Sequence[int]
    count: int
    how: Picking
    told: Told


class Chained(NamedTuple):
    """What whole chains of guesses a proposer asks a session for."""

    role: Role
    how: Picking
    longest: int | None
    """Most guesses of a draft; None where only the round says."""


@runtime_checkable
class AsksForChains(Protocol):
    """A proposer that may ask for whole chains."""

    @property
    def chains(self) -> Chained | None:
        """Which; None if it asks for none."""
        ...


@dataclass(frozen=True, slots=True)
class WholeTree:
    """A request for a whole tree of guesses behind a text, each level read before the next is made.
    The answer is None where they have to be asked for level by level.
    """

    role: Role
    text: Sequence[int]
    levels: int
    how: Growing
    told: Told


class Branched(NamedTuple):
    """What whole trees of guesses a proposer asks a session for."""

    role: Role
    how: Growing


@runtime_checkable
class AsksForTrees(Protocol):
    """A proposer that may ask for whole trees."""

    @property
    def trees(self) -> Branched | None:
        """Which; None if it asks for none."""
        ...


Request = Read | Unread | Chain | WholeTree
Answer = Reading | int | ChainReading | TreeGuesses | None
Asking = Generator[Request, Answer, "Draft"]
"""A proposer at work: it yields requests, is sent answers, and returns its draft."""


@dataclass(slots=True)
class Draft:
    """Guesses, and the law that each was drawn from: all on one device."""

    block: Block
    law: Tensor | None = None
    """[drafted, width], the law of each guess in the target's ids; None: each guess was certain."""
    source: str = ""
    stop: str = ""
    """Why drafting ended before its limit; empty if it did not."""
    peaks: Tensor | None = None
    """The draft model's highest scores, all finite if its numbers can be used: [rows]; None without
    a model.
    """
    room: int | None = None
    """The most that could be guessed, where the draft model's own context held fewer tokens than
    were asked for; None where it did not."""

    def __len__(self) -> int:
        return len(self.block)

    def move(self, device: torch.device) -> None:
        """Takes all of it to the device where it is tested and decided on; once a round."""
        self.block.move(device)
        self.law = None if self.law is None else moved(self.law, device)
        self.peaks = None if self.peaks is None else moved(self.peaks, device)


class TargetRows:
    """What the target says at each place of a draft: row i + 1 follows guess i, row 0 the text.

    Rows are penalised fp32 logits [drafted + 1, width]; the law is only computed if a rule asks.
    """

    def __init__(self, logits: Tensor, sampling: Sampling) -> None:
        self.logits = logits
        self._sampling = sampling

    @property
    def greedy(self) -> bool:
        """Whether nothing is drawn at the run's sampling settings."""
        return self._sampling.greedy

    @cached_property
    def probabilities(self) -> Tensor:
        """What to show beside a token: the law, or at temperature 0 the model's own softmax."""
        return torch.softmax(self.logits, dim=-1) if self.greedy else self.law

    @cached_property
    def best(self) -> Tensor:
        """The likeliest token of each row, the lowest id of equals: [drafted + 1]."""
        return self.logits.argmax(dim=-1)

    @cached_property
    def law(self) -> Tensor:
        """The law of each row at the run's sampling settings: [drafted + 1, width]."""
        return warp(self.logits, self._sampling)

    @cached_property
    def tempered(self) -> Tensor:
        """The softmax of each row at the run's temperature, with no token cut: [drafted + 1, …]."""
        return torch.softmax(self.logits / self._sampling.temperature, dim=-1)

    @cached_property
    def peaks(self) -> Tensor:
        """The highest logit of each row: finite if it has no NaN, no +inf, and is not all -inf."""
        return self.logits.amax(dim=-1)


@dataclass(frozen=True, slots=True)
class Draws:
    """The uniform draws that a rule may use, all in (0, 1)."""

    accept: Tensor
    """[drafted], one a guess."""
    next: Tensor
    """[1], for the token after the accepted guesses."""
    shared: SharedNoise = NO_SEED
    """The noise of the places from the first guess on, for the rule that shares it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule decided, on the device: nothing has been copied home yet.

    The optional tensors are [drafted]; None where the rule uses no such number.
    """

    accepted: Tensor
    """How many guesses are kept: []."""
    next: Tensor
    """The token after them: []."""
    kept: Tensor | None = None
    """Which guesses are kept of a tree; None where it is the first `accepted` of them."""
    tested: Tensor | None = None
    """Which guesses of a tree were decided; None where it is the kept ones and the next."""
    target_probability: Tensor | None = None
    draft_probability: Tensor | None = None
    accept_probability: Tensor | None = None
    strict_probability: Tensor | None = None
    """The lossless rule's own chance to keep the guess; only told by lossy rules."""
    lenient: Tensor | None = None
    """Whether the guess passes, but would not have by the lossless rule with the same draw."""
    draw: Tensor | None = None
    next_probability: Tensor | None = None
    """The target's probability of the next token: []."""
    next_law: Tensor | None = None
    """The law that the next token was drawn from: [width]."""


def row_at(rows: Tensor, place: Tensor) -> Tensor:
    """The row at a place that only the device knows ([]), without waiting for the device."""
    return rows.index_select(0, place.reshape(1)).squeeze(0)


class Verifier(Protocol):
    """A rule: a pure function of the draft, the target's rows and the draws."""

    name: str

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Decides which guesses are kept, and which token follows them."""
        ...


class Proposer(Protocol):
    """Whatever makes drafts."""

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """Guesses at most `limit` tokens behind the text; reads are yielded, the draft returned."""
        ...
