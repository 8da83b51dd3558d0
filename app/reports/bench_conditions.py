"""Under which conditions a bench was made: what is needed to repeat it, what was not held equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from app.reports.bench_figures import Measurement
from app.reports.conditions import not_held_equal
from app.reports.run_facts import NOT_HELD_EQUAL, Fact, facts
from app.run.events import Environment, ModelFacts
from app.run.flagged import cautions
from app.run.flags import Flag
from app.run.record import RunRecord
from app.run.settings import RunSettings

_Facts = TypeVar("_Facts", Environment, ModelFacts)


class Counted(msgspec.Struct, frozen=True):
    """What holds of some runs of a bench, and of how many."""

    text: str
    runs: int


class Asked(msgspec.Struct, frozen=True):
    """A prompt as it was asked: its turns, as far as they were run."""

    id: str
    category: str
    turns: tuple[str, ...]


class BenchConditions(msgspec.Struct, frozen=True):
    """What all runs of a bench have in common, and in what they differ."""

    began: str
    """When its first run began: local time with its offset, ISO 8601."""
    runs: int
    settings: RunSettings
    """Those of every run, but for `OF_EACH_RUN`, which are those of the first, without prompt."""
    prompts: tuple[Asked, ...]
    environments: tuple[Environment, ...]
    """Several only if some of the runs were kept from another machine or version."""
    targets: tuple[ModelFacts, ...]
    drafts: tuple[ModelFacts, ...]
    not_held_equal: tuple[Counted, ...]
    cautions: tuple[Counted, ...]
    notes: tuple[Counted, ...]


OF_EACH_RUN = ("prompt", "earlier", "method", "draft_length")
"""The settings that a bench gives to each run apart: its prompt and its way."""


def conditions_of(measurements: Sequence[Measurement]) -> BenchConditions:
    """The conditions of these runs, of which there has to be one at least."""
    records = [record for _, _, record in measurements]
    return BenchConditions(
        began=min(record.started for record in records),
        runs=len(records),
        settings=msgspec.structs.replace(records[0].settings, prompt="", earlier=()),
        prompts=tuple(_asked(measurements)),
        environments=_each(record.environment for record in records),
        targets=_each(record.target for record in records),
        drafts=_each(record.draft for record in records if record.draft),
        not_held_equal=(
            *_counted(map(not_held_equal, records)),
            *_mixed("machine, or its versions,", [record.environment for record in records]),
            *_mixed("target, or how it was held,", [record.target for record in records]),
        ),
        cautions=_counted(map(_cautions, records)),
        notes=_counted(record.notes for record in records),
    )


def to_repeat(found: BenchConditions, ways: Iterable[str]) -> Iterator[Fact]:
    """What is needed to repeat a bench of these ways, named as in `run_facts`; prompts as JSON."""
    yield "began", found.began
    yield "runs", found.runs
    yield from (("way", way) for way in ways)
    for field in found.settings.__struct_fields__:
        if field not in OF_EACH_RUN:
            yield from facts(f"settings.{field}", getattr(found.settings, field))
    for name in ("environment", "target", "draft"):
        several: tuple[msgspec.Struct, ...] = getattr(found, f"{name}s")
        for number, one in enumerate(several or (None,), 1):
            yield from facts(name if number == 1 else f"{name} {number}", one)
    for prompt in found.prompts:
        yield from facts("prompt", msgspec.to_builtins(prompt))


def to_mind(found: BenchConditions) -> Iterator[Fact]:
    """What was not held equal, the cautions and the notes, each with the runs it holds of."""
    kinds = ((NOT_HELD_EQUAL, found.not_held_equal), ("caution", found.cautions))
    for name, told in (*kinds, ("note", found.notes)):
        yield from ((name, f"{one.text} ({one.runs} of {found.runs} runs)") for one in told)


def _each(found: Iterable[_Facts]) -> tuple[_Facts, ...]:
    """Each that is unlike those before it."""
    different: list[_Facts] = []
    for one in found:
        if one not in different:
            different.append(one)
    return tuple(different)


def _mixed(what: str, found: Sequence[_Facts]) -> Iterator[Counted]:
    """Says that runs which are counted together were not made with the same."""
    other = sum(one != found[0] for one in found)
    if other:
        yield Counted(f"The {what} was not that of the first run: figures mix them.", other)


def _asked(measurements: Sequence[Measurement]) -> Iterator[Asked]:
    """Every prompt, with the longest row of turns that one of its ways has come to."""
    turns: dict[tuple[str, str], dict[int, str]] = {}
    for prompt, category, record in measurements:
        settings = record.settings
        turns.setdefault((prompt, category), {})[settings.turn] = settings.prompt
    for (prompt, category), said in turns.items():
        yield Asked(prompt, category, tuple(said[turn] for turn in sorted(said)))


def _cautions(record: RunRecord) -> list[str]:
    """The cautions of a run by their kind alone: what was seen differs from run to run."""
    return [Flag(flag.kind).message for flag in cautions(record)]


def _counted(of_each: Iterable[Iterable[str]]) -> tuple[Counted, ...]:
    """Every line once, in the order in which they first come, and how many runs have it."""
    runs = Counter(line for lines in of_each for line in dict.fromkeys(lines))
    return tuple(Counted(text, count) for text, count in runs.items())
