"""Speculative decoding: propose, read, verify, commit, until the text ends.

The loop does no input or output. It is a generator that yields requests for forward passes and is
sent their answers, and that yields events about the text. Drivers decide who runs the passes, and
when (`drivers.py`). The baseline is this same loop with the proposer that proposes nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from app.decoding.clock import Clock
from app.decoding.commit import Text
from app.decoding.contracts import (
    Answer,
    Draft,
    Draws,
    Proposer,
    Read,
    Request,
    TargetRows,
    Verifier,
)
from app.decoding.decision import Decision, bring_home, committed_tokens, thrown_tokens
from app.decoding.draft_length import DraftLength
from app.decoding.randomness import Stream, draw
from app.decoding.round_watch import RoundWatch
from app.decoding.sampling import Penalties
from app.decoding.shared_noise import NO_SEED, SharedNoise
from app.models.block import Block
from app.models.exhausted import is_out_of_memory
from app.models.machine import on_device, out_of_memory
from app.models.session import MAX_CHUNK, Reading
from app.run.events import (
    Abandoned,
    At,
    DraftLimit,
    Finish,
    FirstToken,
    LaneEnded,
    LaneStarted,
    PromptRead,
    Round,
    RoundCommitted,
    Token,
)
from app.run.problems import Cancelled, Problem
from app.run.settings import Detail, Sampling

LaneEvent = LaneStarted | PromptRead | FirstToken | RoundCommitted | Abandoned | LaneEnded
Step = Request | LaneEvent
Steps = Generator[Step, Any, None]
Asked = Generator[Request, Answer, Any]


@dataclass(frozen=True, slots=True)
class LaneSetup:
    """Everything that one lane needs; `text` is the only part that changes while it runs."""

    at: At
    text: Text
    proposer: Proposer
    verifier: Verifier
    draft_length: DraftLength
    sampling: Sampling
    clock: Clock
    device: torch.device
    """The target's: where every draft is decided on."""
    context: int
    """Most tokens that prompt and text may be together."""
    detail: Detail = "light"
    reused: int = 0
    """Tokens at the start of the prompt that the target's session holds already."""
    draft_clock: Clock | None = None
    """The clock of the draft model's device; None for that of the target's."""
    first_draw: int = 0
    """Draws count rounds from here: a text that is continued must not use a draw twice."""


def decode(lane: LaneSetup) -> Steps:
    """Writes a text token by token, and tells how.

    Raises Problem, after closing its events, if the model's numbers cannot be used.
    """
    loop = _Loop(lane)
    yield LaneStarted(lane.at, lane.reused)
    try:
        finish = yield from loop.run()
    except Cancelled:
        finish = "cancelled"
    except Exception as failure:
        if not (isinstance(failure, Problem) or is_out_of_memory(failure)):
            raise
        yield from loop.abandoned()
        yield loop.ended("failed")
        if isinstance(failure, Problem):
            raise
        raise out_of_memory("while a loop was decided") from None
    yield from loop.abandoned()
    yield loop.ended(finish)


