"""The JSON object of `foretoken run --json`: the answer and the headline numbers."""

from __future__ import annotations

import json

import msgspec

from app.appraisal.appraise import appraise
from app.elsewhere.programs import recipes
from app.elsewhere.setup import Recipe
from app.run.cost import PassCosts
from app.run.events import Finish, LaneName, Outcome
from app.run.figures import FIGURES, LENIENCY, Standing, speculative_counts, standing
from app.run.flagged import flags_of
from app.run.metrics import decode_speedup, same_text
from app.run.record import Repetition, RunRecord


class SummaryCounts(msgspec.Struct, frozen=True):
    """What became of the tokens of the speculative lane, all its repetitions together."""

    drafted: int
    accepted: int
    rejected: int
    ignored: int
    discarded: int
    corrected: int
    bonus: int
    plain: int
    first: int
    committed: int
    rounds: int


class LaneSummary(msgspec.Struct, frozen=True):
    """One lane: speeds and seconds are medians of its repetitions, the rest is the first one's."""

    decode_tokens_per_second: float | None
    time_to_first_token_s: float | None
    decode_s: float | None
    total_s: float | None
    token_ids: list[int]
    text: str
    finish: Finish | None
    repetitions: int


class WorthSummary(msgspec.Struct, frozen=True):
    """Whether it pays, and what the measured costs have to say of it; null where they cannot."""

    verdict: str
    costs: PassCosts | None
    break_even_acceptance: float | None
    predicted_speedup: float | None
    best_draft_length: int | None
    """0: better not to speculate."""
    accounted_speedup: float | None
    unexplained: float | None
    """The share by which the speculative lane took longer than its account."""
    flags: tuple[str, ...]
    """Why figures are to be read with care."""


class Summary(msgspec.Struct, frozen=True):
    """A run in short; null where there is nothing to say.

    `text` and `token_ids` are the first repetition's, `counts` and the rates those of all
    repetitions together, speed-ups medians of pairs. `first_difference` counts tokens from 0.
    """

    run: str
    pair: str
    method: str
    outcome: Outcome
    message: str
    remedy: str
    text: str
    token_ids: list[int]
    finish: Finish | None
    decode_speedup: float | None
    decode_speedup_range: tuple[float, float] | None
    """The smallest and the largest of the pairs; both the same where there is one pair only."""
    request_speedup: float | None
    acceptance_rate: float | None
    conditional_acceptance: float | None
    mean_accepted_prefix: float | None
    tokens_per_loop: float | None
    counts: SummaryCounts
    speculative: LaneSummary | None
    baseline: LaneSummary | None
    same_text: bool | None
    first_difference: int | None
    numerical_tie: bool | None
    """Whether rounding explains the first difference; null without one that was judged."""
    lossless: bool
    standing: Standing
    """"LOSSY" for a rule that changes the law of the text, whatever the models can hold."""
    rule: str
    kept_by_leniency: float | None
    """The expected share of tested guesses that only a lossy rule keeps."""
    notes: tuple[str, ...]
    worth: WorthSummary
    elsewhere: tuple[Recipe, ...]
    """The same set-up for other programs, and what is not the same there."""

    def json(self) -> str:
        """One line of strict JSON in ASCII, which any terminal and pipe can take."""
        return json.dumps(msgspec.to_builtins(self), allow_nan=False)


_SHOWN = (
    "decode_speedup",
    "request_speedup",
    "acceptance_rate",
    "conditional_acceptance",
    "mean_accepted_prefix",
    "tokens_per_loop",
    LENIENCY,
)


def summarise(record: RunRecord) -> Summary:
    """The summary of a record, whole or partial."""
    first = _first(record, "speculative")
    spread = decode_speedup(record)
    compared = same_text(record)
    tally = speculative_counts(record)
    return Summary(
        run=record.run,
        pair=record.settings.pair,
        method=record.settings.method,
        outcome=record.outcome,
        message=record.message,
        remedy=record.remedy,
        text=first.text if first else "",
        token_ids=first.token_ids if first else [],
        finish=first.finish if first else None,
        decode_speedup_range=(spread.low, spread.high) if spread else None,
        counts=SummaryCounts(
            **{name: getattr(tally, name) for name in SummaryCounts.__struct_fields__}
        ),
        speculative=_lane(record, "speculative"),
        baseline=_lane(record, "baseline"),
        same_text=compared.same if compared and compared.compared else None,
        first_difference=compared.first_difference if compared else None,
        numerical_tie=record.divergence.tie if record.divergence else None,
        lossless=record.lossless,
        standing=standing(record),
        rule=record.settings.rule,
        notes=record.notes,
        worth=_worth(record),
        elsewhere=recipes(record),
        **{name: FIGURES[name].value(record) for name in _SHOWN},
    )


def _worth(record: RunRecord) -> WorthSummary:
    found = appraise(record)
    expected = found.prediction
    return WorthSummary(
        verdict=found.verdict.text,
        costs=record.costs,
        break_even_acceptance=expected.break_even if expected else None,
        predicted_speedup=expected.speedup if expected else None,
        best_draft_length=expected.best_draft_length if expected else None,
        accounted_speedup=found.account.speedup if found.account else None,
        unexplained=found.unexplained,
        flags=tuple(flag.message for flag in flags_of(record)),
    )


def _first(record: RunRecord, lane: LaneName) -> Repetition | None:
    """The first repetition of a lane, if it opened."""
    return next(iter(record.repetitions(lane)), None)


def _lane(record: RunRecord, lane: LaneName) -> LaneSummary | None:
    first = _first(record, lane)
    if first is None:
        return None

    def figure(name: str) -> float | None:
        return FIGURES[f"{lane}_{name}"].value(record)

    return LaneSummary(
        decode_tokens_per_second=figure("decode_tokens_per_second"),
        time_to_first_token_s=figure("time_to_first_token_s"),
        decode_s=figure("decode_s"),
        total_s=figure("total_s"),
        token_ids=first.token_ids,
        text=first.text,
        finish=first.finish,
        repetitions=len(record.repetitions(lane)),
    )
