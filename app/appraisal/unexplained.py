"""Why the measured time does not add up: the likely reason, from the numbers of the run."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median

from app.run.cost import PassCosts
from app.run.events import Round
from app.run.metrics import counts
from app.run.record import RunRecord
from app.theory.account import WITHIN

_BUSY = "the machine was busier or slower meanwhile; measure again"


def likely_reason(record: RunRecord, costs: PassCosts, *, longer: bool) -> str:
    """Why the speculative lane took longer than its account, or less long, as a clause: the first
    that its numbers bear out of single passes, passes over drafts, and work outside of models.
    """
    return (
        _single_passes(record.rounds("baseline"), costs, longer=longer)
        or _drafts(record, costs, longer=longer)
        or _own_work(record.rounds("speculative"))
        or "no one part of a loop stands out; measure again"
    )


def baseline_held_up(record: RunRecord) -> str:
    """That a few passes of the baseline took far longer than most, as a clause; mostly ""."""
    took = [one.phases.verify for one in record.rounds("baseline")]
    if not took or not _apart(mean(took), median(took), longer=True):
        return ""
    return (
        f"passes of the baseline took {_ms(mean(took))} on average and {_ms(median(took))} in the "
        "middle one: a few were held up, which flatters the speed-up"
    )


def _single_passes(plain: Sequence[Round], costs: PassCosts, *, longer: bool) -> str:
    """That passes of one row cost something else in the baseline too."""
    if not plain:
        return ""
    took, known = median(one.phases.verify for one in plain), costs.seconds[1]
    if not _apart(took, known, longer=longer):
        return ""
    when = _BUSY if longer else "the machine was busier or slower then; measure again"
    return f"a single pass took {_ms(took)} in the run and {_ms(known)} measured apart: {when}"


def _drafts(record: RunRecord, costs: PassCosts, *, longer: bool) -> str:
    """That passes of the speculative lane alone cost something else."""
    rounds = record.rounds("speculative")
    took = mean(one.phases.verify for one in rounds)
    known = mean(costs.seconds[one.width] for one in rounds)
    if not _apart(took, known, longer=longer):
        return ""
    said = f"its passes took {_ms(took)} on average and {_ms(known)} measured apart: "
    usual = median(one.phases.verify / costs.seconds[one.width] for one in rounds)
    if longer and usual <= 1.0 + WITHIN:
        return f"{said}a few of them were held up; measure again"
    if longer and _longest(record) > costs.context_bucket:
        return f"{said}there it was behind {costs.context_bucket} tokens, and the text is longer"
    return f"{said}{_BUSY}" if longer else f"{said}the machine was busier then; measure again"


def _own_work(rounds: Sequence[Round]) -> str:
    """That a few loops took far longer outside of the models than most."""
    spent = [max(one.phases.outside_models, 0.0) for one in rounds]
    if mean(spent) <= (1.0 + WITHIN) * median(spent):
        return ""
    return (
        f"work outside of models took {_ms(mean(spent))} a loop on average and "
        f"{_ms(median(spent))} in the middle one: a few loops were held up; measure again"
    )


def _apart(took: float, known: float, *, longer: bool) -> bool:
    """Whether it took more than `WITHIN` longer than known, or less long."""
    return took > (1.0 + WITHIN) * known if longer else took < (1.0 - WITHIN) * known


def _longest(record: RunRecord) -> int:
    """Tokens of the prompt and of the longest text behind it."""
    written = [counts(one).committed for one in record.repetitions("speculative")]
    return len(record.prompt_ids) + max(written, default=0)


def _ms(seconds: float) -> str:
    """Milliseconds, with a place more where there are few."""
    return f"{1000 * seconds:.{0 if seconds >= 0.01 else 2}f} ms"
