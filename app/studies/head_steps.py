"""What one more guess beside a target costs, of a draft head or of the target's first layers,
measured here behind a context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import torch

from app.decoding.clock import clock_for
from app.decoding.contracts import row_at
from app.decoding.proposers.grown_tree import TreeGrowing
from app.models.block import Block
from app.models.language_model import LanguageModel
from app.models.paired_session import Beside, PairedSession
from app.models.session import MAX_CHUNK
from app.studies.passes import opened_behind
from app.studies.whole_times import TreeAsked, WholeAsked, time_whole

_STEPS = 24
"""Guesses behind the median, after one that only warms up."""

_LEVELS = 8
"""Levels behind the median, where guesses branch."""


def time_steps(
    head: Beside,
    *,
    context: int,
    pause: Callable[[], None],
    breadth: int = 0,
    whole: WholeAsked | None = None,
) -> float:
    """Median seconds of one more guess, its choice included, behind a context of so many tokens;
    with a `breadth` of one more level of guesses that branch. Where guesses are made as such a
    `whole`, of one of its guesses or levels.

    Raises Cancelled when `pause` does, Problem if memory does not suffice.
    """
    target, clock = head.target, clock_for(head.device)
    length = max(min(context, target.context_length - _STEPS - 2), 2)
    text = [(7 * place) % target.rows for place in range(length)]
    session = head.open_target(length + _STEPS + 1)
    for upto in [*range(MAX_CHUNK, length - 1, MAX_CHUNK), length - 1]:
        pause()
        session.read(text, rows=1, upto=upto)
    steps = _LEVELS if breadth else _STEPS
    # The first read has no guess, each of the steps + 1 behind it feeds those of the one before.
    grown = whole.how.read(whole.length) if isinstance(whole, TreeAsked) else 0
    read = max((steps + 1) * max(breadth, 1), grown)
    beside = head.open(session, length + read)
    if whole is not None:
        found = time_whole(beside, text, whole, clock=clock, pause=pause)
        if found is not None:
            return found
    step_once = stepper(head, beside, text, breadth=breadth)
    taken = []
    for step in range(steps + 2):
        pause()
        clock.wait()
        start = clock.now()
        with torch.inference_mode():
            step_once()
        clock.wait()
        if step > 1:  # the first has read the context, the second warmed up
            taken.append(clock.now() - start)
    return median(taken)


class StepTimes:
    """Steps as they were measured, each once: for a study of many runs with one pair."""

    def __init__(self) -> None:
        self._taken: dict[tuple[str, str, int, int, WholeAsked | None], float] = {}

    def of(
        self,
        beside: Beside,
        *,
        context: int,
        pause: Callable[[], None],
        breadth: int = 0,
        whole: WholeAsked | None = None,
    ) -> float:
        """As `time_steps`, the first time that it is asked while passes are computed as they are.
        What was measured while something was lacking is said of passes so computed only.
        """
        asked = (beside.name, context, breadth, whole)
        taken = self._taken.get((beside.target.passes.said, *asked))
        if taken is None:
            taken = time_steps(beside, context=context, pause=pause, breadth=breadth, whole=whole)
            self._taken[beside.target.passes.said, *asked] = taken
        return taken

    def of_model(
        self, draft: LanguageModel, whole: WholeAsked, *, context: int, pause: Callable[[], None]
    ) -> float | None:
        """Seconds of a guess of a draft that a draft model makes as a whole, behind a context of so
        many tokens, the first time that it is asked; None where it makes none.
        """
        key = ("", cost_name(draft), context, 0, whole)
        if key not in self._taken:
            found = time_model_whole(draft, whole, context=context, pause=pause)
            if found is None:
                return None
            self._taken[key] = found
        return self._taken[key]


def cost_name(draft: LanguageModel) -> str:
    """What tells a draft model's steps from others'."""
    return f"{draft.folder}, {draft.precision}, {draft.device}"


def time_model_whole(
    draft: LanguageModel, whole: WholeAsked, *, context: int, pause: Callable[[], None]
) -> float | None:
    """As `time_whole`, behind a context of so many tokens that the draft model reads first."""
    length = max(min(context, draft.context_length - whole.length), 1)
    text = [(7 * place) % draft.rows for place in range(length)]
    session = opened_behind(draft, text, [whole.length], pause=pause)
    return time_whole(session, text, whole, clock=clock_for(draft.device), pause=pause)


def stepper(
    head: Beside, beside: PairedSession, text: Sequence[int], *, breadth: int = 0
) -> Callable[[], None]:
    """What makes one more guess behind a text each time, or one more level of guesses."""
    return _level(head, beside, text, breadth) if breadth else _guess(head, beside, text)


def _guess(head: Beside, beside: PairedSession, text: Sequence[int]) -> Callable[[], None]:
    """What makes one more guess behind the last one."""
    block = Block(device=head.device)

    def once() -> None:
        guess = beside.read(text, block, rows=1).logits[0].argmax()
        block.append(row_at(head.ids, guess))

    return once


def _level(
    head: Beside, beside: PairedSession, text: Sequence[int], breadth: int
) -> Callable[[], None]:
    """What makes one more level of guesses behind the best of the last one."""
    tree = TreeGrowing.of(head.ids, nodes=1, breadth=breadth, end_ids=()).begin()

    def once() -> None:
        tree.grow(beside.read(text, tree.beam, rows=1).logits)
        tree.extend_beam()

    return once
