"""Whether speculation paid in a run, and why: the formulas of `app.theory` fed from its record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from app.appraisal.by_proposer import COPIES
from app.appraisal.doubt import doubt
from app.run.cost import PassCosts
from app.run.events import LaneName, Round
from app.run.figures import speculative_counts
from app.run.metrics import counts, decode_speedup, lane_pairs, ratio
from app.run.record import RunRecord
from app.run.settings import LONGEST_DRAFT
from app.run.tree_shape import tree_shape
from app.theory.account import Account, Prediction, account, prediction
from app.theory.costs import StepCosts
from app.theory.verdict import Measured, Verdict, verdict

_TAKEN_HERE = ("cascade", "early-exit", "slem")
"""Sources of guesses whose costs are taken from the runs: a pass of a cascade may yield several,
which layers guess is an option, and a guess that is cut anew may be several tokens of a draft model
or a part of one, so that costs of the pair do not tell.
"""


@dataclass(frozen=True)
class Appraisal:
    """What a record comes to; without costs, or without a guess tested, some of it is None."""

    verdict: Verdict
    steps: StepCosts | None
    prediction: Prediction | None
    account: Account | None
    speculative_seconds: float
    """Decode seconds of all repetitions of the speculative lane, as measured."""

    @property
    def unexplained(self) -> float | None:
        """The share by which the speculative lane took longer than its account says."""
        return self.account.unexplained(self.speculative_seconds) if self.account else None

    @property
    def adds_up(self) -> bool | None:
        """Whether the measured time is the accounted one; None without an account."""
        return self.account.adds_up(self.speculative_seconds) if self.account else None


def appraise(record: RunRecord) -> Appraisal:
    """The appraisal of a record, as far as it has come."""
    steps = step_costs([record], record.costs)
    acceptance = speculative_counts(record).conditional_acceptance
    length = record.settings.draft_length
    expected = None
    if steps is not None and acceptance is not None:
        expected = prediction(acceptance, length, costs=steps)
    return Appraisal(
        verdict=verdict(
            measured(record),
            length,
            costs=steps,
            acceptance=acceptance,
            tried=tried([record]),
            doubt=doubt([record]),
        ),
        steps=steps,
        prediction=expected,
        account=account_of([record], steps) if steps else None,
        speculative_seconds=sum(round_.phases.total for round_ in record.rounds("speculative")),
    )


def measured(record: RunRecord) -> Measured | None:
    """The decode speed-up, and the range of its pairs where there are several."""
    spread = decode_speedup(record)
    if spread is None:
        return None
    tokens = _timed_tokens(record)
    if spread.single:
        return Measured(spread.median, tokens=tokens)
    return Measured(spread.median, spread.low, spread.high, tokens)


def step_costs(records: Sequence[RunRecord], costs: PassCosts | None) -> StepCosts | None:
    """The costs that were measured, and what else a round of these runs took; None without costs.

    A round's overhead is the median of what lies outside the models: sampling, the rule, copies,
    bookkeeping, and guesses that no model makes. Where an n-gram makes some of the guesses, a guess
    costs as much less on average; where it helps a draft model, at an early exit, and where a text
    is cut anew, a guess costs what it took in these runs.
    """
    if costs is None:
        return None
    rounds = _rounds(records, "speculative")
    drafting = ratio(sum(round_.drafted > 0 for round_ in rounds), len(rounds))
    return StepCosts(
        passes=dict(costs.seconds),
        rows=_rows(records),
        draft_step=_draft_step(rounds, costs),
        overhead=_median(rounds, _outside_models),
        baseline_overhead=_median(_rounds(records, "baseline"), _outside_models),
        idle=1.0 - drafting if drafting else 0.0,
    )


def account_of(records: Sequence[RunRecord], steps: StepCosts) -> Account | None:
    """The account of all speculative rounds of these runs, of every repetition."""
    rounds = _rounds(records, "speculative")
    return account(
        [round_.width for round_ in rounds],
        [round_.phases.draft_calls for round_ in rounds],
        committed=sum(len(round_.committed) for round_ in rounds),
        costs=steps,
    )


def tried(records: Sequence[RunRecord]) -> set[int]:
    """The draft lengths that were run: those that were asked for, and what a policy chose."""
    asked = {record.settings.draft_length for record in records}
    rounds = _rounds(records, "speculative")
    return asked | {round_.limit for round_ in rounds if round_.limited_by == "policy"}


def not_costed(records: Sequence[RunRecord], steps: StepCosts) -> list[int]:
    """The rows of passes of these runs whose cost is not among those: no account without them."""
    widths = {round_.width for round_ in _rounds(records, "speculative")}
    return sorted(widths - set(steps.passes))


def _timed_tokens(record: RunRecord) -> int:
    """Tokens after the first of all pairs, in the lane that has fewer."""
    lanes = zip(*lane_pairs(record), strict=True)
    return min(sum(counts(one).committed_after_first for one in lane) for lane in lanes)


def _rows(records: Sequence[RunRecord]) -> dict[int, int] | None:
    """Rows of a pass by draft length, where the guesses of these runs branch."""
    shape = tree_shape(records[0].settings) if records else None
    if shape is None:
        return None
    return {length: 1 + shape.nodes_at(length) for length in range(1, LONGEST_DRAFT + 1)}


def _rounds(records: Sequence[RunRecord], lane: LaneName) -> list[Round]:
    return [round_ for record in records for round_ in record.rounds(lane)]


def _draft_step(rounds: Sequence[Round], costs: PassCosts) -> float:
    """Mean seconds for one more guess."""
    own = [round_ for round_ in rounds if round_.source in _TAKEN_HERE]
    if own:
        spent = sum(one.phases.draft_calls - one.phases.draft_prompt for one in own)
        return max(spent, 0.0) / sum(one.drafted for one in own)
    return _made_by_models(rounds) * (costs.draft_step or 0.0)


def _made_by_models(rounds: Sequence[Round]) -> float:
    """The share of the guesses that were not copied, which costs no step."""
    guesses = sum(round_.drafted for round_ in rounds)
    copied = sum(round_.drafted for round_ in rounds if round_.source in COPIES)
    return 1.0 - (ratio(copied, guesses) or 0.0)


def _outside_models(round_: Round) -> float:
    """A round's seconds outside of its models; two clocks may make it a little negative."""
    return max(round_.phases.outside_models, 0.0)


def _median(rounds: list[Round], of: Callable[[Round], float]) -> float:
    return median(map(of, rounds)) if rounds else 0.0
