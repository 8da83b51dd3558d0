"""A draft head guesses a tree: at each place the tokens it finds likeliest, and what may follow.

Source: EAGLE-2, Li et al. 2024 (arXiv 2406.16858), section 4; how the tree grows is `GrownTree`'s.
The tree is made of the head's own softmax, whatever the temperature, as EAGLE makes it. The session
is asked for the whole of it first; where it makes none, for a level after the other.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from app.decoding.contracts import Answer, Asking, Branched, Draft, Read, Request, WholeTree
from app.decoding.proposers.draft_head import NO_FEATURE, HeadSetup
from app.decoding.proposers.grown_tree import TreeGrowing
from app.decoding.proposers.one_by_one import catch_up
from app.decoding.sampling import Penalties
from app.models.block import Block
from app.models.growing import TreeGuesses
from app.models.picking import Told
from app.models.session import Reading


class HeadTree:
    """Drafts with the session of the role `head`."""

    def __init__(
        self, setup: HeadSetup, *, nodes: int, breadth: int, at_once: bool = False
    ) -> None:
        """A tree has at most so many `nodes`, and as many levels as a round may guess tokens.
        `at_once`: the session may make whole trees by itself.
        """
        self._setup = setup
        self._penalties = Penalties(setup.sampling, setup.prompt_length)
        self._how = TreeGrowing.of(
            setup.ids,
            nodes=nodes,
            breadth=breadth,
            end_ids=setup.end_ids,
            sampling=setup.sampling,
            width=setup.width,
        )
        self._at_once = at_once
        self._prompt_read = False

    @property
    def trees(self) -> Branched | None:
        """What whole trees its session is asked for; None where it is asked for none."""
        return Branched("head", self._how) if self._at_once else None

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """A tree of at most `limit` levels."""
        if len(text) < 2:
            return Draft(Block(), stop=NO_FEATURE)
        if limit <= 0:
            return Draft(Block())
        yield from catch_up("head", text, prompt=not self._prompt_read)
        device = self._setup.ids.device
        told = Told(used=self._penalties.used(text, self._setup.width, device))
        found = yield from self._whole(text, limit, told)
        if found is None:
            found = yield from self._level_by_level(text, limit, told)
        block = Block(device=device)
        block.branch(found.ids, found.parents, levels=limit)
        return Draft(block, source="head-tree", peaks=found.peaks)

    def _whole(
        self, text: Sequence[int], levels: int, told: Told
    ) -> Generator[Request, Answer, TreeGuesses | None]:
        """The whole tree at once, if the session makes it; the prompt is read before any."""
        if self.trees is None or not self._prompt_read:
            return None
        found = yield WholeTree("head", text, levels, self._how, told)
        return found if isinstance(found, TreeGuesses) else None

    def _level_by_level(
        self, text: Sequence[int], levels: int, told: Told
    ) -> Generator[Request, Answer, TreeGuesses]:
        """The same tree, a pass a level."""
        tree = self._how.begin(told.used)
        for level in range(levels):
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
            tree.grow(reading.logits)
        return tree.best()
