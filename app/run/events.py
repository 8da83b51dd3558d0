"""What happens in a run, as small frozen structs that cross the pipe, are kept, are replayed."""

from __future__ import annotations

from typing import Literal

import msgspec

from app.run.cost import PassCosts
from app.run.flags import Flag
from app.run.settings import RunSettings, Sampling

LaneName = Literal["speculative", "baseline"]

Status = Literal[
    "first", "accepted", "corrected", "bonus", "plain", "rejected", "ignored", "discarded"
]
"""How a token came to be. `first`: from the prompt pass. `accepted`: guessed and kept. `corrected`:
replaces the first rejected guess. `bonus`: follows a fully accepted draft. `plain`: a round without
a draft. `rejected`: tested, thrown away. `ignored`: behind the first rejection, never decided.
`discarded`: behind a stop, whatever the rule said."""

_DECIDED = ("accepted", "rejected")
"""What a guess that was decided can be."""

Provenance = Literal["measured", "reported", "inferred"]
"""`measured` here; `reported` by a server; `inferred` from what a server reported."""

Finish = Literal["end of text", "stop string", "length", "context", "cancelled", "failed"]
"""Why a lane ended."""

Outcome = Literal["running", "finished", "cancelled", "failed", "engine ended"]
"""How a run stands."""

DraftLimit = Literal[
    "draft length", "policy", "tokens left", "context", "draft's context", "speculation refused"
]
"""What set the most tokens that a round might guess; `policy` chose fewer than the draft length.
`draft's context`: the draft model cannot read as far as the target; once it is full, rounds are
plain."""


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A frozen struct that refuses fields it does not know."""


class At(Struct, frozen=True):
    """Where in a study an event belongs, and how it is known."""

    run: str
    lane: LaneName
    repetition: int = 0
    turn: int = 0
    sequence: int = 0
    provenance: Provenance = "measured"


class Candidate(Struct, frozen=True):
    """One token and its probability under a law."""

    id: int
    text: str
    probability: float


class Inspection(Struct, frozen=True):
    """The likeliest tokens of the laws that decided a position (detail `full` only)."""

    target: tuple[Candidate, ...] = ()
    draft: tuple[Candidate, ...] = ()
    residual: tuple[Candidate, ...] = ()


class Token(Struct, frozen=True):
    """One token, how it came to be, and the numbers the rule used; null where there were none."""

    id: int
    text: str
    """What the text grew by when this token came: empty while a character is incomplete."""
    status: Status
    source: str | None = None
    """The proposer that guessed it."""
    target_probability: float | None = None
    draft_probability: float | None = None
    accept_probability: float | None = None
    draw: float | None = None
    kept_by: Literal["rule", "leniency"] | None = None
    inspection: Inspection | None = None
    strict_probability: float | None = None
    """With which chance the lossless rule would have accepted the guess; null for such a rule."""
    tried: int | None = None
    """How many guesses were decided at this place, a kept one last; null where none branch."""


class Phases(Struct, frozen=True):
    """Where a round's seconds went; they add up to the round."""

    draft_prompt: float = 0.0
    """The draft model's own pass over the prompt."""
    draft: float = 0.0
    verify: float = 0.0
    """The target's pass, until its logits exist."""
    decide: float = 0.0
    """Warping, the rule, the draws, and the round's one copy to the host."""
    rest: float = 0.0
    draft_calls: float = 0.0
    """The part of `draft_prompt` and `draft` that was spent inside the draft model."""

    @property
    def total(self) -> float:
        """Seconds of the whole round."""
        return self.draft_prompt + self.draft + self.verify + self.decide + self.rest

    @property
    def outside_models(self) -> float:
        """Seconds of the round that no model call accounts for."""
        return self.total - self.verify - self.draft_calls


class Round(Struct, frozen=True):
    """One draft-verify-commit loop: what was guessed, and what became of it."""

    index: int
    limit: int
    """The most tokens this round was allowed to guess."""
    limited_by: DraftLimit
    committed: tuple[Token, ...]
    """The tokens kept, in text order: accepted ones, then at most one of the target's own."""
    thrown: tuple[Token, ...]
    """Guesses that were not kept, in draft order: rejected, ignored, discarded. Of guesses that
    branch one a level: the first of those that were rejected, or that were never decided.
    """
    phases: Phases
    draft_stop: str = ""
    """Why drafting ended before the limit, in the proposer's words."""
    held_back: int = 0
    """Characters at the end of the text that may begin a stop string: not to be shown yet."""
    nodes: int | None = None
    """Guesses in all, where they branch; null where all of them are told."""

    def count(self, status: Status) -> int:
        """How many of this round's tokens have this status."""
        return sum(token.status == status for token in (*self.committed, *self.thrown))

    @property
    def drafted(self) -> int:
        """How many tokens were guessed; where guesses branch, how many levels of them."""
        return self.count("accepted") + len(self.thrown)

    @property
    def outgrown(self) -> bool:
        """Whether nothing was guessed because the draft model's own context is full."""
        return self.limited_by == "draft's context" and not self.limit

    @property
    def width(self) -> int:
        """Rows of the target's pass: every guess, and the text's last token."""
        return 1 + (self.drafted if self.nodes is None else self.nodes)

    @property
    def tested_nodes(self) -> int:
        """How many guesses were decided, also beside each other."""
        decided = (t for t in (*self.committed, *self.thrown) if t.status in _DECIDED)
        return sum(1 if token.tried is None else token.tried for token in decided)

    @property
    def source(self) -> str:
        """The proposer that guessed: all guesses of a draft have one. "" where nobody did."""
        guesses = (token.source for token in (*self.committed, *self.thrown) if token.source)
        return next(guesses, "")


