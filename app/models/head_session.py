"""A draft head at work beside one session of its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from app.models.attention import Masks, attend, rotate
from app.models.block import Block
from app.models.cache import FixedLayer
from app.models.causal_model import Advance
from app.models.fixed.chain import ChainShape
from app.models.fixed.head_room import HeadRoom
from app.models.fixed.head_tree import HeadTreeShape
from app.models.fixed.room import RoomCache
from app.models.fixed.shapes import keys_between
from app.models.growing import Growing, TreeGuesses
from app.models.machine import on_device
from app.models.pairs_session import PairsSession
from app.models.picking import ChainReading, Picking, Told
from app.models.session import Reading, Session
from app.models.tree import Tree

if TYPE_CHECKING:
    from app.models.loaded_head import LoadedHead


class HeadSession(PairsSession):
    """Reads a text as pairs: the target's feature of a token, and the token behind it.

    Its cache keeps what came from the target's own features only. A block's guesses are fed with
    the head's features, and forgotten before the next round.
    """

    def __init__(self, head: LoadedHead, target: Session, capacity: int) -> None:
        super().__init__(target, capacity)
        self._head = head
        self._held = self._new_cache(capacity)
        self._cache: FixedLayer = (
            self._held.room.memory.layers[0] if self._held else FixedLayer(capacity)
        )
        self._feature = torch.empty(0)
        """What the head predicted last, [1, hidden]; of a tree what it predicted behind the text
        and each guess, [1 + fed, hidden].
        """

    @property
    def byte_count(self) -> int:
        """Bytes that the cache takes."""
        if not self._cache.is_initialized:
            return 0
        keys = self._cache.keys
        return 2 * keys.numel() * keys.element_size()

    @torch.inference_mode()
    def read(
        self, text: Sequence[int], block: Block | None = None, *, rows: int, upto: int | None = None
    ) -> Reading:
        """Reads the text (its first `upto` tokens) and the block behind it.

        Returns the logits [1, vocabulary] over the tokens that the head can guess, of what follows
        the last token, or each guess that a tree has grown by: [grown, vocabulary]; `rows` is not
        asked for. All that has been added to a tree stands behind what was read before. The
        target's session must have read all of the text but its last token. A text of one token has
        no pair, and may not be read.
        """
        self._begin(text, block, upto)
        if block is not None and block.tree is not None:
            return Reading(self._head.logits(self._feed_level(block, block.tree)))
        if block is not None:
            while self._block_fed < len(block):
                token = block.tensor(self._block_fed)[:1]
                self._feature = self._feed(token.to(self._head.device), self._feature)
                self._block_fed += 1
        return Reading(self._head.logits(self._feature))

    @torch.inference_mode()
    def chain(
        self, text: Sequence[int], count: int, *, how: Picking, told: Told
    ) -> ChainReading | None:
        """Guesses so many tokens behind the text in one go, as `ChainSession` has it; the text as
        `read` has it.
        """
        room, end = self._room, len(text) - 1 + count - 1
        if room is None or end > self._capacity:
            return None
        shape = ChainShape(count, room.keys(end), how)
        if not room.guesses.holds(shape):
            return None
        self._tell(room, text)
        found = room.guesses.behind(told, shape)
        block = Block(device=self._head.device)
        block.extend(found.fed)
        return ChainReading(block, found)

    @torch.inference_mode()
    def prepare_chain(
        self, counts: Sequence[int], how: Picking, *, behind: int, advance: Advance
    ) -> None:
        """Records chains of these lengths, as `ChainSession` has it, and how pairs of a text are
        fed before: up to one more than there were guesses.
        """
        room = self._prepared(max(counts, default=0), behind, advance)
        if room is None:
            return
        shapes = [
            ChainShape(count, keys, how)
            for count in counts
            for keys in self._keys(room, behind, count - 1)
        ]
        self._note("chains one by one", room.guesses.prepare(shapes, advance))

    @torch.inference_mode()
    def tree(
        self, text: Sequence[int], levels: int, *, how: Growing, told: Told
    ) -> TreeGuesses | None:
        """Grows a tree of so many levels behind the text in one go, as `TreeSession` has it; the
        text as `read` has it.
        """
        room, end = self._room, len(text) - 1 + how.read(levels)
        if room is None or end > self._capacity:
            return None
        shape = HeadTreeShape(levels, room.keys(end), how)
        if not room.trees.holds(shape):
            return None
        self._tell(room, text)
        return room.trees.behind(told, shape)

    @torch.inference_mode()
    def prepare_trees(
        self, levels: Sequence[int], how: Growing, *, behind: int, advance: Advance
    ) -> None:
        """Records trees of so many levels, as `TreeSession` has it, and how pairs of a text are fed
        before: up to one more than a tree has levels.
        """
        room = self._prepared(max(levels, default=0), behind, advance)
        if room is None:
            return
        shapes = [
            HeadTreeShape(one, keys, how)
            for one in levels
            for keys in self._keys(room, behind, how.read(one))
        ]
        self._note("trees level by level", room.trees.prepare(shapes, advance))

    def _tell(self, room: HeadRoom, text: Sequence[int]) -> None:
        """Reads the text, and tells the room where guesses go on."""
        self._begin(text, None, None)
        room.tell(self._cache.length, self._feature)

    def _prepared(self, most: int, behind: int, advance: Advance) -> HeadRoom | None:
        """The room where whole drafts are recorded, told where they are tried; None where none are.
        How the pairs of a text are fed is recorded already, up to one more than the most guesses
        that a round keeps.
        """
        room, start = self._room, min(behind, self._capacity)
        if room is None or room.recorder is None:
            return None
        failed = room.prepare_feeds(most + 1, max(start - 1, 0), self._capacity, advance)
        self._note("pairs eagerly", failed)
        room.tell(start, torch.zeros_like(room.feature))
        return room

    def _keys(self, room: HeadRoom, behind: int, read: int) -> tuple[int, ...]:
        """How many keys drafts sum over that feed so many guesses behind so many pairs or more."""
        start = min(behind, self._capacity) + read
        if start > self._capacity:
            return ()
        return keys_between(start, self._capacity, room.memory.room)

    def _note(self, how: str, failed: str) -> None:
        """Has it said what the head's own way is, if something could not be recorded."""
        if failed:
            self._head.target.passes.note(f"the head's {how}: {failed}")

    @property
    def _room(self) -> HeadRoom | None:
        """Where it makes whole chains and trees of guesses; None where it makes none."""
        eager = self._head.target.passes.mode == "eager"
        return None if self._held is None or eager else cast(HeadRoom, self._held.room)

    def _new_cache(self, capacity: int) -> RoomCache | None:
        """A room of its own, where the target's passes are of fixed shape."""
        head, passes = self._head, self._head.target.passes
        if passes.mode == "eager":
            head.rooms.clear()
            return None
        passes.beside(head.rooms)
        return head.rooms.cache(
            capacity, None, lambda: HeadRoom(head, capacity, passes.new_recorder())
        )

    def _feed_text(self, text: Sequence[int], upto: int) -> None:
        """Feeds the pairs that are not held yet; the last one again if all are."""
        start = min(self._settled, upto - 2)
        self._forget(start)
        ids = on_device(text[start + 1 : upto], torch.long, self._head.device)
        known = self.target.features[start : upto - 1]
        room = self._room
        if room is not None and room.feed(ids, known, start):
            self._feature = room.feature.clone()
        else:
            self._feature = self._feed(ids, self._head.module.first(known))[-1:]
        self._settled = upto - 1

    def _feed_level(self, block: Block, tree: Tree) -> Tensor:
        """Feeds what a tree has grown by, each guess with what was predicted before it; the next
        features.
        """
        ids = block.tensor(self._block_fed)
        features = self._feed(ids, self._feature[tree.parents[self._block_fed :] + 1], tree)
        self._feature = torch.cat([self._feature, features])
        self._block_fed = len(block)
        return features

    def _feed(self, ids: Tensor, features: Tensor, tree: Tree | None = None) -> Tensor:
        """Feeds pairs behind the cache, ids [n] and features [n, hidden]; the next features."""
        head = self._head.module
        start = self._cache.length
        end = start + len(ids)
        x = head.joined(self._head.embeddings(ids), features)
        query, key, value = head.vectors(x)
        if tree is None:
            rotation = self._head.rotary.between(start, end, x.dtype)
        else:
            rotation = self._head.rotary.at(tree.places(start, end), end, x.dtype)
        query, key = rotate(query, *rotation), rotate(key, *rotation)
        keys, values = self._cache.update(key.transpose(0, 1)[None], value.transpose(0, 1)[None])
        mask = Masks(start, end, x, tree=tree).of(None)
        return head.feature(x, attend(query, keys, values, mask=mask, scale=head.scale))

    def _crop(self, settled: int) -> None:
        if self._cache.length > settled:
            self._cache.crop(settled - self._cache.length)
