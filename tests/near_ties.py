"""Whether two greedy texts differ only where rounding may have decided."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from app.models.block import Block
from app.models.language_model import LanguageModel
from app.models.session import Session, shared_start

_PARTS = 4
"""Two logits are compared, and each was rounded in two passes."""


def fault(
    model: LanguageModel,
    prompt: Sequence[int],
    one: Sequence[int],
    other: Sequence[int],
    *,
    width: int,
) -> str:
    """Why two greedy texts behind a prompt, of the same length, are not the same but for a near
    tie; empty if they are.

    Where they differ first, the eager logits of both tokens may be no further apart than rounding
    goes: by what a row of the same text differs between passes of one row and of `width` rows, or
    by the last place of the largest logit, whichever is more. What follows is not compared.
    """
    place = shared_start(one, other)
    if len(one) != len(other):
        return f"{len(one)} tokens and {len(other)}"
    if place == len(one):
        return ""
    text = [*prompt, *one[:place]]
    alone, among = (_row(model, text, rows) for rows in (1, width))
    tokens = one[place], other[place]
    margin = abs(float(alone[tokens[0]] - alone[tokens[1]]))
    last_place = torch.finfo(model.dtype).eps * float(alone.abs().max())
    rounding = _PARTS * max(float((alone - among).abs().max()), last_place)
    if margin <= rounding:
        return ""
    return f"tokens {tokens} at {place} are {margin:.3g} apart, and rounding is {rounding:.3g}"


def _row(model: LanguageModel, text: Sequence[int], rows: int) -> Tensor:
    """The eager logits behind a text, [width], from a pass of so many rows."""
    session = Session(model, len(text) + rows)
    session.read(text[:-1], rows=1)
    guesses = Block([3 * place % model.rows for place in range(rows - 1)], device=model.device)
    return session.read(text, guesses, rows=rows).logits[0].float().cpu()
