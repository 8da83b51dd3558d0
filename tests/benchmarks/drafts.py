"""What a draft is worth: every way of guessing beside plain decoding, over six kinds of prompts.

    python -m tests.benchmarks.drafts [--pair embedded] [--methods ngram-else-head,head]
        [--draft-length 4] [--per-kind 3] [--tokens 128] [--precision fp32] [--temperature 0]

Runs the shipped prompts, pairs of whole lanes alternated, and prints for each kind the median
decode speed-up of its prompts, their range, and how many texts are identical; then acceptance by
depth, a step of the draft in single steps of the target, and whether time adds up. Run it alone on
the machine.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from statistics import median

import msgspec
import torch

from app import files
from app.appraisal.appraise import appraise
from app.library.catalogue import load_catalogue
from app.library.prompts import limit_per_category, shipped_prompts
from app.models.machine import environment
from app.run.events import RunEvent
from app.run.metrics import acceptance_by_position, decode_seconds, decode_speedup, same_text
from app.run.record import RunRecord
from app.run.settings import RunSettings, Sampling
from app.studies.workbench import Workbench


@dataclass(frozen=True)
class Run:
    """One prompt, run one way."""

    category: str
    record: RunRecord


def main() -> None:
    """Runs the bench and prints what came of it."""
    asked = _arguments()
    bench = Workbench(load_catalogue([files.shipped_catalogue(), files.user_catalogue()]))
    settings = RunSettings(
        pair=asked.pair,
        prompt="",
        precision=asked.precision,
        max_new_tokens=asked.tokens,
        sampling=Sampling(temperature=asked.temperature, seed=1),
    )
    facts = environment(torch.device("cpu"))
    print(f"{facts.device}, {facts.threads} threads, torch {facts.packages['torch']}")
    methods = asked.methods.split(",")
    runs: dict[str, list[Run]] = {method: [] for method in methods}
    for prompt in limit_per_category(shipped_prompts(), asked.per_kind).prompts:
        for method in methods:
            changes = {
                "prompt": prompt.turns[0],
                "method": method,
                "draft_length": asked.draft_length,
            }
            record = _record(bench, msgspec.structs.replace(settings, **changes))
            runs[method].append(Run(prompt.category, record))
    for method, found in runs.items():
        _show(f"{method} {asked.draft_length}, {asked.precision}, T {asked.temperature:g}", found)


def _record(bench: Workbench, settings: RunSettings) -> RunRecord:
    events: list[RunEvent] = []
    bench.run("r", settings, emit=events.append, report=lambda _: None, pause=lambda: None)
    record = RunRecord.of(events)
    assert record.outcome == "finished", record.message
    return record


def _show(title: str, runs: list[Run]) -> None:
    print(f"\n{title}; decode speed-up, median of prompts")
    for kind in dict.fromkeys(run.category for run in runs):
        _line(kind, [run.record for run in runs if run.category == kind])
    records = [run.record for run in runs]
    _line("together", records)
    slow, fast = (_seconds(records, lane) for lane in ("baseline", "speculative"))
    print(f"  sum of seconds: baseline {slow:.1f}, speculative {fast:.1f}: {slow / fast:.2f}x")
    rounds = [
        one
        for record in records
        for each in record.repetitions("speculative")
        for one in each.rounds
    ]
    shown = [f"{place.conditional:.2f}" for place in acceptance_by_position(rounds)]
    print(f"  conditional acceptance by depth: {' / '.join(shown)}")
    costs = [record.costs for record in records if record.costs and record.costs.draft_ratio]
    if costs:
        print(f"  a draft step in single steps: {median(one.draft_ratio for one in costs):.3f}")


def _line(kind: str, records: list[RunRecord]) -> None:
    gains = [spread.median for record in records if (spread := decode_speedup(record))]
    same = [found.same for record in records if (found := same_text(record))]
    apart = [
        abs(share) for record in records if (share := appraise(record).unexplained) is not None
    ]
    print(
        f"  {kind:<12} {median(gains):.2f}x ({min(gains):.2f}-{max(gains):.2f}), "
        f"{len(gains)} prompts, identical {sum(same)} of {len(same)}"
        + (f", unexplained {median(apart):.0%}" if apart else "")
    )


def _seconds(records: list[RunRecord], lane: str) -> float:
    return sum(decode_seconds(each) for record in records for each in record.repetitions(lane))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Every way of guessing beside plain decoding.")
    parser.add_argument("--pair", default="embedded")
    parser.add_argument("--methods", default="ngram-else-head,head,ngram")
    parser.add_argument("--draft-length", type=int, default=4)
    parser.add_argument("--per-kind", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--temperature", type=float, default=0.0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
