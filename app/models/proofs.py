"""Two proofs at load: can the model be rewound, and do the rows of a pass know each other? And one
for those who ask for it: can its first layers guess?

All compare logits bit for bit, from passes of the same widths: rounding cannot tell them apart,
so any difference is a real one. Only a mixture of experts rounds by what else is in a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from app.models.early_exit import EarlyExit
from app.models.language_model import LanguageModel
from app.models.layer_proof import coupling_layer
from app.models.session import Block
from app.run.problems import Problem

_LONGEST_WINDOW = 1024
"""Sliding windows up to this many tokens are tried past their end; longer ones cost too much."""
_COMPANIONS = 4
_ROUNDINGS = 8
"""Steps of precision by which a mixture of experts may round rows apart: tokens of one expert are
multiplied together, and how many they are decides how the sums are rounded."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether something holds, and in words how that is known."""

    holds: bool
    note: str


def prove_rewinding(model: LanguageModel) -> Proof:
    """Feeds tokens, takes some back, feeds others, and compares with never having fed the first.

    Source of need: a rejected guess must leave no trace (algorithms of every speculative method).
    """
    window = model.sliding_window
    try:
        apart = _apart_after(model, 4)
        if apart is not None:
            return Proof(False, f"after rewinding, the model answers differently ({apart})")
        if window is None:
            return Proof(True, "rewinding tried: same answer, bit for bit")
        if window > _LONGEST_WINDOW:
            return Proof(True, f"rewinding tried, but not past its window of {window} tokens")
        apart = _apart_after(model, window + 3)
        if apart is not None:
            return Proof(
                False, f"past its window of {window} tokens it cannot be rewound ({apart})"
            )
        return Proof(True, f"rewinding tried, also past its window of {window} tokens")
    except Problem:
        raise
    except Exception as error:  # a cache that cannot be cropped may fail in any way
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0]
        return Proof(False, f"the model's state cannot be rewound ({reason})")


def prove_rows_independent(model: LanguageModel) -> Proof:
    """Reads one prefix with different companions behind it, at one width, and compares the rows.

    The answer at a row must not depend on the guesses after it; activation scales over a whole
    tensor and outlier columns chosen over all rows break this. A text may not bring the numbers
    that show it, so the layers are tried apart too.
    """
    prefix = _ids(model, 5)
    try:
        first = _row_with_companions(model, prefix, offset=101)
        second = _row_with_companions(model, prefix, offset=211)
        coupling = coupling_layer(model.inner, model.dtype)
    except Problem:
        raise
    except Exception as error:  # no row to compare is no proof either
        return Proof(False, f"not tried: {error}")
    if coupling is not None:
        kind, apart = coupling
        return Proof(
            False,
            f"a row changes with the guesses after it where these hold large numbers (in layers of "
            f"the kind {kind}, by up to {apart:.2g})",
        )
    if _same(first, second):
        return Proof(True, "rows do not know each other: same row, bit for bit")
    apart = _distance(first, second)
    if model.mixes_experts and apart <= _rounding(first):
        return Proof(True, f"rows do not know each other, but for rounding ({apart:.2g})")
    return Proof(False, f"a row changes with the guesses after it (logits by up to {apart:.2g})")


def why_no_early_exit(model: LanguageModel) -> str:
    """Why the first layers of a model cannot guess ahead of it; empty if they can. Tried once."""
    if model.early_exit is None:
        model.early_exit = _tried_exit(model)
    return model.early_exit


def _tried_exit(model: LanguageModel) -> str:
    """Lets the first layers guess in the target's own cache, and compares what the target answers
    then with its answer where no one has guessed.
    """
    if model.layers < 2:
        return "it has one layer"
    ids, guesses = _ids(model, 5), _ids(model, 2, offset=150)
    try:
        plain = _behind_exit(model, ids, guesses, exits=False)
        exited = _behind_exit(model, ids, guesses, exits=True)
        again = _behind_exit(model, ids, guesses, exits=False)
    except Problem:
        raise
    except Exception as error:  # a model that is built otherwise may fail in any way
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return f"its first layers cannot be run alone ({reason})"
    apart, unsteady = _distance(exited, plain), _distance(plain, again)
    if not _same(exited, plain) and apart > 2 * unsteady:
        return f"its answers change where they have guessed (logits by up to {apart:.2g})"
    return ""


def _behind_exit(
    model: LanguageModel, ids: list[int], guesses: list[int], *, exits: bool
) -> Tensor:
    """The target's logits of guesses, [3, width], which the first layers have read if `exits`."""
    session = model.open(len(ids) + len(guesses))
    session.read(ids[:-1], rows=1)
    if exits:
        beside = EarlyExit(model).open(session, len(ids) + len(guesses))
        block = Block(device=model.device)
        logits = beside.read(ids, block, rows=1).logits
        for token in guesses:
            block.append(torch.tensor(token, device=model.device))
            logits = beside.read(ids, block, rows=1).logits
        if logits.shape != (1, model.width):
            raise ValueError(f"it answers with {tuple(logits.shape)} numbers")
    return session.read(ids, Block(guesses, device=model.device), rows=3).logits.cpu()


def _apart_after(model: LanguageModel, prefix: int) -> str | None:
    """How answers differ once two tokens were taken back behind `prefix` ones; None if not at all.

    A model that answers two equal passes differently is allowed that much, and no more.
    """
    ids = _ids(model, prefix)
    wrong, right = _ids(model, 2, offset=300), _ids(model, 2, offset=400)
    rewound = _after(model, ids, [wrong, right])
    fresh, again = _after(model, ids, [right]), _after(model, ids, [right])
    if _same(rewound, fresh) or _same(rewound, again):
        return None
    apart, unsteady = _distance(rewound, fresh), _distance(fresh, again)
    return None if apart <= 2 * unsteady else f"logits by up to {apart:.2g}"


def _after(model: LanguageModel, ids: list[int], tries: Sequence[list[int]]) -> Tensor:
    """Logits behind the last of several tries, each of which takes the one before it back."""
    session = model.open(len(ids) + 2)
    session.read(ids, rows=1)
    for guesses in tries:
        logits = session.read(ids, Block(guesses, device=model.device), rows=2).logits
    return logits.cpu()


def _row_with_companions(model: LanguageModel, prefix: list[int], *, offset: int) -> Tensor:
    """The row behind the prefix's last token, read together with guesses after it."""
    session = model.open(len(prefix) + _COMPANIONS)
    session.read(prefix[:-1], rows=1)
    guesses = Block(_ids(model, _COMPANIONS, offset=offset), device=model.device)
    return session.read(prefix, guesses, rows=_COMPANIONS + 1).logits[0].cpu()


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether both are the same bit for bit; not-a-number is left for the run to tell of."""
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def _distance(one: Tensor, other: Tensor) -> float:
    """The largest difference of two logits."""
    return float((one.float() - other.float()).abs().max())


def _rounding(row: Tensor) -> float:
    """What rounding may move a logit of this row by: a few steps of its own precision."""
    return _ROUNDINGS * float(torch.finfo(row.dtype).eps) * float(row.float().abs().max())


def _ids(model: LanguageModel, count: int, *, offset: int = 0) -> list[int]:
    """Some ids that the model can read, well spread."""
    rows = model.rows
    return [(17 + 31 * place + offset * 7) % rows for place in range(count)]
