"""Two proofs at load: can the model be rewound, and do the rows of a pass know each other? And one
for those who ask for it: can its first layers guess?

Both compare logits bit for bit, from passes of the same widths: rounding cannot tell them apart,
so any difference is a real one; the first layers' too. Only a mixture of experts rounds by what
else is in a pass. Another proof, for methods whose guesses branch, can only ask for the same but
for rounding: a tree's keys lie at other places than those of a single branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from app.models.block import Block
from app.models.early_exit import EarlyExit
from app.models.language_model import LanguageModel
from app.models.layer_proof import coupling_layer
from app.run.problems import Cancelled, Problem

_LONGEST_WINDOW = 1024
"""Sliding windows up to this many tokens are tried past their end; longer ones cost too much."""
_COMPANIONS = 4
_ROUNDINGS = 8
"""Steps of precision by which a mixture of experts may round rows apart: tokens of one expert are
multiplied together, and how many they are decides how the sums are rounded."""
_BRANCHES = (-1, -1, 0, 0, 1, 3)
"""The tree that is tried: what each of its guesses stands behind. The guesses of the last branch
are no neighbours."""
_BRANCH_ROUNDING = {torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}
_BRANCH_ROUNDING_8_BIT = 0.3
"""What rounding may make of a row, as a share of its length; another branch's row is far more.
Where activations are rounded to 8 bits, a last bit that differs becomes a step that differs."""


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
    except (Problem, Cancelled):
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
    prefix = ids_for(model, 5)
    try:
        first = _row_with_companions(model, prefix, offset=101)
        second = _row_with_companions(model, prefix, offset=211)
        coupling = coupling_layer(model.inner, model.dtype)
    except (Problem, Cancelled):
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


def prove_early_exit(model: LanguageModel) -> Proof:
    """Lets the first layers guess in the target's own cache, and compares what the target answers
    then with its answer where no one has guessed.
    """
    if model.layers < 2:
        return Proof(False, "it has one layer")
    ids, guesses = ids_for(model, 5), ids_for(model, 2, offset=150)
    try:
        plain = _behind_exit(model, ids, guesses, exits=False)
        exited = _behind_exit(model, ids, guesses, exits=True)
        again = _behind_exit(model, ids, guesses, exits=False)
    except Problem:
        raise
    except Exception as error:  # a model that is built otherwise may fail in any way
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return Proof(False, f"its first layers cannot be run alone ({reason})")
    apart, unsteady = _distance(exited, plain), _distance(plain, again)
    if not _same(exited, plain) and apart > 2 * unsteady:
        note = f"its answers change where they have guessed (logits by up to {apart:.2g})"
        return Proof(False, note)
    return Proof(True, "an early exit tried: same answers where the first layers have guessed")


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


def prove_trees(model: LanguageModel) -> Proof:
    """Reads guesses that branch, then each branch alone, and compares; then goes on behind one.

    Source of need: tree attention (Miao et al. 2023, arXiv 2305.09781, section 4.2).
    """
    window = model.sliding_window
    prefix = 4 if window is None or window > _LONGEST_WINDOW else window + 2
    try:
        apart = _tree_apart(model, ids_for(model, prefix))
    except Problem:
        raise
    except Exception as error:  # a model that takes no mask of ours may fail in any way
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return Proof(False, f"the model cannot read guesses that branch ({reason})")
    if apart > branch_rounding(model):
        return Proof(False, f"the model reads guesses that branch otherwise ({apart:.2g} of it)")
    return Proof(
        True,
        "guesses that branch tried: each row as in its branch alone, but for rounding "
        f"({apart:.2g} of it at most)",
    )


def _tree_apart(model: LanguageModel, text: list[int]) -> float:
    """The most that a row of a tree, or one behind a branch that was kept, is apart from the same
    row read without the tree, as a share of it.
    """
    ids = ids_for(model, len(_BRANCHES), offset=300)
    block = Block(device=model.device)
    block.branch(
        torch.tensor(ids, device=model.device),
        torch.tensor(_BRANCHES, device=model.device),
        levels=3,
    )
    session = model.open(len(text) + len(ids) + 1)
    tree = session.read(text, block, rows=len(ids) + 1).logits
    apart = []
    for place in range(len(ids)):
        path = _branch(place)
        alone = _after(model, text, [[ids[at] for at in path]])
        mine = tree[[0, *(at + 1 for at in path)]].cpu()
        apart.append(share_apart(mine, alone))
    kept = [*text, *(ids[at] for at in _branch(len(ids) - 1)), ids[0]]
    behind = session.read(kept, rows=1).logits.cpu()
    alone = _after(model, kept[:-1], [kept[-1:]])
    return max(*apart, share_apart(behind, alone[-1:]))


def branch_rounding(model: LanguageModel) -> float:
    """How far apart two readings of a row may be in this model's numbers."""
    if "int8" in model.precision:
        return _BRANCH_ROUNDING_8_BIT
    return _BRANCH_ROUNDING.get(model.dtype, min(_BRANCH_ROUNDING.values()))


def _branch(place: int) -> list[int]:
    """The guesses from the text to this one."""
    path = [place]
    while _BRANCHES[path[0]] >= 0:
        path.insert(0, _BRANCHES[path[0]])
    return path


def share_apart(one: Tensor, other: Tensor) -> float:
    """The largest difference of two rows, as a share of the length of the other."""
    lengths = other.float().norm(dim=-1)
    return float(((one.float() - other.float()).norm(dim=-1) / lengths).max())


def _apart_after(model: LanguageModel, prefix: int) -> str | None:
    """How answers differ once two tokens were taken back behind `prefix` ones; None if not at all.

    A model that answers two equal passes differently is allowed that much, and no more.
    """
    ids = ids_for(model, prefix)
    wrong, right = ids_for(model, 2, offset=300), ids_for(model, 2, offset=400)
    rewound = _after(model, ids, [wrong, right])
    fresh, again = _after(model, ids, [right]), _after(model, ids, [right])
    if _same(rewound, fresh) or _same(rewound, again):
        return None
    apart, unsteady = _distance(rewound, fresh), _distance(fresh, again)
    return None if apart <= 2 * unsteady else f"logits by up to {apart:.2g}"


def _after(model: LanguageModel, ids: list[int], tries: Sequence[list[int]]) -> Tensor:
    """Logits behind the text and each guess of the last of several tries, each of which takes the
    one before it back.
    """
    session = model.open(len(ids) + max(map(len, tries)))
    session.read(ids, rows=1)
    for guesses in tries:
        block = Block(guesses, device=model.device)
        logits = session.read(ids, block, rows=len(guesses) + 1).logits
    return logits.cpu()


def _row_with_companions(model: LanguageModel, prefix: list[int], *, offset: int) -> Tensor:
    """The row behind the prefix's last token, read together with guesses after it."""
    session = model.open(len(prefix) + _COMPANIONS)
    session.read(prefix[:-1], rows=1)
    guesses = Block(ids_for(model, _COMPANIONS, offset=offset), device=model.device)
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


def ids_for(model: LanguageModel, count: int, *, offset: int = 0) -> list[int]:
    """Some ids that the model can read, well spread."""
    rows = model.rows
    return [(17 + 31 * place + offset * 7) % rows for place in range(count)]
