"""A pass whose every number is a tensor: its rows, their places, and what each of them may see.

Nothing of it is decided on the host but its shape, so that what a graphics card was given to do for
one such pass is what it has to do for every other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from app.models.attention import Placed
from app.models.fixed.memory import PlacedLayers
from app.models.fixed.shared_keys import shared_keys
from app.models.tree import Tree

if TYPE_CHECKING:
    from app.models.language_model import LanguageModel


class PassOutputs(NamedTuple):
    """What a pass yields: logits [w, width], and features [w, size] where they are asked for."""

    logits: Tensor
    features: Tensor | None


class PassRows:
    """What a pass of one width is told, in tensors that stay where they are."""

    def __init__(self, width: int, device: torch.device, dtype: torch.dtype) -> None:
        self.dtype = dtype
        """What the pass is computed in."""
        self.ids = torch.zeros(width, dtype=torch.long, device=device)
        """The tokens fed, [w]; padded rows hold any that can be read."""
        self.start = torch.zeros((), dtype=torch.long, device=device)
        """How many tokens are held before the pass, []."""
        self.count = torch.full((1,), width, device=device)
        """How many rows are no padding, [1]."""
        self.steps = torch.arange(width, device=device)
        """Each row's place behind the start, [w]."""
        self.offsets = self.steps.clone()
        """Each row's position behind the start, [w]; those of padded rows repeat the last one."""
        self.hidden = _chain(width, device)
        """Whether row i may not see row j, [w, w]."""
        self._form: Tree | int = width
        """What offsets and hidden rows say: a tree, or how many rows follow each other."""

    @property
    def width(self) -> int:
        """Its rows, padded ones included."""
        return len(self.ids)

    def load(self, ids: Tensor, start: int, tree: Tree | None = None) -> None:
        """Tells of a pass over ids [n] behind so many tokens, the last of which may be a tree."""
        rows = len(ids)
        self.ids[:rows].copy_(ids)
        self.start.fill_(start)
        if tree is not None:
            self._load_tree(tree, start, rows)
        elif self._form != rows:
            torch.clamp(self.steps, max=rows - 1, out=self.offsets)
            self.count.fill_(rows)
            if isinstance(self._form, Tree):
                self.hidden.copy_(_chain(self.width, self.ids.device))
            self._form = rows

    def _load_tree(self, tree: Tree, start: int, rows: int) -> None:
        """A padded row sees the text, and itself."""
        before = rows - len(tree.parents)
        self.offsets[:rows].copy_(tree.places(start, start + rows) - start)
        self.offsets[rows:] = 0
        self.count.fill_(rows)
        self.hidden.copy_(_chain(self.width, self.ids.device))
        self.hidden[rows:, :rows] = True
        self.hidden[before:rows, before:rows] = ~tree.lineage
        self._form = tree


def _chain(width: int, device: torch.device) -> Tensor:
    """What is hidden where each row sees itself and those before it, [w, w]."""
    return torch.ones((width, width), dtype=torch.bool, device=device).triu(1)


class FixedMasks:
    """What each row may see, added to its scores: [w, keys] by window."""

    def __init__(
        self,
        rows: PassRows,
        positions: Tensor,
        places: Tensor,
        *,
        keys: int,
        whole: bool,
    ) -> None:
        """Of rows at these positions, [w], that are written at these places, [w]; with `whole` the
        last row is written at the last of the keys.
        """
        self._keys = keys
        self._rows, self._positions, self._places = rows, positions, places
        self._sees_all = whole and rows.width == 1
        self._made: dict[int | None, Tensor | None] = {}

    def of(self, window: int | None) -> Tensor | None:
        """The mask of layers that see so many tokens, by the keys' own positions; None where every
        row sees all.
        """
        if window not in self._made:
            free = self._sees_all and (window is None or window >= self._keys)
            self._made[window] = None if free else self._make(window)
        return self._made[window]

    def _make(self, window: int | None) -> Tensor:
        every = torch.arange(self._keys, device=self._places.device)
        hidden = (every >= self._rows.start).repeat(self._rows.width, 1)
        hidden.index_copy_(1, self._places, self._rows.hidden)
        if window is not None:
            asked = every.index_copy(0, self._places, self._positions)
            hidden |= asked <= self._positions[:, None] - window
        mask = torch.zeros(hidden.shape, dtype=self._rows.dtype, device=hidden.device)
        return mask.masked_fill_(hidden, float("-inf"))


def fixed_pass(
    model: LanguageModel,
    memory: PlacedLayers,
    rows: PassRows,
    *,
    keys: int,
    layers: tuple[int, ...] | None,
    depth: int | None = None,
    whole: bool = False,
) -> PassOutputs:
    """Computes a pass over the rows, summing over the first `keys` places of the memory; through
    the model's first `depth` layers only, if that is given. `whole` says that the last row is
    written at the last of the keys.

    Writes its keys and values at start, start + 1, ...; notes no length. With `layers` it yields
    features, as `LanguageModel.forward_with_features` tells of them. Uses only the tensors of
    `rows`, never a number of the host's: it may be recorded and replayed.
    """
    positions = rows.start + rows.offsets
    places = rows.start + rows.steps
    masks = FixedMasks(rows, positions, places, keys=keys, whole=whole)
    placed = Placed(positions, memory.room, masks)
    with memory.aimed(places, keys, depth=depth) as cache, shared_keys():
        if layers is None:
            return PassOutputs(model.answer(rows.ids, cache, rows.width, placed), None)
        return PassOutputs(*model.answer_with_features(rows.ids, cache, rows.width, layers, placed))
