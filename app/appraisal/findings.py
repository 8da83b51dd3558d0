"""What an appraisal found, in words: the same rows for the window, the terminal and reports."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from app.appraisal.appraise import Appraisal, appraise, tried
from app.appraisal.by_proposer import by_proposer
from app.appraisal.doubt import DEFINITION as DOUBTED
from app.appraisal.unexplained import baseline_held_up, likely_reason
from app.run.cost import PassCosts
from app.run.figures import NOTHING, decimal, percent, speculative_counts
from app.run.record import RunRecord
from app.run.tree_shape import pass_rows
from app.theory.account import WITHIN, Prediction
from app.theory.verdict import ENOUGH_TOKENS

NOT_COSTED = "not measured: the run was stopped, did not speculate, or wrote nothing"
"""Why a run has no costs."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that was found: its name, what it came to, and what it means."""

    label: str
    value: str
    definition: str


def findings(record: RunRecord) -> list[Finding]:
    """Verdict, costs, prediction and account of a record."""
    found = appraise(record)
    costs = record.costs
    rows = [Finding("Verdict", found.verdict.text, _VERDICT), *_split(record), *_outgrown(record)]
    if costs is None:
        return [*rows, Finding("Cost of passes", NOT_COSTED, _COSTS)]
    rows += _costs(record, costs)
    rows += _expected(record, found)
    return rows


def _split(record: RunRecord) -> Iterator[Finding]:
    """A row for each proposer, where there are several."""
    split = by_proposer(record)
    if len({row.source for row in split if row.source}) < 2:
        return
    for row in split:
        told = f"{percent(row.loops)} of loops, {decimal(row.counts.tokens_per_loop)} tokens each"
        if row.source:
            told += f", {decimal(row.counts.conditional_acceptance)} of tested kept"
        yield Finding(f"Guessed by {row.label}" if row.source else "No guess", told, _SPLIT)


def _outgrown(record: RunRecord) -> Iterator[Finding]:
    """A row for a text that a draft model could not read to its end."""
    rounds = record.rounds("speculative")
    plain = sum(one.outgrown for one in rounds)
    if plain:
        yield Finding("Draft's context full", f"{plain} of {len(rounds)} loops", _OUTGROWN)


def _costs(record: RunRecord, costs: PassCosts) -> Iterator[Finding]:
    width = pass_rows(record.settings, record.settings.draft_length)
    steps = costs.in_single_steps(width)
    value = NOTHING
    if steps is not None:
        value = f"{steps:.2f} single steps ({_ms(costs.seconds[width])})"
    yield Finding(f"Verify pass of {width} row{'s' if width > 1 else ''}", value, _VERIFY)
    yield Finding("Single step", _ms(costs.seconds[1]), _SINGLE)
    value = "no draft model"
    if costs.draft_step is not None and costs.draft_ratio is not None:
        value = f"{costs.draft_ratio:.2f} single steps ({_ms(costs.draft_step)})"
    yield Finding("Draft step", value, _DRAFT)


def _expected(record: RunRecord, found: Appraisal) -> Iterator[Finding]:
    expected = found.prediction
    steps = found.steps
    if expected is None or steps is None:
        yield Finding("Prediction", f"{NOTHING}: no guess was tested", _PREDICTED)
        return
    own = f"{1000 * steps.overhead:.2f} ms; baseline {1000 * steps.baseline_overhead:.2f} ms"
    yield Finding("Own work of a loop", own, _OVERHEAD)
    yield Finding("Break-even acceptance", _break_even(record, expected), _BREAK_EVEN)
    gain = NOTHING if expected.speedup is None else f"{expected.speedup:.2f}×"
    drafting = "" if not steps.idle else f", {100 * (1 - steps.idle):.0f} % of loops with a draft"
    yield Finding("Predicted speed-up", gain + drafting, _PREDICTED)
    yield Finding("Best draft length", _best(record, expected), _BEST)
    yield Finding("Accounted speed-up", _account(record, found), _ACCOUNT)


def _break_even(record: RunRecord, expected: Prediction) -> str:
    if expected.draft_length < 1:
        return f"{NOTHING}: nothing is guessed"
    if expected.break_even is None:
        return "none: a draft kept whole would not pay"
    acceptance = speculative_counts(record).conditional_acceptance
    here = "" if acceptance is None else f" (here {acceptance:.2f})"
    return f"{expected.break_even:.2f}{here}"


def _best(record: RunRecord, expected: Prediction) -> str:
    best = expected.best_draft_length
    if not best:
        return "0: better not to speculate"
    untried = "" if best in tried([record]) else ", not tried"
    return f"{best}{untried}, {expected.best_speedup:.2f}× predicted"


def _account(record: RunRecord, found: Appraisal) -> str:
    """The accounted speed-up, and where the time does not add up the likely reason."""
    gain = found.account.speedup if found.account else None
    share = found.unexplained
    if gain is None or share is None:
        return NOTHING
    more = "longer" if share >= 0 else "shorter"
    adds_up = "adds up" if found.adds_up else "does not add up"
    said = f"{gain:.2f}×; {adds_up} ({100 * abs(share):.0f} % {more})"
    if not found.adds_up and record.costs is not None:
        said += f": {likely_reason(record, record.costs, longer=share > 0)}"
    return "; ".join(filter(None, (said, baseline_held_up(record))))


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms"


_VERDICT = (
    "Whether speculation pays: it does if the whole range of the pairs lies above 1×; one pair "
    "has to be 5 % away from it to say anything. Where it does not pay, the reason is named. A "
    f"lane of fewer than {ENOUGH_TOKENS} tokens behind its first says nothing. {DOUBTED}"
)
_COSTS = "Seconds of a target pass by its width, and of a step of the draft, on this machine."
_SPLIT = (
    "The loops of one proposer alone: their share of all loops, M/R tokens a loop, and A/T, the "
    "share of its tested guesses that was kept."
)
_OUTGROWN = (
    "Loops in which nothing was guessed, as the text had outgrown the draft model's own context, "
    "which is shorter than the target's."
)
_VERIFY = (
    "T(γ + 1) / T(1): what a pass over a whole draft costs in passes of one row, medians measured "
    "in turn after the lanes, at this run's context. Guesses that branch are a row each."
)
_SINGLE = "T(1): a target pass of one row, which the baseline needs for every token."
_DRAFT = (
    "What one more guess costs: a pass of one row of the draft model; where guesses branch, what "
    "one more level of them costs."
)
_OVERHEAD = (
    "The median time of a loop outside of its models: sampling, the rule, copies, bookkeeping, and "
    "guesses that no model makes."
)
_BREAK_EVEN = (
    "The conditional acceptance at which this draft length would gain nothing, at these costs; "
    "below it, speculation loses time."
)
_PREDICTED = (
    "From the conditional acceptance, the draft length and the costs alone, as if every guess were "
    "kept with the same chance and every draft had its full length."
)
_BEST = "The draft length of the largest predicted speed-up, among those whose pass was measured."
_ACCOUNT = (
    "The speed-up that these very loops should have had at the measured costs, and by how much "
    f"longer they took. Within {100 * WITHIN:.0f} % time adds up; of more the likely reason is "
    "named: passes of the run beside those that were measured apart."
)
