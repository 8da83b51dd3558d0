"""Attention of the rows of one sequence to its keys, and the turning of vectors by position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from app.models.tree import Tree

# cuDNN's attention, torch's first choice on an H100 and its kin, is planned anew for each shape: a
# text that grows would meet such a plan, up to half a second, in pass after pass.
torch.backends.cuda.enable_cudnn_sdp(False)

_FOLDED_ROWS = 32
"""Up to so many rows, queries that share a key are laid out as more rows of one head."""
_FOLDED_ROWS_OF_A_CARD = 64
"""The same on a card, which would copy keys for every head that shares them."""


class RowMasks(Protocol):
    """What the rows of a pass may see, by the window of a layer."""

    def of(self, window: int | None) -> Tensor | None:
        """The mask that is added to scores, [n, keys]; None where every row sees all."""
        ...


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows at positions of their own, and what each may see."""

    positions: Tensor
    """[n]."""
    end: int
    """All positions lie before it."""
    masks: RowMasks


class Masks:
    """What rows start..end may see, added to their scores: [n, end] by window, made when asked."""

    def __init__(
        self,
        start: int,
        end: int,
        like: Tensor,
        *,
        keys: int | None = None,
        tree: Tree | None = None,
    ) -> None:
        """Of the type and on the device of `like`; with `keys`, always made, and so many long. The
        last rows before `end` may be a tree.
        """
        self._start, self._end, self._like = start, end, like
        self._keys = keys
        self._tree = tree
        self._made: dict[int | None, Tensor | None] = {}

    def of(self, window: int | None) -> Tensor | None:
        """The mask of layers that see so many tokens; None where every row sees all."""
        if window not in self._made:
            self._made[window] = self._make(window)
        return self._made[window]

    def _make(self, window: int | None) -> Tensor | None:
        alone = self._end - self._start == 1
        free = self._keys is None and self._tree is None
        if free and alone and (window is None or window >= self._end):
            return None
        device = self._like.device
        asking = torch.arange(self._start, self._end, device=device)[:, None]
        asked = torch.arange(self._keys or self._end, device=device)[None]
        hidden = asked > asking
        if self._tree is not None:
            places = self._tree.places(0, self._end)
            asking = places[self._start :, None]
            asked = functional.pad(places, (0, asked.shape[1] - self._end))[None]
            self._hide_other_branches(hidden, self._tree)
        if window is not None:
            hidden |= asked <= asking - window
        return self._like.new_zeros(hidden.shape).masked_fill_(hidden, float("-inf"))

    def _hide_other_branches(self, hidden: Tensor, tree: Tree) -> None:
        """Of the tree's rows, of which the last may be asked for, each sees its own lineage."""
        rows = min(self._end - self._start, len(tree.parents))
        text = self._end - len(tree.parents)
        hidden[-rows:, text : self._end] = ~tree.lineage[-rows:]


class FoldedMasks:
    """The masks of one pass laid out for queries that are folded, each made once for all layers."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, torch.Size, int], tuple[Tensor, Tensor]] = {}

    def of(self, mask: Tensor, group: int) -> Tensor:
        """A mask [n, length] for `group` heads that share a key, [group x n, length]."""
        key = mask.data_ptr(), mask.shape, group
        if key not in self._made:  # the mask is kept beside it, so that no other takes its place
            self._made[key] = mask, mask.repeat(group, 1)
        return self._made[key][1]


def attend(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None,
    scale: float,
    layouts: FoldedMasks | None = None,
) -> Tensor:
    """What each row of query [n, heads, size] gathers, [n, heads x size].

    Keys and values are [1, shared heads, length, size], the mask is added to scores [n, length];
    `layouts` are the pass's.
    """
    if query.shape[0] <= (_FOLDED_ROWS if query.device.type == "cpu" else _FOLDED_ROWS_OF_A_CARD):
        return attend_folded(query, keys, values, mask, scale, layouts or FoldedMasks())
    return _attend_whole(query, keys, values, mask, scale)


def attend_folded(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    scale: float | None,
    layouts: FoldedMasks,
) -> Tensor:
    """Attention of query [n, heads, size] to keys [1, shared heads, length, size].

    The heads that share a key become rows of one head, so that no key is copied for them.
    """
    rows, heads, size = query.shape
    shared = keys.shape[1]
    group = heads // shared
    folded = (
        query.reshape(rows, shared, group, size).permute(1, 2, 0, 3).reshape(1, shared, -1, size)
    )
    if mask is not None and group > 1:
        mask = layouts.of(mask, group)
    answer = functional.scaled_dot_product_attention(
        folded, keys, values, attn_mask=mask, scale=scale
    )
    return answer.view(shared, group, rows, size).permute(2, 0, 1, 3).reshape(rows, heads * size)


def _attend_whole(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """The same for many rows, where a mask as large as the folded queries would be too large.

    On a card no kernel takes a mask and shared keys together (torch up to 2.13): it would compute
    all scores in fp32. There keys are copied for the heads that share them.
    """
    shares = query.shape[1] // keys.shape[1]
    if mask is not None and shares > 1 and query.device.type != "cpu":
        keys, values = (held.repeat_interleave(shares, dim=1) for held in (keys, values))
    answer = functional.scaled_dot_product_attention(
        query.transpose(0, 1)[None], keys, values, attn_mask=mask, scale=scale, enable_gqa=True
    )
    return answer[0].transpose(0, 1).reshape(len(query), -1)


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """x [n, heads, size] turned by its positions; the first half's sines are negated."""
    halves = x.reshape(*x.shape[:-1], 2, -1).flip(-2).view(x.shape)
    return torch.addcmul(x * cosines, halves, sines)
