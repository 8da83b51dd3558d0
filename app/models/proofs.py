"""Two proofs at load: can the model be rewound, and do the rows of a pass know each other?

Both compare logits bit for bit, from passes of the same widths: rounding cannot tell them apart,
so any difference is a real one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from app.models.language_model import LanguageModel
from app.models.session import Block
from app.run.problems import Problem

_LONGEST_WINDOW = 1024
"""Sliding windows up to this many tokens are tried past their end; longer ones cost too much."""
_COMPANIONS = 4


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether something holds, and in words how that is known."""

    holds: bool
    note: str


def prove_rewinding(model: LanguageModel) -> Proof:
    """Feeds tokens, takes some back, feeds others, and compares with never having fed the first.

    Source of need: a rejected guess must leave no trace (algorithms of every speculative method).
    """
    try:
        if not _rewinds_after(model, 4):
            return Proof(False, "after rewinding, the model answers differently than afresh")
        window = model.sliding_window
        if window is None:
            return Proof(True, "rewinding tried: same answer, bit for bit")
        if window > _LONGEST_WINDOW:
            return Proof(True, f"rewinding tried, but not past its window of {window} tokens")
        if not _rewinds_after(model, window + 3):
            return Proof(False, f"past its window of {window} tokens the model cannot be rewound")
        return Proof(True, f"rewinding tried, also past its window of {window} tokens")
    except Problem:
        raise
    except Exception as error:  # a cache that cannot be cropped may fail in any way
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return Proof(False, f"the model's state cannot be rewound ({reason})")


def prove_rows_independent(model: LanguageModel) -> Proof:
    """Reads one prefix with different companions behind it, at one width, and compares the rows.

    The answer at a row must not depend on the guesses after it; activation scales over a whole
    tensor and outlier columns chosen over all rows break this.
    """
    prefix = _ids(model, 5)
    try:
        first = _row_with_companions(model, prefix, offset=101)
        second = _row_with_companions(model, prefix, offset=211)
    except Problem:
        raise
    except Exception as error:  # no row to compare is no proof either
        return Proof(False, f"not tried: {error}")
    if torch.equal(first, second):
        return Proof(True, "rows do not know each other: same row, bit for bit")
    apart = float((first - second).abs().max())
    return Proof(False, f"a row changes with the guesses after it (logits by up to {apart:.2g})")


def _rewinds_after(model: LanguageModel, prefix: int) -> bool:
    """Whether two tokens can be taken back behind `prefix` ones, and others fed."""
    ids = _ids(model, prefix)
    wrong, right = _ids(model, 2, offset=300), _ids(model, 2, offset=400)
    rewound = _after(model, ids, [wrong, right])
    fresh = _after(model, ids, [right])
    return bool(torch.equal(rewound, fresh))


def _after(model: LanguageModel, ids: list[int], tries: Sequence[list[int]]) -> Tensor:
    """Logits behind the last of several tries, each of which takes the one before it back."""
    session = model.open(len(ids) + 2)
    session.read(ids, rows=1)
    for guesses in tries:
        logits = session.read(ids, Block(guesses, device=model.device), rows=2).logits
    return logits.float().cpu()


def _row_with_companions(model: LanguageModel, prefix: list[int], *, offset: int) -> Tensor:
    """The row behind the prefix's last token, read together with guesses after it."""
    session = model.open(len(prefix) + _COMPANIONS)
    session.read(prefix[:-1], rows=1)
    guesses = Block(_ids(model, _COMPANIONS, offset=offset), device=model.device)
    return session.read(prefix, guesses, rows=_COMPANIONS + 1).logits[0].float().cpu()


def _ids(model: LanguageModel, count: int, *, offset: int = 0) -> list[int]:
    """Some ids that the model can read, well spread."""
    rows = model.rows
    return [(17 + 31 * place + offset * 7) % rows for place in range(count)]
