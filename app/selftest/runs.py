"""The runs of the self-test, and what has to be true of them."""

from __future__ import annotations

from app.run.identities import violations
from app.run.methods import Method
from app.run.metrics import counts
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.settings import OptionValue, Precision, RunSettings

PAIR = "selftest"
"""The pair of tiny models in the self-test's own catalogue."""
MTP_PAIR = "selftest-mtp"
"""The tiny model there that has a module for multi-token prediction."""

ROUNDS = 5
_DRAFT_LENGTH = 4
_PROMPT = "one two three, one two three, one two three, one two"
_OPTIONS: dict[str, dict[str, OptionValue]] = {"ngram": {"shortest": 1}, "suffix": {"cached": 0}}
"""So that guesses are certain to be made, whatever a random model writes, and none is copied from
another run.
"""


def tiny_run(method: str, *, draft_precision: Precision = "fp32") -> RunSettings:
    """Settings that take at least five rounds, even where every guess is kept."""
    return RunSettings(
        pair=MTP_PAIR if Method.named(method).drafter == "mtp" else PAIR,
        prompt=_PROMPT,
        method=method,
        method_options=_OPTIONS.get(method, {}),
        draft_length=_DRAFT_LENGTH,
        max_new_tokens=1 + ROUNDS * (_DRAFT_LENGTH + 1),
        ignore_end_of_text=True,
        precision="fp32",
        draft_precision=draft_precision,
        order="interleaved",
    )


def embedded_run(pair: str, method: str) -> RunSettings:
    """Settings for a short text of a pair that ships."""
    return RunSettings(
        pair=pair, prompt=_PROMPT, method=method, precision="fp32", max_new_tokens=32
    )


def verdict(record: RunRecord) -> str:
    """What a run came to. Raises Problem unless it ended well and its counts add up."""
    if record.outcome != "finished":
        raise Problem(f"The run {record.outcome}: {record.message}", record.remedy)
    repetitions = [repetition for lane in record.lanes for repetition in lane.repetitions]
    found = [fault for repetition in repetitions for fault in violations(repetition)]
    if found:
        raise Problem(f"The counts do not add up: {found[0]}.", "")
    (speculative,), (baseline,) = record.repetitions("speculative"), record.repetitions("baseline")
    if record.lossless and speculative.text != baseline.text:
        raise Problem("The two lanes wrote different texts.", "")
    made = counts(speculative)
    if record.settings.method != "nothing" and not made.drafted:
        raise Problem("No guess was made.", "")
    kept = f"{made.accepted} of {made.drafted} guesses kept"
    return f"{len(speculative.rounds)} loops, {kept}, same text as the baseline"


def tiny_verdict(record: RunRecord) -> str:
    """As `verdict`, for a run of the tiny pair, which takes at least five rounds."""
    told = verdict(record)
    (speculative,) = record.repetitions("speculative")
    if len(speculative.rounds) < ROUNDS:
        raise Problem(f"It took {len(speculative.rounds)} loops, not {ROUNDS} or more.", "")
    return told
