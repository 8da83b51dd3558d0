"""Drafts of a model or a head: a guess a pass, each fed before the next is made.

Where nothing has to be known on the host between two guesses, the session is asked for all of them
at once first. What it makes are the same guesses; where it makes none, they are asked for in turn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor

from app.decoding.contracts import (
    Answer,
    Asking,
    Chain,
    Chained,
    Draft,
    Read,
    Request,
    Role,
    Unread,
    row_at,
)
from app.decoding.draft_stop import DraftStop
from app.decoding.proposers.guess_draws import GuessDraws
from app.decoding.sampling import Penalties, warp
from app.models.block import Block
from app.models.picking import ChainReading, Picking, Told
from app.models.session import MAX_CHUNK, Reading
from app.run.settings import Sampling


@dataclass(frozen=True, slots=True)
class Guess:
    """One guess, on the device."""

    token: Tensor
    """Its id in the target: []."""
    law: Tensor | None
    """[width], the law it was drawn from in the target's ids; None for the likeliest token."""
    peak: Tensor
    """The highest of the scores behind it, finite if they can be used: []."""


def catch_up(role: Role, text: Sequence[int], *, prompt: bool) -> Asking:
    """Reads what is longer than one chunk, so that a stop takes effect within one pass."""
    unread = yield Unread(role, text)
    assert isinstance(unread, int)
    start = len(text) - unread
    for upto in range(start + MAX_CHUNK, len(text), MAX_CHUNK):
        yield Read(role, text, upto, prompt=prompt)
    return Draft(Block())


