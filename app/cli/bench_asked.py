"""What the flags of `bench` ask for: its prompts, and the ways of guessing that it measures."""

from __future__ import annotations

from pathlib import Path

from app.library.entries import PairEntry
from app.library.prompts import PromptSet, limit_per_category, read_prompts, shipped_prompts
from app.run.methods import Method
from app.run.problems import Problem
from app.run.settings import LONGEST_DRAFT


def bench_prompts(file: Path | None, *, column: str | None, limit: int | None) -> PromptSet:
    """The prompts of a file, else the shipped ones; of each category the first so many."""
    prompts = read_prompts(file, column=column) if file else shipped_prompts()
    return prompts if limit is None else limit_per_category(prompts, limit)


def bench_ways(
    pair: PairEntry, methods: str | None, draft_lengths: str | None
) -> list[tuple[str, int]]:
    """Every method with every draft length. Raises Problem for one that there is not, and for a
    method whose draft model or head the pair does not name.
    """
    names = [name.strip() for name in (methods or pair.method).split(",") if name.strip()]
    for name in names:
        _refuse_lacking(pair, Method.named(name))
    lengths = [_length(part) for part in (draft_lengths or str(pair.draft_length)).split(",")]
    return list(dict.fromkeys((name, length) for name in names for length in lengths))


def _refuse_lacking(pair: PairEntry, method: Method) -> None:
    """Whether a target has modules of its own is seen when it is loaded; the rest the pair says."""
    if method.drafter == "mtp" or pair.offers(method.drafter):
        return
    lacking = "draft head" if method.drafter == "head" else "draft model"
    raise Problem(
        f"The pair {pair.name!r} has no {lacking}, which the method {method.name!r} guesses with.",
        "Choose another method, or a pair that has one: `foretoken models` lists them.",
    )


def _length(part: str) -> int:
    try:
        length = int(part)
    except ValueError:
        raise Problem(
            f"{part!r} is no draft length.", "Give whole numbers separated by commas, as in 2,4,8."
        ) from None
    if not 0 <= length <= LONGEST_DRAFT:
        raise Problem(f"The draft length is {length}.", f"Choose one from 0 to {LONGEST_DRAFT}.")
    return length
