"""Runs every model once before anything is timed, so that no lane pays for being first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from app.decoding.clock import clock_for
from app.models.block import Block
from app.models.language_model import LanguageModel
from app.models.paired_session import Beside
from app.run.events import Progress
from app.run.methods import Method
from app.run.tree_shape import pass_rows, tree_shape
from app.studies.head_steps import stepper
from app.studies.lanes import LaneMaker

Report = Callable[[Progress], None]
Pause = Callable[[], None]

_LONGEST = 8
"""Tokens of the prompt that are read."""


def warm_up_lanes(maker: LaneMaker, *, report: Report, pause: Pause) -> None:
    """Runs the widths of the lanes once with every model that they will use, and their trees."""
    report(Progress("warming up"))
    pair, settings, ids = maker.pair, maker.settings, maker.prompt_ids
    pause()
    if maker.refusal:
        warm_up(pair.target.model, ids, width=1)
        return
    width = pass_rows(settings, settings.draft_length)
    method = Method.named(settings.method)
    warm_up(pair.target.model, ids, width=width, branches=method.branches)
    pause()
    if pair.draft is not None and maker.drafter == "model":
        several = settings.draft_length + 1 if method.several_a_pass else 1
        warm_up(pair.draft.model, ids, width=several)
    if (beside := maker.beside) is not None:
        shape = tree_shape(settings)
        warm_up_head(beside, ids, breadth=shape.breadth if shape else 0)


def warm_up(
    model: LanguageModel, prompt_ids: Sequence[int], *, width: int, branches: bool = False
) -> None:
    """Reads some of a prompt, then one token, then `width` at once, as a run will; guesses of one
    level, if they are to be `branches`.

    Nothing is taken back, as a model may be unable to, and no position is behind the model's last.
    """
    room = model.context_length - 2
    if room < 1:
        return
    width = min(width, room)
    ids = [token % model.rows for token in prompt_ids[: min(_LONGEST, room - width + 1)]]
    session = model.open(len(ids) + width + 1)
    session.read(ids, rows=1)
    session.read([*ids, ids[-1]], rows=1)
    session.read([*ids, *ids[-1:] * 2], _guesses(model, width - 1, branches=branches), rows=width)
    clock_for(model.device).wait()  # or the first lane would wait for what a card has still to do


def _guesses(model: LanguageModel, count: int, *, branches: bool) -> Block:
    if not (branches and count):
        return Block([0] * count, device=model.device)
    block = Block(device=model.device)
    tokens = torch.zeros(count, dtype=torch.long, device=model.device)
    block.branch(tokens, torch.full_like(tokens, -1), levels=1)
    return block


def warm_up_head(head: Beside, prompt_ids: Sequence[int], *, breadth: int = 0) -> None:
    """Reads some of a prompt with a target and what guesses beside it, then two guesses, as a run
    will; two levels of them, the second behind so many guesses, where it has a `breadth`.
    """
    target = head.target
    room = max(target.context_length - 4, 1)
    ids = [*(token % target.rows for token in prompt_ids[: min(_LONGEST, room)]), 0, 0]
    session = head.open_target(len(ids) + 2)
    session.read(ids[:-1], rows=1)
    beside = head.open(session, len(ids) + max(breadth, 2))
    step_once = stepper(head, beside, ids, breadth=breadth)
    with torch.inference_mode():
        for _ in range(2):
            step_once()
    clock_for(target.device).wait()
