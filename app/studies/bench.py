"""A prompt set, run with each way of guessing: every run measured as a pair of whole lanes.

A prompt of several turns is a conversation: each turn is a run of its own, which goes on from the
replies to those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from app.library.prompts_set import Prompt
from app.models.exhausted import memory_guard
from app.run.cost import SMALLEST_BUCKET, MethodCosts
from app.run.events import Progress, RunEvent
from app.run.preparation import preparation
from app.run.problems import Cancelled, ContextFull, DoesNotFit, Problem, release_frames
from app.run.record import RunRecord
from app.run.settings import Message, RunSettings
from app.studies.conversation import Conversation
from app.studies.head_steps import StepTimes
from app.studies.lanes import LaneMaker
from app.studies.run_costs import lane_costs
from app.studies.workbench import Workbench, check_settings

Report = Callable[[Progress], None]
Pause = Callable[[], None]


class BenchRun(msgspec.Struct, frozen=True):
    """One turn of one prompt, run one way."""

    prompt: str
    category: str
    record: RunRecord


class BrokenOff(msgspec.Struct, frozen=True):
    """A prompt that was not run to its end, and why; the turns before are kept."""

    name: str
    turn: int
    """The turn that could not be run, from 0."""
    turns: int
    reason: str

    @property
    def message(self) -> str:
        """What a person is told."""
        where = f" before turn {self.turn + 1} of {self.turns}" if self.turns > 1 else ""
        return f"{self.name} ended{where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Planned:
    """One prompt and the way to run it, with the records of its first turns that there are."""

    prompt: Prompt
    settings: RunSettings
    """Those of the first turn."""
    done: tuple[RunRecord, ...] = ()

    @property
    def name(self) -> str:
        """The prompt and the way, in words."""
        return f"{self.prompt.id} with {self.settings.method} {self.settings.draft_length}"

    @property
    def next(self) -> RunSettings | None:
        """The settings of the next turn, what was said before it included; None behind the last.

        The conversation goes on from the reply of the speculative lane's first repetition.
        """
        turn = len(self.done)
        if turn == len(self.prompt.turns):
            return None
        earlier: list[Message] = []
        for said, record in zip(self.prompt.turns, self.done, strict=False):
            reply = record.repetitions("speculative")[0].text
            earlier += [Message("user", said), Message("assistant", reply)]
        return msgspec.structs.replace(
            self.settings, prompt=self.prompt.turns[turn], earlier=tuple(earlier)
        )

    def with_record(self, record: RunRecord) -> Planned:
        """The same, one turn further."""
        return Planned(self.prompt, self.settings, (*self.done, record))


def plan(
    prompts: Sequence[Prompt], ways: Sequence[tuple[str, int]], settings: RunSettings
) -> list[Planned]:
    """Every prompt in every way; a prompt's ways follow each other: drift hits them alike.

    Raises Problem for a way that no pair could run.
    """
    found = ways_of(settings, ways)
    for way in found:
        check_settings(way)
    return [
        Planned(prompt, msgspec.structs.replace(way, prompt=prompt.turns[0]))
        for prompt in prompts
        for way in found
    ]


def ways_of(settings: RunSettings, ways: Sequence[tuple[str, int]]) -> list[RunSettings]:
    """The settings with each method and draft length. Options are those of the settings' own
    method; others take their defaults.
    """
    return [
        msgspec.structs.replace(
            settings,
            method=method,
            method_options=settings.method_options if method == settings.method else {},
            draft_length=length,
        )
        for method, length in ways
    ]


def resumed(planned: Planned, kept: Callable[[str, RunSettings], RunRecord | None]) -> Planned:
    """The same with the records that were kept, turn by turn up to the first that was not.

    `kept` finds the record of a prompt's id and exactly these settings: a turn behind another reply
    is another run.
    """
    while (settings := planned.next) and (record := kept(planned.prompt.id, settings)):
        planned = planned.with_record(record)
    return planned


def run_bench(
    bench: Workbench,
    planned: Sequence[Planned],
    *,
    steps: StepTimes | None = None,
    report: Report,
    pause: Pause,
) -> Iterator[BenchRun | BrokenOff]:
    """Runs what is left of the plan, in order; a step of what guesses is measured once for all.
    Raises Cancelled when `pause` does, and Problem.
    """
    steps = steps or StepTimes()
    total = sum(len(one.prompt.turns) for one in planned)
    done = sum(len(one.done) for one in planned)
    for one in planned:
        conversation = Conversation(one.prompt.turns)
        while (settings := one.next) is not None:
            report(Progress(_stage(one), done, total, "runs"))
            record = _run(bench, one.name, settings, conversation, steps=steps, pause=pause)
            if isinstance(record, str):
                turns = len(one.prompt.turns)
                done += turns - len(one.done)
                yield BrokenOff(one.name, len(one.done), turns, record)
                break
            one, done = one.with_record(record), done + 1
            yield BenchRun(one.prompt.id, one.prompt.category, record)


def check_ways(
    bench: Workbench, planned: Sequence[Planned], *, report: Report, pause: Pause
) -> None:
    """Tries every way that is left with the loaded pair, before the first is run. Raises Problem
    for one that it cannot run, and Cancelled.
    """
    left = [one.settings for one in planned if one.next]
    ways = {(way.method, way.draft_length): way for way in left}
    for way in ways.values():
        bench.check(way, report=report, pause=pause)


def to_cost(ways: Sequence[tuple[str, int]], settings: RunSettings) -> list[RunSettings]:
    """The settings whose costs a bench of these ways needs: each method with its longest drafts."""
    longest: dict[str, int] = {}
    for method, length in ways:
        longest[method] = max(length, longest.get(method, 0))
    return ways_of(settings, list(longest.items()))


def method_costs(
    bench: Workbench, wanted: RunSettings, *, steps: StepTimes, report: Report, pause: Pause
) -> MethodCosts:
    """What passes and guesses cost for the method of these settings; why not, if it cannot
    speculate here or memory does not suffice. Raises Cancelled when `pause` does, and Problem if
    the models cannot be loaded.
    """
    pair = bench.loaded(preparation(wanted), report=report, pause=pause)
    maker = LaneMaker(pair, wanted, prompt_ids=(), context=pair.target.model.context_length)
    if maker.refusal:
        return MethodCosts(None, _clause(maker.refusal))
    try:
        with memory_guard("while passes were measured"):
            found = lane_costs(
                maker, context=SMALLEST_BUCKET, steps=steps, report=report, pause=pause
            )
    except Problem as problem:
        release_frames(problem)
        return MethodCosts(None, _clause(problem.message))
    return MethodCosts(found)


def _clause(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def _stage(one: Planned) -> str:
    turn = f", turn {len(one.done) + 1}" if len(one.prompt.turns) > 1 else ""
    return f"{one.name}{turn}"


def _run(
    bench: Workbench,
    name: str,
    settings: RunSettings,
    conversation: Conversation,
    *,
    steps: StepTimes,
    pause: Pause,
) -> RunRecord | str:
    """The record of a turn, or why there is none. Raises Cancelled, and Problem."""
    events: list[RunEvent] = []
    try:
        bench.run(
            name,
            settings,
            emit=events.append,
            report=lambda _: None,
            pause=pause,
            conversation=conversation,
            costing=False,
            remembered=False,
            steps=steps,
        )
    except (ContextFull, DoesNotFit) as lacking:
        return lacking.message
    record = RunRecord.of(events)
    if record.outcome == "cancelled":
        raise Cancelled
    return record.message if record.outcome == "failed" else record
