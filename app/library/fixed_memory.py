"""What passes of fixed shape hold: their rooms, and on a card the graphs that are captured of them.

Nothing of it has been measured on a card yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.library.model_size import ModelSize
from app.library.precision_bytes import FOUR_BIT, number_bytes
from app.run.settings import Precision
from app.run.tree_shape import TreeShape

if TYPE_CHECKING:
    from app.library.memory import Plan

PLACED_STEP = 64
"""A cache that passes of fixed shape write to has room for a multiple of so many tokens."""
PLACED_SLACK = 32
"""Tokens of room behind those of the text there, for rows that passes are padded by."""
PASS_WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64)
"""Rows that a pass of fixed shape may have; those in between are padded to the next."""
_DRAFT_ROWS = 2
"""Rows of a draft model's passes in a round, at most."""
_GRAPHS = 64 << 20
"""What a session's captured graphs take, and the numbers between their steps; chains of first
layers as much again. Not measured yet."""
_WORKSPACE = 32 << 20
"""What cuBLAS takes for itself on the stream of a session's graphs: so much from compute capability
9.0 on, and 8.5 MiB before, as torch's `getChosenWorkspaceSize` has it."""
LONGEST_CHAIN = 16
"""Guesses of a chain that is captured as a whole, at most: each takes time and memory to record."""
_LAWS_OF_A_GUESS = 4
"""Copies of a guess's law in fp32, where chains of guesses are captured: as it is made, among the
others, where they are left, and as they are handed on."""
_SCORES_OF_A_LEVEL = 4
"""Copies in fp32 of the scores behind a level of a tree, where trees are captured: as they come, in
fp32, and as log-probabilities before and behind their clamp. A guess, as no card was measured."""


def placed_room(tokens: int) -> int:
    """The tokens that memory for passes of fixed shape has room for, padded rows included."""
    return -(-(tokens + PLACED_SLACK) // PLACED_STEP) * PLACED_STEP


def captured(plan: Plan) -> tuple[int, int]:
    """What graphs of the target and of what guesses take: those of every session that is open at
    once, with the logits that each width leaves behind, and the laws of chains or scores of trees.
    """
    lanes = 2 if plan.baseline and plan.at_once else 1
    mine, ahead = 0, 0
    if plan.captures(plan.device):
        mine = lanes * _graphs(plan.target, plan.precision, plan.rows)
    if plan.drafter == "model" and plan.draft is not None and plan.captures(plan.drafts_on):
        ahead = _graphs(plan.draft, plan.draft_precision, _DRAFT_ROWS) + _chained(plan)
    if plan.drafter == "head" and plan.head is not None and plan.captures(plan.device):
        mine += _GRAPHS + _WORKSPACE + (_grown(plan.tree, plan) if plan.tree else _chained(plan))
    if plan.drafter == "early-exit" and plan.captures(plan.device):
        mine += _GRAPHS + _chained(plan)  # on the stream of the target's own graphs
    return mine, ahead


def _graphs(size: ModelSize, precision: Precision, rows: int) -> int:
    """What the graphs of one session of a model take, which have a pool and a stream of their own,
    with the logits that each width leaves behind.
    """
    shape = size.shape
    widest = shape.hidden * max(shape.intermediate, shape.heads * shape.head_size)
    unpacked = 2 * widest if (size.held or precision) in FOUR_BIT else 0
    return _GRAPHS + _WORKSPACE + unpacked + _left_behind(size, precision, rows)


def _chained(plan: Plan) -> int:
    """The laws of a chain of guesses, over the target's ids. Which tokens a text has used, under
    penalties, is two bytes a token beside them: not counted.
    """
    guesses = min(plan.draft_length, LONGEST_CHAIN)
    return guesses * _LAWS_OF_A_GUESS * plan.target.shape.vocabulary * 4


def _grown(tree: TreeShape, plan: Plan) -> int:
    """The scores behind one level of a tree, over the target's ids: the levels after it take the
    same memory. What is used before each guess, under penalties, is two bytes a token beside them:
    not counted.
    """
    return tree.breadth * _SCORES_OF_A_LEVEL * plan.target.shape.vocabulary * 4


def _left_behind(size: ModelSize, precision: Precision, rows: int) -> int:
    """The logits of a pass of each width that up to so many rows are padded to."""
    below = sum(width for width in PASS_WIDTHS if width < rows)
    widest = next((width for width in PASS_WIDTHS if width >= rows), 0)
    return (below + widest) * size.shape.vocabulary * number_bytes(precision)
