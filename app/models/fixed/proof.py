"""A proof at load: passes of fixed shape answer as eager ones do."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from app.models.block import Block
from app.models.exhausted import memory_guard
from app.models.fixed.passes import Passes
from app.models.fixed.reader import FixedReader
from app.models.fixed.recorder import NO_MEMORY
from app.models.language_model import LanguageModel
from app.models.machine import release_memory
from app.models.proofs import Proof, branch_rounding, ids_for, share_apart
from app.models.session import Session
from app.run.problems import Cancelled, DoesNotFit, Problem, release_frames

_TRIED = (1, 2, 5, 8, 9)
"""Rows of the passes that are compared; most have a width of their own, the last is padded."""
_LONG = 300
"""Tokens of a text that graphs are tried behind too: more than the fewest keys that are summed."""
_BRANCHES = (-1, -1, 0, 1, 2)
"""A tree that is compared too: what each of its guesses stands behind."""
_LONGEST_WINDOW = 1024
"""Sliding windows up to this many tokens are tried past their end; longer ones cost too much."""


def prove_passes(
    model: LanguageModel, passes: Passes, *, ask: Callable[[], None] = lambda: None
) -> Proof:
    """Reads the same text and guesses in fixed shapes and eagerly, and compares the logits; the
    guesses are taken back each time. Passes are recorded first, where they are replayed.

    Leaves `passes` eager, with the reason, where they are not to be used; for now, where memory
    does not suffice for them. Raises what `ask` does, which is asked before each recording, and
    Problem where it does not suffice for eager passes either.
    """
    try:
        with memory_guard(model.name):
            apart = _apart(model, passes, ask)
    except DoesNotFit as lack:
        release_frames(lack)
        return _left_eager(model, passes)
    except (Problem, Cancelled):
        raise
    except Exception as error:  # a model that takes no mask of ours may fail in any way
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return _refused(passes, f"the model cannot read in fixed shapes ({reason})")
    if passes.mode == "eager":
        return Proof(False, passes.reason)
    if not apart <= branch_rounding(model):  # not a number is no proof
        return _refused(passes, f"fixed shapes are read otherwise ({apart:.2g} of a row)")
    note = f"fixed shapes tried: same rows, but for rounding ({apart:.2g} of it at most)"
    return Proof(True, note)


def _refused(passes: Passes, note: str) -> Proof:
    passes.fall_back(note)
    return Proof(False, note)


def _left_eager(model: LanguageModel, passes: Passes) -> Proof:
    """Lets go of what the proof took, and reads without it. Raises Problem if that is no better."""
    reason = "no memory for fixed shapes" if passes.mode == "fixed" else NO_MEMORY
    passes.fall_back(reason, for_now=True)
    release_memory()
    text, rows = ids_for(model, 4), max(_TRIED)
    with memory_guard(model.name):
        guesses = Block(ids_for(model, rows - 1, offset=300), device=model.device)
        Session(model, len(text) + rows).read(text, guesses, rows=rows)
    return Proof(False, reason)


def _apart(model: LanguageModel, passes: Passes, ask: Callable[[], None]) -> float:
    """The most that a row read in a fixed shape is apart from the same row read eagerly, as a share
    of it.
    """
    window = model.sliding_window
    prefix = 4 if window is None or window > _LONGEST_WINDOW else window + 2
    text = ids_for(model, prefix + 2 * len(_TRIED) + 2)
    capacity = len(text) + max(_TRIED)
    fixed, eager = Session(FixedReader(model, passes), capacity), Session(model, capacity)
    for session in (fixed, eager):
        session.read(text[:prefix], rows=1)
    fixed.prepare(max(_TRIED), advance=lambda done, total: ask())
    found = []
    for place, rows in enumerate(_TRIED):
        read = text[: prefix + 2 * place + 1]
        guesses = ids_for(model, rows - 1, offset=300 + place)
        found.append(_rows_apart(model, fixed, eager, read, guesses))
    found.append(_trees_apart(model, fixed, eager, text))
    if passes.mode == "graphs":
        kept: list[tuple[int, ...] | None] = [None, (), (0, model.layers - 1)]
        found += [_apart_behind(model, passes, layers, ask) for layers in kept]
    return max(found)


def _apart_behind(
    model: LanguageModel,
    passes: Passes,
    layers: tuple[int, ...] | None,
    ask: Callable[[], None],
) -> float:
    """The same behind a longer text, past more keys than the first number of them, for logits and
    the features of these layers; 0 where the model has no such features or holds no such text.
    """
    window = model.sliding_window or 0
    prefix = max(_LONG, window + 2) if window <= _LONGEST_WINDOW else _LONG
    if model.context_length < prefix + 2:
        return 0.0
    text = ids_for(model, prefix)
    features = layers is not None
    eager = Session(model, prefix + 2, features=features, layers=layers or ())
    try:
        with memory_guard(model.name):
            eager.read(text, rows=1)
    except (Problem, Cancelled):
        raise
    except Exception:  # it is built otherwise: no method can ask it for these features
        return 0.0
    fixed = Session(
        FixedReader(model, passes, layers), prefix + 2, features=features, layers=layers or ()
    )
    fixed.read(text, rows=1)
    fixed.prepare(2, advance=lambda done, total: ask())
    apart = _rows_apart(model, fixed, eager, ids_for(model, prefix + 1), ids_for(model, 1))
    if not features:
        return apart
    mine, theirs = (one.features[prefix : one.held].cpu() for one in (fixed, eager))
    return max(apart, share_apart(mine, theirs))


def _rows_apart(
    model: LanguageModel, fixed: Session, eager: Session, text: list[int], guesses: list[int]
) -> float:
    rows = len(guesses) + 1
    mine, theirs = (
        session.read(text, Block(guesses, device=model.device), rows=rows).logits
        for session in (fixed, eager)
    )
    return share_apart(mine.cpu(), theirs.cpu())


def _trees_apart(model: LanguageModel, fixed: Session, eager: Session, text: list[int]) -> float:
    answers: list[Tensor] = []
    for session in (fixed, eager):
        block = Block(device=model.device)
        ids = torch.tensor(ids_for(model, len(_BRANCHES), offset=500), device=model.device)
        block.branch(ids, torch.tensor(_BRANCHES, device=model.device), levels=3)
        answers.append(session.read(text, block, rows=len(ids) + 1).logits.cpu())
    return share_apart(*answers)
