"""Runs every model once before anything is timed, so that no lane pays for being first."""

from __future__ import annotations

from collections.abc import Sequence

from app.decoding.clock import clock_for
from app.decoding.contracts import row_at
from app.models.early_exit import EarlyExit
from app.models.language_model import LanguageModel
from app.models.loaded_head import LoadedHead
from app.models.session import Block

_LONGEST = 8
"""Tokens of the prompt that are read."""


def warm_up(model: LanguageModel, prompt_ids: Sequence[int], *, width: int) -> None:
    """Reads some of a prompt, then one token, then `width` at once, as a run will.

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
    guesses = Block([0] * (width - 1), device=model.device)
    session.read([*ids, *ids[-1:] * 2], guesses, rows=width)
    clock_for(model.device).wait()  # or the first lane would wait for what a card has still to do


def warm_up_head(head: LoadedHead | EarlyExit, prompt_ids: Sequence[int]) -> None:
    """Reads some of a prompt with a target and what guesses beside it, a head or its own first
    layers, then two guesses, as a run will.
    """
    target = head.target
    room = max(target.context_length - 4, 1)
    ids = [*(token % target.rows for token in prompt_ids[: min(_LONGEST, room)]), 0, 0]
    session = head.open_target(len(ids) + 2)
    session.read(ids[:-1], rows=1)
    beside = head.open(session, len(ids) + 2)
    guesses = Block(device=target.device)
    for _ in range(2):
        guess = beside.read(ids, guesses, rows=1).logits[0].argmax()
        guesses.append(row_at(head.ids, guess))
    clock_for(target.device).wait()
