"""A draft head guesses a tree: at each place the tokens it finds likeliest, and what may follow.

Source: EAGLE-2, Li et al. 2024 (arXiv 2406.16858), section 4; how the tree grows is `GrownTree`'s.
The tree is made of the head's own softmax, whatever the temperature, as EAGLE makes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from app.decoding.contracts import Asking, Draft, Read
from app.decoding.proposers.draft_head import NO_FEATURE, HeadSetup
from app.decoding.proposers.grown_tree import GrownTree
from app.decoding.proposers.one_by_one import catch_up
from app.decoding.sampling import Penalties
from app.models.block import Block
from app.models.session import Reading


class HeadTree:
    """Drafts with the session of the role `head`, a pass a level."""

    def __init__(self, setup: HeadSetup, *, nodes: int, breadth: int) -> None:
        """A tree has at most so many `nodes`, and as many levels as a round may guess tokens."""
        ids = setup.ids
        self._setup = setup
        self._penalties = Penalties(setup.sampling, setup.prompt_length)
        self._end_ids = torch.tensor(sorted(setup.end_ids), dtype=torch.long, device=ids.device)
        self._nodes = nodes
        self._breadth = breadth
        self._prompt_read = False

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """A tree of at most `limit` levels."""
        if len(text) < 2:
            return Draft(Block(), stop=NO_FEATURE)
        if limit <= 0:
            return Draft(Block())
        yield from catch_up("head", text, prompt=not self._prompt_read)
        tree = GrownTree(self._setup.ids.device, breadth=self._breadth, end_ids=self._end_ids)
        peaks = []
        for level in range(limit):
            if level:
                tree.extend_beam()
            reading = yield Read(
                "head",
                text,
                len(text),
                tree.beam,
                rows=tree.width,
                prompt=not self._prompt_read,
            )
            assert isinstance(reading, Reading)
            self._prompt_read = True
            scores = self._setup.scores(reading.logits, text, tree.beam, penalties=self._penalties)
            peaks.append(scores.amax(dim=-1))
            tree.grow(torch.log_softmax(scores, dim=-1), self._setup.ids)
        block = tree.best(self._nodes)
        return Draft(block, source="head-tree", peaks=torch.cat(peaks))
