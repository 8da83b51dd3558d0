"""What a target and a draft are to each other, as it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

Verdict = Literal["fits", "fits by intersection", "fits by text", "cannot"]
"""Where their vocabularies differ: `fits by intersection` if they share enough tokens for a draft
that guesses within those (tli), `fits by text` if they do not, and only text that is cut anew
leads from one to the other (slem)."""
Template = Literal[
    "same", "differs", "only the target has one", "only the draft has one", "neither has one"
]


class Side(msgspec.Struct, frozen=True):
    """One of the two models; None: it does not say, or cannot be read."""

    folder: Path
    reason: str = ""
    """Why it cannot be loaded."""
    remedy: str = ""
    rows: int | None = None
    """Of the output layer, padding included."""
    tokens: int | None = None
    """That its tokenizer knows."""
    context_length: int | None = None
    parameters: int | None = None


class Meaning(msgspec.Struct, frozen=True):
    """The token that an id means to each side; None: none."""

    id: int
    target: str | None
    draft: str | None


class Special(msgspec.Struct, frozen=True):
    """A special token that the two do not share; None: not named, or not in the vocabulary."""

    role: str
    target: str | None
    target_id: int | None
    draft: str | None
    draft_id: int | None


class Overlap(msgspec.Struct, frozen=True):
    """The tokens of two vocabularies that stand for the same text, special ones left out."""

    shared: int
    of_target: float
    """Share of the target's tokens, 0 to 1."""
    of_draft: float
    """Share of the draft's tokens, 0 to 1."""


class CompatibilityReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a target and a draft are to each other."""

    target: Side
    draft: Side
    verdict: Verdict
    reason: str
    """Why it is so, in one line."""
    remedy: str = ""
    writes_plainly: bool = False
    """Of two that cannot: whether it is for a guess that cannot be taken back, so that a run of
    them writes without speculation."""
    differing: int = 0
    """Ordinary ids that mean different tokens; rows without a token are padding, and none."""
    first_differing: tuple[Meaning, ...] = ()
    added_differing: int = 0
    """Ids of added tokens that mean different ones: the target's meaning counts."""
    first_added: tuple[Meaning, ...] = ()
    special: tuple[Special, ...] = ()
    """The special tokens that differ."""
    template: Template | None = None
    """Of the chat; None: not compared."""
    cut_differently: tuple[str, ...] = ()
    """Where the ids mean the same: the parts of the tokenizers by which they may yet cut a text
    differently. That does not matter: a prompt is encoded once, with the target's tokenizer, and
    ids alone reach the draft."""
    overlap: Overlap | None = None
    """None: their ids mean the same, or cannot be read."""
    proofs: tuple[str, ...] = ()
    """What loading has found of the two; empty: not told."""
    warnings: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the two can be run as a pair, be it with methods for different vocabularies."""
        return self.verdict != "cannot"

    @property
    def differs(self) -> bool:
        """Whether the draft reads another vocabulary, whose tokens are known."""
        return self.overlap is not None

    @property
    def same_ids(self) -> bool:
        """Whether ids mean the same to both, so that every method of a draft model can be used."""
        return self.verdict == "fits"

    def without_speculation(self, reason: str) -> CompatibilityReport:
        """The same of two that fit but for a model from which no guess can be taken back."""
        return msgspec.structs.replace(
            self,
            verdict="cannot",
            reason=reason,
            remedy="Choose another model in its place; plain decoding works with it.",
            writes_plainly=True,
        )

    @property
    def sentence(self) -> str:
        """The verdict with its reason, in one line."""
        return f"{self.verdict}{', because' if self.verdict == 'cannot' else ':'} {self.reason}"
