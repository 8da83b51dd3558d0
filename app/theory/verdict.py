"""Does it pay? A verdict in one plain sentence, with the reason where it does not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from app.theory.account import Prediction, prediction
from app.theory.costs import StepCosts

CLOSE = 0.05
"""One pair, or a prediction, this near to 1× decides nothing."""

ENOUGH_TOKENS = 20
"""Tokens of a lane from which on a verdict is given. Of fewer, one pass that takes twice its time
moves the mean by more than `CLOSE`, and how many guesses were kept is chance.
"""

NAMED_FROM = 0.25
"""A cost is named as the reason from this many single steps a round on."""

Outcome = Literal["pays", "does not pay", "too close to call", "unknown"]
"""What a verdict comes to."""


@dataclass(frozen=True)
class Measured:
    """A speed-up as measured: its value and, with more than one pair, its interval."""

    speedup: float
    low: float | None = None
    high: float | None = None
    tokens: int | None = None
    """Timed tokens of the lane that has fewer; None where that is not looked at."""

    @property
    def range(self) -> str:
        """The interval, or that there is none."""
        if self.low is None or self.high is None:
            return "one pair, no spread"
        return f"{self.low:.2f}–{self.high:.2f}"

    @property
    def outcome(self) -> Outcome:
        """What the value and its interval say; nothing of a text that is too short."""
        if self.tokens is not None and self.tokens < ENOUGH_TOKENS:
            return "unknown"
        low = self.speedup * (1.0 - CLOSE) if self.low is None else self.low
        high = self.speedup * (1.0 + CLOSE) if self.high is None else self.high
        if low > 1.0:
            return "pays"
        return "does not pay" if high < 1.0 else "too close to call"


@dataclass(frozen=True)
class Verdict:
    """What a run says about whether speculation pays."""

    outcome: Outcome
    text: str
    doubtful: bool = False
    """Whether the text says why it is not to be trusted."""


def verdict(
    measured: Measured | None,
    draft_length: int,
    *,
    costs: StepCosts | None = None,
    acceptance: float | None = None,
    best: int | None = None,
    tried: Collection[int] = (),
    doubt: str = "",
) -> Verdict:
    """The verdict on a measured run; reasons need costs and an acceptance, and so does the best
    draft length, unless a sweep has measured it. `tried` are draft lengths that were run beside
    this one; a `doubt` is a clause that says why the verdict is not to be trusted.
    """
    if measured is None:
        return Verdict("unknown", "no verdict: no pair of lanes was measured")
    outcome = measured.outcome
    if outcome == "unknown":
        timed = f"{measured.tokens} tokens were timed, and a verdict needs {ENOUGH_TOKENS}"
        return Verdict(outcome, f"too short to say: {timed}")
    text = _plain(
        measured, draft_length, costs=costs, acceptance=acceptance, best=best, tried=tried
    )
    return Verdict(outcome, f"{text}, but {doubt}" if doubt else text, bool(doubt))


def _plain(
    measured: Measured,
    draft_length: int,
    *,
    costs: StepCosts | None,
    acceptance: float | None,
    best: int | None,
    tried: Collection[int],
) -> str:
    """The verdict where there is one, without a doubt."""
    expected = None
    if costs is not None and acceptance is not None:
        expected = prediction(acceptance, draft_length, costs=costs)
    if measured.outcome == "pays":
        tail = _best(expected, tried) if expected else ""
        if best is not None:
            tail = f", best draft length {best}" if best else ""
        return f"pays: {measured.speedup:.2f}× ({measured.range}){tail}"
    if measured.outcome == "too close to call":
        one = f"{measured.speedup:.2f}×, " if measured.low is None else ""
        return f"too close to call ({one}{measured.range})"
    why = f"{measured.speedup:.2f}× ({measured.range})"
    if costs is not None and acceptance is not None and expected is not None:
        why = _reason(measured, costs, acceptance=acceptance, expected=expected)
        why += _instead(expected)
    return f"does not pay here: {why}"


def _best(expected: Prediction, tried: Collection[int]) -> str:
    """The best draft length: of another one than was run here, that it is predicted, and whether
    it was tried.
    """
    best = expected.best_draft_length
    if not best:
        return ""
    if best == expected.draft_length:
        return f", best draft length {best}"
    return f", predicted best draft length {best}{'' if best in tried else ', not tried'}"


def _reason(
    measured: Measured, costs: StepCosts, *, acceptance: float, expected: Prediction
) -> str:
    """The one reason to name.

    The dearest part of a round, if the round would pay without what that part costs beyond a
    baseline token, or if even a fully accepted draft would not pay; else too low an acceptance;
    else, where the costs promise a gain, that they do.
    """
    tokens, gain = expected.tokens_per_loop, expected.speedup
    round_seconds = costs.round_seconds(expected.draft_length)
    if tokens is None or gain is None or round_seconds is None:
        return f"{measured.speedup:.2f}× ({measured.range})"
    if gain >= 1.0:
        return (
            f"{measured.speedup:.2f}× ({measured.range}), where the cost of its passes "
            f"promises {gain:.2f}×"
        )
    excess, words = _dearest(costs, expected.draft_length)
    hopeless = expected.break_even is None
    decides = excess >= NAMED_FROM and tokens > round_seconds / costs.single - excess
    if hopeless or decides:
        return words
    return (
        f"acceptance {acceptance:.2f} is below the {expected.break_even:.2f} that would break even"
    )


def _dearest(costs: StepCosts, draft_length: int) -> tuple[float, str]:
    """The part of a round that costs most beyond a baseline token, in tokens of the baseline; and
    words, in passes of one row, as costs are told everywhere.
    """
    single, row = costs.single, costs.passes[1]
    verify, busy = costs.verify(draft_length), 1.0 - costs.idle
    assert verify is not None
    step, own = costs.draft_step / single, costs.overhead - costs.baseline_overhead
    return max(
        (
            busy * (verify - row) / single,
            f"the verify pass costs {verify / row:.2f} single steps",
        ),
        (
            busy * draft_length * step,
            f"the draft costs {costs.draft_step / row:.2f} single steps a token",
        ),
        (own / single, f"a loop's own work costs {costs.overhead / row:.2f} single steps"),
    )


def _instead(expected: Prediction) -> str:
    """The draft length that should pay, if another one should."""
    if expected.best_draft_length in (0, expected.draft_length):
        return ""
    if expected.best_speedup * (1.0 - CLOSE) <= 1.0:
        return ""
    return (
        f"; a draft length of {expected.best_draft_length} should pay, "
        f"{expected.best_speedup:.2f}× predicted"
    )