class OneByOne(ABC):
    """Drafts with the session of one role; what it guesses stays on the device."""

    role: Role
    source: str
    reads_prompt = True
    """Whether its first pass is its own pass over the prompt."""

    def __init__(
        self,
        device: torch.device,
        end_ids: Collection[int],
        *,
        sampling: Sampling,
        prompt_length: int,
        width: int,
        stop: DraftStop | None = None,
        shared_noise: bool = False,
        chained: bool = False,
    ) -> None:
        """`width` is the target's. `chained`: the session may make whole chains of guesses by
        itself.
        """
        self._sampling = sampling
        self._stop = stop
        self._draws = GuessDraws(sampling.seed, shared_noise)
        self._penalties = Penalties(sampling, prompt_length)
        self._width = width
        self._chained = chained and not (stop or shared_noise)
        self._device = device
        self._end_ids = frozenset(end_ids)
        self._prompt_read = not self.reads_prompt
        self._own_ids: Tensor | None = None
        """The id that each of the target's has in the guesser's own vocabulary; None: the same."""
        self._fed = Block()
        """The guesses as the session is fed them."""

    @abstractmethod
    def limit(self, text: Sequence[int], limit: int) -> tuple[int, str]:
        """How many tokens may be guessed behind this text, and why it is fewer than `limit`."""

    @abstractmethod
    def scores(self, logits: Tensor, text: Sequence[int], block: Block) -> Tensor:
        """The penalised fp32 logits behind the text and the block, from a row of the session's."""

    @abstractmethod
    def guess(
        self,
        scores: Tensor,
        law: Callable[[], Tensor],
        text: Sequence[int],
        *,
        round_: int,
        slot: int,
    ) -> Guess:
        """The guess that is taken by these scores, or drawn from the law that they stand for."""

    @abstractmethod
    def picking(self) -> Picking:
        """How a session takes such guesses by itself."""

    @property
    def longest(self) -> int | None:
        """Most guesses of any draft; None where only the round says."""
        return None

    @property
    def chains(self) -> Chained | None:
        """What whole chains of guesses its session is asked for; None where it is asked for none:
        what ends drafts and shared noise need every guess before the next.
        """
        return Chained(self.role, self.picking(), self.longest) if self._chained else None

    def room(self, text: Sequence[int]) -> int | None:
        """How many tokens may be guessed before the draft's own context is full; None if that
        holds whatever the target's does.
        """
        return None

    def readable(self, text: Sequence[int]) -> Sequence[int]:
        """The text as the session can read it."""
        return text

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """Makes at most `limit` guesses, one pass each or all at once."""
        limit, stop, room = self.limits(text, limit)
        if limit <= 0:
            return Draft(Block(), stop=stop, room=room)
        known = self.readable(text)
        block = Block(device=self._device)
        self._fed = block if self._own_ids is None else Block(device=self._device)
        made: list[Guess] = []
        ended = ""
        yield from catch_up(self.role, known, prompt=not self._prompt_read)
        chain = yield from self._chain(text, known, limit=limit, round_=round_)
        if chain is not None:
            return self._drafted_at_once(chain, stop=stop, room=room)
        for slot in range(limit):
            reading = yield Read(
                self.role, known, len(known), self._fed, prompt=not self._prompt_read
            )
            assert isinstance(reading, Reading)
            self._prompt_read = True
            scores = self.scores(reading.logits[-1], text, block)
            law = cache(partial(self._belief, scores))
            if ended := self._stop.before(law) if self._stop else "":
                break
            made.append(self.guess(scores, law, text, round_=round_, slot=slot))
            block.append(made[-1].token)
            if self._own_ids is not None:
                self._fed.append(row_at(self._own_ids, made[-1].token))
            if ended := "end of text" if self._ended(block) else self._behind(made[-1], law):
                break
        return self.drafted(block, made, stop=ended or stop, room=room)

    def drafted(self, block: Block, made: Sequence[Guess], *, stop: str, room: int | None) -> Draft:
        """The draft of these guesses, whose ids are the block's."""
        if not made:
            return Draft(Block(), stop=stop, room=room)
        laws = [one.law for one in made if one.law is not None]
        peaks = torch.stack([one.peak for one in made])
        drawn_from = torch.stack(laws) if laws else None
        return Draft(block, drawn_from, self.source, stop, peaks=peaks, room=room)

    def _chain(
        self, text: Sequence[int], known: Sequence[int], *, limit: int, round_: int
    ) -> Generator[Request, Answer, ChainReading | None]:
        """All guesses behind the text at once, if the session, to which it is `known`, makes them;
        the prompt is read before any.
        """
        wanted = self.chains
        if wanted is None or not self._prompt_read:
            return None
        draws = self._draws.uniforms(limit, round_=round_) if wanted.how.draws else ()
        used = self._penalties.used(text, self._width, self._device)
        found = yield Chain(self.role, known, limit, wanted.how, Told(draws, used))
        return found if isinstance(found, ChainReading) else None

    def _drafted_at_once(self, reading: ChainReading, *, stop: str, room: int | None) -> Draft:
        """The draft of a chain, up to the end of the text where that is known at once."""
        found = reading.chain
        count = self._up_to_end(found.ids)
        laws = None if found.laws is None else found.laws[:count]
        whole = count == len(found.ids)
        self._fed = reading.block if whole else Block(device=self._device)
        block = reading.block
        if self._own_ids is not None or not whole:
            block = Block(device=self._device)
            block.extend(found.ids[:count])
        ended = "end of text" if self._ended(block) else stop
        return Draft(block, laws, self.source, ended, peaks=found.peaks[:count], room=room)

    def _up_to_end(self, ids: Tensor) -> int:
        """How many of these guesses there are up to the end of the text, if that can be told."""
        if self._device.type != "cpu":
            return len(ids)
        ends = (place for place, token in enumerate(ids.tolist(), 1) if token in self._end_ids)
        return next(ends, len(ids))

    def limits(self, text: Sequence[int], limit: int) -> tuple[int, str, int | None]:
        """How many tokens may be guessed, why it is fewer than `limit`, and the room that the
        draft's own context has, where that is the reason.
        """
        limit, stop = self.limit(text, limit)
        room = self.room(text)
        if room is None or room >= limit:
            return limit, stop, None
        return max(room, 0), stop, max(room, 0)

    def _belief(self, scores: Tensor) -> Tensor:
        """The law that scores stand for, also where the likeliest token is simply taken."""
        if self._sampling.greedy:
            return torch.softmax(scores, dim=-1)
        return warp(scores[None], self._sampling)[0]

    def _behind(self, made: Guess, law: Callable[[], Tensor]) -> str:
        """Why the draft ends behind this guess; empty to go on."""
        if self._stop is None:
            return ""
        sure = law().amax() if made.law is None else row_at(made.law, made.token)
        return self._stop.behind(sure)

    def _ended(self, block: Block) -> bool:
        """Whether the last guess ends the text; asked only where the answer costs no waiting."""
        return self._device.type == "cpu" and int(block.tensor(len(block) - 1)) in self._end_ids
