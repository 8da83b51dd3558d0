"""What a pass of fixed shape costs beside an eager one: of one model, behind one text, in turns.

    python -m tests.benchmarks.passes [--device cpu] [--precisions fp32,bf16,int8] [--behind 200]
        [--rows 1,3,5,9] [--pairs 40]

On a CPU nothing is recorded: every operation of a pass of fixed shape is computed, as an eager one
is. On a card the passes are captured graphs. Prints the median of the paired ratios, fixed over
eager, with its 95 % interval, and the median of an eager pass in milliseconds. Run it alone on the
machine.
"""

from __future__ import annotations

import argparse
from functools import partial
from statistics import median

import torch

from app import files
from app.library.catalogue import load_catalogue
from app.models.fixed.choice import choose_passes
from app.models.language_model import LanguageModel
from app.models.machine import environment
from app.models.session import Session
from app.run.preparation import Prepare
from app.studies.workbench import Workbench
from tests.benchmarks.timing import median_interval, seconds_of

_WARM = 5
"""Passes of each kind before any is timed."""


def main() -> None:
    """Measures every precision and number of rows, and prints it."""
    asked = _arguments()
    device = torch.device(asked.device)
    facts = environment(device)
    print(f"{facts.platform}, {facts.device}, {facts.threads} threads")
    bench = Workbench(load_catalogue([files.shipped_catalogue()]))
    for precision in asked.precisions.split(","):
        wanted = Prepare("embedded", precision, None, asked.device)
        pair = bench.loaded(wanted, report=lambda progress: None, pause=lambda: None)
        model = pair.target.model
        choose_passes(model, "auto" if device.type == "cuda" else "fixed")
        if model.passes.mode == "eager":
            print(f"{precision}: {model.passes.said}")
            continue
        for rows in (int(each) for each in asked.rows.split(",")):
            eager, fixed = both_ways(model, rows, behind=asked.behind, pairs=asked.pairs)
            ratios = [one / other for one, other in zip(fixed, eager, strict=True)]
            low, high = median_interval(ratios)
            print(
                f"{precision}, {rows} rows, {model.passes.said}: {median(ratios):.3f} "
                f"({low:.3f}-{high:.3f}), {1000 * median(eager):.2f} ms eagerly"
            )


def both_ways(
    model: LanguageModel, rows: int, *, behind: int, pairs: int
) -> tuple[list[float], list[float]]:
    """Seconds of passes over so many rows that end a text of `behind` tokens and them: eager ones,
    and those of the way that was chosen. Each pass reads the rows again.
    """
    text = [1 + place % 1000 for place in range(behind + rows)]
    sessions = [Session(model, len(text)), model.open(len(text))]
    ways = [partial(session.read, text, rows=rows) for session in sessions]
    for session, way in zip(sessions, ways, strict=True):
        session.prepare(rows, behind=behind)
        for _ in range(_WARM):
            way()
    taken: tuple[list[float], list[float]] = ([], [])
    for pair in range(pairs):
        first = pair % 2
        for way in (first, 1 - first):
            taken[way].append(seconds_of(ways[way], model.device))
    return taken


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precisions", default="fp32,bf16,int8")
    parser.add_argument("--behind", type=int, default=200)
    parser.add_argument("--rows", default="1,3,5,9")
    parser.add_argument("--pairs", type=int, default=40)
    return parser.parse_args()


if __name__ == "__main__":
    main()