class Environment(Struct, frozen=True):
    """What the run ran on, as far as it is needed to repeat it."""

    app: str
    python: str
    platform: str
    processor: str
    device: str
    threads: int
    packages: dict[str, str]
    driver: str | None = None
    """Version of the card's driver; null without a card, or where it cannot be read."""
    clock_mhz: float | None = None
    """The highest clock of the device; null where it cannot be read."""
    power_limit_w: float | None = None
    """The most power that the card may draw; null where it cannot be read."""


class ModelFacts(Struct, frozen=True):
    """A loaded model, as it is named on screen and in reports."""

    name: str
    folder: str
    precision: str
    precision_note: str
    """Where the weights come from: for example "re-quantised from Q4_1"."""
    device: str
    parameters: int
    weight_bytes: int
    vocabulary: int
    context_length: int
    attention: str
    rewinds: bool
    rewind_note: str
    rows_independent: bool
    rows_note: str
    suggested_sampling: Sampling | None = None
    """What `generation_config.json` suggests; shown, never applied unasked."""
    kernel: str = ""
    """What computes the linear layers and the pass, where it is not the library's own way."""
    offloaded: float = 0.0
    """The share of the weights, from 0 to 1, that is not on the device."""
    passes: str = ""
    """How passes are computed, and why where that is not as it was asked for; empty: not known."""


class RunStarted(Struct, frozen=True, tag=True):
    """A run is about to open its first lane."""

    run: str
    started: str
    """Local time with its offset, ISO 8601."""
    settings: RunSettings
    environment: Environment
    target: ModelFacts
    draft: ModelFacts | None
    prompt_ids: tuple[int, ...]
    end_ids: tuple[int, ...]
    lossless: bool
    """Whether the text keeps the target's law: the rule promises it, and the models can hold it."""
    notes: tuple[str, ...] = ()
    draft_resident: bool = False
    """Whether a draft model lay in memory while the baseline ran, asked or not."""


class LaneStarted(Struct, frozen=True, tag=True):
    """A lane has opened its session."""

    at: At
    prompt_reused: int = 0
    """Tokens of the prompt that the target had read in the turns before, and did not read again."""


class PromptRead(Struct, frozen=True, tag=True):
    """A chunk of the prompt has been read."""

    at: At
    done: int
    total: int


class FirstToken(Struct, frozen=True, tag=True):
    """The prompt pass has yielded the first token."""

    at: At
    token: Token
    seconds: float
    """From the opening of the lane until the token existed."""
    held_back: int = 0


class RoundCommitted(Struct, frozen=True, tag=True):
    """A round is part of the text."""

    at: At
    round: Round


class Abandoned(Struct, frozen=True, tag=True):
    """A round was given up before it was committed; it enters no figure."""

    at: At
    drafted: int
    """Guesses of its draft; if that was not whole yet, the passes that had made some of it: one
    each, but for drafts that branch, are copied in part, or are cut anew.
    """
    seconds: float


class LaneEnded(Struct, frozen=True, tag=True):
    """A lane has ended, whole or not."""

    at: At
    finish: Finish
    dropped: int = 0
    """Characters at the end of the text that belong to the stop string or lie behind it."""
    tail: str = ""
    """Text of an incomplete character that no further token will complete."""
    cache_bytes: int = 0


class Divergence(Struct, frozen=True, tag=True):
    """Where two greedy lanes first wrote different tokens, and what the target says of it."""

    run: str
    index: int
    """Of the token, from 0."""
    speculative: Token
    baseline: Token
    gap: float
    """The target's logit of the baseline's token less that of the other, in a pass of 1 row."""
    moved: float
    """The most that a logit of this row moves between a pass of 1 row and the round's own pass."""
    width: int
    """Rows of the round's own pass."""
    tie: bool
    """Whether rounding explains the difference; if not, something is wrong."""


class ConditionsSeen(Struct, frozen=True, tag=True):
    """What the machine did while the lanes ran, where figures have to be read with it in mind."""

    run: str
    flags: tuple[Flag, ...]


class PassesCosted(Struct, frozen=True, tag=True):
    """What passes of the target and steps of the draft cost at this run's context."""

    run: str
    costs: PassCosts


class RunEnded(Struct, frozen=True, tag=True):
    """The run is over; no event of it follows."""

    run: str
    outcome: Outcome
    message: str = ""
    remedy: str = ""
    peak_bytes: int | None = None
    """Most memory held on the target's device, measured: of a card in all, of a CPU at the ends of
    the lanes; or null.
    """
    draft_peak_bytes: int | None = None
    """The same on the draft model's device; null where that is the target's."""


RunEvent = (
    RunStarted
    | LaneStarted
    | PromptRead
    | FirstToken
    | RoundCommitted
    | Abandoned
    | LaneEnded
    | Divergence
    | ConditionsSeen
    | PassesCosted
    | RunEnded
)
"""All that a run can tell; a record is these, applied in order."""


class Progress(Struct, frozen=True, tag=True):
    """How far something that takes over a second has come."""

    stage: str
    done: float = 0.0
    total: float | None = None
    unit: str = ""
