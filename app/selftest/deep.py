"""Counts and law with tiny models: each check passes as things are, and sees a planted fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
from torch import Tensor

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict, row_at
from app.decoding.sampling import pick
from app.decoding.verifiers import exact
from app.decoding.verifiers.exact import Exact
from app.library.catalogue import load_catalogue
from app.run.auditing import Audit, auditable
from app.run.identities import violations
from app.run.metrics import Counts, counts
from app.run.record import Repetition, RunRecord
from app.run.settings import OptionValue, RunSettings
from app.selftest.models import record_here
from app.selftest.planted import Finding, planted, proved
from app.selftest.result import Result, tried
from app.selftest.runs import tiny_run
from app.selftest.tiny_models import write_tiny_pair
from app.studies.workbench import Workbench

TEXTS = 800
"""Texts that an audit draws: the fault planted in chains is seen with a chance above 99.9 %."""
TREE_TEXTS = 2000
"""The same for trees, whose fault moves the law by less: 800 would show it two times in three."""
_WIDE: dict[str, OptionValue] = {"nodes": 60, "breadth": 20}
"""Trees so wide that the tiny head, which is seldom right, guesses tokens that the target draws."""


def checks(folder: Path) -> Iterator[Result]:
    """The checks, each as it is done; the tiny pair is written to the self-test's own home."""
    bench = Workbench(load_catalogue([write_tiny_pair()]))
    yield tried("counts", partial(_counts, bench))
    yield tried("law", partial(_law, bench))
    yield tried("law of trees", partial(_law_of_trees, bench))


def _counts(bench: Workbench) -> str:
    """Whether the counts of a run are those of its tokens."""
    record = record_here(bench, tiny_run("draft-model"))
    fault = planted(Counts, "plus", _bonus_as_accepted)
    return proved(partial(_look_at_counts, record), "bonus tokens counted as accepted", fault)


def _look_at_counts(record: RunRecord) -> Finding:
    """Compares the counts, which go by statuses, with the ids of both texts, which do not."""
    fresh = msgspec.convert(msgspec.to_builtins(record), RunRecord)  # has remembered no count yet
    (fast,), (slow,) = fresh.repetitions("speculative"), fresh.repetitions("baseline")
    drafted, accepted = _recounted(fast, slow)
    made = counts(fast)
    told = f"{made.accepted} of {made.drafted} guesses counted as kept, {accepted} of {drafted} "
    told += "by the ids of the texts"
    broken = violations(fast, record.settings.max_new_tokens)
    told += f", {len(broken)} identities broken"
    return Finding((made.drafted, made.accepted) == (drafted, accepted) and not broken, told)


def _recounted(fast: Repetition, slow: Repetition) -> tuple[int, int]:
    """Guesses, and those that the baseline wrote as well, up to the first that it did not."""
    text, place = slow.token_ids, 1
    drafted = accepted = 0
    for round_ in fast.rounds:
        committed = [token.id for token in round_.committed if token.source is not None]
        guesses = [*committed, *(token.id for token in round_.thrown)]
        kept = 0
        while kept < len(guesses) and guesses[kept] == text[place + kept]:
            kept += 1
        drafted += len(guesses)
        accepted += kept
        place += kept + 1
    return drafted, accepted


def _bonus_as_accepted(sound: Callable[..., Counts], *given: object) -> Counts:
    made = sound(*given)
    return msgspec.structs.replace(made, accepted=made.accepted + made.bonus)


def _law(bench: Workbench) -> str:
    """Whether drawn texts follow the target's law."""
    fault = planted(Exact, "verify", _draws_from_p)
    look = partial(_look_at_law, bench, tiny_run("draft-model"), TEXTS)
    return proved(look, "a token drawn from p where only the residual is left", fault)


def _law_of_trees(bench: Workbench) -> str:
    """Whether texts that are drawn from trees of guesses follow the target's law."""
    fault = planted(exact, "left_over", _forgets_rejected)
    settings = msgspec.structs.replace(tiny_run("head-tree"), method_options=_WIDE)
    look = partial(_look_at_law, bench, settings, TREE_TEXTS)
    return proved(look, "a residual that forgets the siblings that were rejected", fault)


def _look_at_law(bench: Workbench, settings: RunSettings, texts: int) -> Finding:
    wanted = Audit(auditable(settings), texts)
    found = bench.audit(wanted, report=lambda progress: None, pause=lambda: None)
    told = (
        f"{found.runs} texts lie {found.tv:.3f} from the law (chance allows {found.bound:.3f}), "
        f"χ² {found.statistic:.0f} in {found.cells} cells has a chance of {found.chance:.2g}"
    )
    return Finding(found.passed, told)


def _draws_from_p(
    sound: Callable[..., Verdict], rule: Exact, draft: Draft, rows: TargetRows, draws: Draws
) -> Verdict:
    """The rule with its oldest fault: a rejected guess may come back at once."""
    verdict = sound(rule, draft, rows, draws)
    law = row_at(rows.law, verdict.accepted)
    return replace(verdict, next=pick(law, draws.next), next_law=law)


def _forgets_rejected(sound: Callable[..., Tensor], law: Tensor, *given: object) -> Tensor:
    """What follows the last kept guess of a tree, drawn as if none had been rejected there."""
    return law
