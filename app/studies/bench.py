"""A prompt set, run with each way of guessing: every run measured as a pair of whole lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from app.library.prompts_set import Prompt
from app.run.cost import SMALLEST_BUCKET, PassCosts
from app.run.events import Progress, RunEvent, RunStarted
from app.run.problems import Cancelled
from app.run.record import RunRecord
from app.run.settings import RunSettings
from app.studies.costing import costs_of
from app.studies.workbench import Workbench, preparation

Report = Callable[[Progress], None]
Pause = Callable[[], None]


class BenchRun(msgspec.Struct, frozen=True):
    """One prompt run one way."""

    prompt: str
    category: str
    record: RunRecord


@dataclass(frozen=True, slots=True)
class Planned:
    """One prompt and the settings to run it with."""

    prompt: Prompt
    settings: RunSettings

    @property
    def name(self) -> str:
        """The same for the same settings and prompt, so that a bench can be resumed."""
        way = f"{self.settings.method} {self.settings.draft_length}"
        return f"{self.prompt.id} with {way}"


def plan(
    prompts: Sequence[Prompt], ways: Sequence[tuple[str, int]], settings: RunSettings
) -> list[Planned]:
    """Every prompt in every way; a prompt's ways follow each other, so that drift hits them alike.

    Of a prompt with several turns the first is run.
    """
    return [
        Planned(
            prompt,
            msgspec.structs.replace(
                settings, prompt=prompt.turns[0], method=method, draft_length=length
            ),
        )
        for prompt in prompts
        for method, length in ways
    ]


def run_bench(
    bench: Workbench, planned: Sequence[Planned], *, report: Report, pause: Pause
) -> Iterator[BenchRun]:
    """Runs what is planned, in order. Raises Cancelled when `pause` does, and Problem."""
    for done, one in enumerate(planned):
        report(Progress(one.name, done, len(planned), "runs"))
        record = _run(bench, one, report=report, pause=pause)
        if record.outcome == "cancelled":
            raise Cancelled
        yield BenchRun(one.prompt.id, one.prompt.category, record)


def bench_costs(
    bench: Workbench, settings: RunSettings, longest_draft: int, *, report: Report, pause: Pause
) -> PassCosts:
    """What passes cost for the pair of these settings."""
    pair = bench.loaded(preparation(settings), report=report, pause=pause)
    return costs_of(
        pair,
        longest_draft,
        context=SMALLEST_BUCKET,
        drafting=pair.draft is not None,
        report=report,
        pause=pause,
    )


def _run(bench: Workbench, one: Planned, *, report: Report, pause: Pause) -> RunRecord:
    events: list[RunEvent] = []
    bench.run(
        one.name,
        one.settings,
        emit=events.append,
        report=lambda _: None,
        pause=pause,
        costing=False,
    )
    started, *rest = events
    assert isinstance(started, RunStarted)
    record = RunRecord.begin(started)
    for event in rest:
        record.apply(event)
    return record