class _Loop:
    """The loop's state: the text, and how far the present round has come."""

    def __init__(self, lane: LaneSetup) -> None:
        self._lane = lane
        prompt_length = len(lane.text.ids)
        self._penalties = Penalties(lane.sampling, prompt_length)
        self._dropped = 0
        self._watch: RoundWatch | None = None

    def run(self) -> Generator[Step, Any, Finish]:
        """The prompt pass, then rounds until something ends the text."""
        lane = self._lane
        if lane.text.remaining <= 0:
            return "length"
        finish = yield from self._read_prompt()
        round_ = 0
        while finish is None:
            if len(lane.text.ids) >= lane.context:
                return "context"
            finish = yield from self._round(round_)
            round_ += 1
        return finish

    def abandoned(self) -> Generator[LaneEvent, Any, None]:
        """Tells of the round that was under way, if it had come to anything."""
        if self._watch is not None and self._watch.passes:
            seconds = self._lane.clock.now() - self._watch.start
            yield Abandoned(self._lane.at, self._watch.drafted, seconds)

    def ended(self, finish: Finish) -> LaneEnded:
        """The lane's last event."""
        tail = "" if self._dropped else self._lane.text.detokenizer.flush()
        return LaneEnded(self._lane.at, finish, dropped=self._dropped, tail=tail)

    def _read_prompt(self) -> Generator[Step, Any, Finish | None]:
        """Reads what is new of the prompt in chunks; the last one yields the first token."""
        lane = self._lane
        total = len(lane.text.ids)
        seconds = 0.0
        for done in [*range(lane.reused + MAX_CHUNK, total, MAX_CHUNK), total]:
            start = lane.clock.now()
            reading = yield Read("target", lane.text.ids, upto=done)
            if done == total:
                break
            lane.clock.wait()  # or the card would read on while the clock stands still
            seconds += lane.clock.now() - start
            yield PromptRead(lane.at, done, total)
        nothing = Draft(Block(device=lane.device))
        decision = self._decide(nothing, reading, "first", 0)
        committed = lane.text.commit([decision.next])
        self._dropped = committed.dropped
        preview = lane.text.detokenizer.preview
        token = committed_tokens(decision, nothing, committed, preview=preview)[0]
        seconds += lane.clock.now() - start
        yield FirstToken(lane.at, _as_first(token), seconds, committed.held_back)
        return committed.finish

    def _round(self, round_: int) -> Generator[Step, Any, Finish | None]:
        """One draft-verify-commit loop."""
        lane = self._lane
        self._watch = watch = RoundWatch(lane.clock, lane.device, lane.draft_clock or lane.clock)
        limit, limited_by = self._limit(round_)
        asking = lane.proposer.propose(lane.text.ids, limit=limit, round_=lane.first_draw + round_)
        draft: Draft = yield from watch.propose(asking)
        if draft.room is not None:
            limit, limited_by = draft.room, "draft's context"
        reading = yield from watch.verify(
            Read("target", lane.text.ids, len(lane.text.ids), draft.block, rows=len(draft) + 1)
        )
        decision = self._decide(draft, reading, "next", round_)
        watch.decided()
        lane.draft_length.learn(len(decision.guesses), decision.accepted)
        committed = lane.text.commit(decision.block)
        preview = lane.text.detokenizer.preview
        tokens = committed_tokens(decision, draft, committed, preview=preview)
        thrown = thrown_tokens(decision, draft, committed, preview=preview)
        self._dropped = committed.dropped
        self._watch = None
        yield RoundCommitted(
            lane.at,
            Round(
                index=round_,
                limit=limit,
                limited_by=limited_by,
                committed=tokens,
                thrown=thrown,
                phases=watch.phases(),
                draft_stop=draft.stop,
                held_back=committed.held_back,
                nodes=decision.nodes,
            ),
        )
        return committed.finish

    def _limit(self, round_: int) -> tuple[int, DraftLimit]:
        """How much this round may guess: one place is always left for the target's own token."""
        chosen, reason = self._lane.draft_length.choose(round_)
        limits: list[tuple[int, DraftLimit]] = [
            (chosen, reason),
            (self._lane.text.remaining - 1, "tokens left"),
            (self._lane.context - len(self._lane.text.ids) - 1, "context"),
        ]
        return min(limits, key=lambda limit: limit[0])

    def _decide(self, draft: Draft, reading: Reading, stream: Stream, round_: int) -> Decision:
        """The rule's verdict, on the host."""
        lane = self._lane
        logits = self._penalties.apply(reading.logits.float(), lane.text.ids, draft.block)
        rows = TargetRows(logits, lane.sampling)
        verdict = lane.verifier.verify(draft, rows, self._draws(len(draft), stream, round_, logits))
        decision = bring_home(draft, rows, verdict, detail=lane.detail)
        if not (decision.finite and decision.draft_finite):
            model = "draft model" if decision.finite else "target"
            raise Problem(
                f"The {model} gave numbers that cannot be used (NaN or infinity) at token "
                f"{lane.text.written + 1}.",
                "Try another precision (fp32 or bf16 instead of fp16), or check the model's files.",
            )
        return decision

    def _draws(self, drafted: int, stream: Stream, round_: int, logits: torch.Tensor) -> Draws:
        """The round's draws, on the device of the logits."""
        seed = self._lane.sampling.seed
        round_ += self._lane.first_draw
        values = [draw(seed, "accept", round_, slot) for slot in range(drafted)]
        values.append(draw(seed, stream, round_, 0))
        return draws_on(values, logits.device, SharedNoise(seed, len(self._lane.text.ids)))


def draws_on(values: list[float], device: torch.device, shared: SharedNoise = NO_SEED) -> Draws:
    """Draws as tensors on a device: the last value is for the next token."""
    if device.type == "mps":
        # No fp64 there; in fp32 the largest draws would round up to 1.
        values = [min(value, 1.0 - 2.0**-24) for value in values]
        tensor = on_device(values, torch.float32, device)
    else:
        tensor = on_device(values, torch.float64, device)
    return Draws(accept=tensor[:-1], next=tensor[-1:], shared=shared)


def _as_first(token: Token) -> Token:
    """The token of the prompt pass, which no round has made."""
    return msgspec.structs.replace(token, status="first")
