"""A bench of random weights: what is asked for, and what was measured."""

from __future__ import annotations

from app.run.events import Environment, ModelFacts, Struct
from app.run.problems import Problem
from app.run.settings import LONGEST_DRAFT, PassKind, Precision


class RandomBench(Struct, frozen=True):
    """What is to be measured."""

    target: str
    """The name of a shape."""
    draft: str | None = None
    """The name of the draft's shape, or "none"; None takes the next smaller one."""
    precision: Precision | None = None
    """Of both models; None leaves the choice to this machine."""
    device: str | None = None
    """None leaves the choice to this machine."""
    passes: PassKind = "auto"
    """How passes of both models are computed."""
    acceptance: float = 0.75
    """α: the chance with which each guess is kept, whatever it is."""
    draft_length: int = 4
    """γ."""
    prompt: int = 64
    """Tokens of the prompt that every text follows."""
    tokens: int = 128
    """Of each text."""
    repeats: int = 3
    """How often each way of decoding is timed."""
    seed: int = 0
    """Of the first repetition's draws; each has the next one."""

    def check(self) -> None:
        """Raises Problem for a value outside its range."""
        if not 0.0 <= self.acceptance <= 1.0:
            raise Problem(
                f"alpha is {self.acceptance!r}; it has to be from 0 to 1.",
                "It is the chance with which a guess is kept.",
            )
        for name, value, low, high in (
            ("draft length", self.draft_length, 1, LONGEST_DRAFT),
            ("prompt tokens", self.prompt, 1, 1_000_000),
            ("max new tokens", self.tokens, 2, 100_000),
            ("repeats", self.repeats, 1, 1_000),
        ):
            if not low <= value <= high:
                raise Problem(
                    f"{name} is {value}; with random weights it has to be from {low} to {high}.",
                    "Set it anew.",
                )


class Timed(Struct, frozen=True):
    """One text, written one way."""

    tokens: int
    """Written in all."""
    total: float
    """Seconds from the start to the last token, the prompt's pass included."""
    decode: float | None = None
    """Seconds from the first token to the last; null where they were not told apart."""
    outside: float | None = None
    """The part of these that no pass of a model accounts for."""
    rounds: int | None = None
    accepted: int = 0
    """Guesses kept."""
    tested: int = 0
    """Guesses decided."""


class RandomMeasured(Struct, frozen=True, kw_only=True):
    """What one bench of random weights measured. Acceptance is simulated in all of it."""

    wanted: RandomBench
    """As it was settled: precision, device and draft are named."""
    environment: Environment
    target: ModelFacts
    draft: ModelFacts | None
    read_bytes: int
    """Weights that a pass of one row of the target reads."""
    peak_bytes: int | None
    """Most memory held on a card while the models were made."""
    copied_bytes: int
    """Size of the block that was copied to measure the memory's speed."""
    bandwidth: float
    """Bytes read and written a second by that copy."""
    context: int
    """Tokens behind which passes were timed."""
    passes: dict[int, float]
    """Median seconds of a pass of the target by its width in rows."""
    pass_repeats: int
    draft_step: float | None
    """Median seconds of a pass of one row of the draft."""
    busy: float | None
    """Seconds that the device was at work in a pass of one row; null where it was not watched."""
    busy_missing: str = ""
    """Why not."""
    plain: tuple[Timed, ...]
    """Our loop without guesses, a text a repetition."""
    generate: tuple[Timed, ...]
    """`generate` of transformers, greedy, behind the same prompt."""
    simulated: tuple[Timed, ...]
    """Our loop with the draft's guesses, each kept with the chance that was asked for; empty
    without a draft."""
    same_tokens: int
    """With how many same tokens the first two texts of our loop and of `generate` begin."""
    cautions: tuple[str, ...] = ()
    """What the machine did meanwhile."""

    @property
    def whole(self) -> bool:
        """Whether every repetition was run; a stop leaves those out that were not."""
        return len(self.plain) == self.wanted.repeats
