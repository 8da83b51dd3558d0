"""The ways of decoding that a bench of random weights times: our loop, plain and with guesses of a
draft model of which some are kept by chance, and transformers' own `generate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import torch

from app.decoding.clock import clock_for
from app.models.exhausted import memory_guard
from app.models.pair import LoadedPair
from app.run.events import At, LaneName, LaneStarted, Progress
from app.run.metrics import counts, decode_seconds, phase_seconds, total_seconds
from app.run.problems import Cancelled
from app.run.random_bench import RandomBench, Timed
from app.run.record import Repetition
from app.run.settings import RunSettings, Sampling
from app.studies.lanes import LaneMaker
from app.studies.recording import record_lane

Report = Callable[[Progress], None]
Pause = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Written:
    """One text: what it took, and its ids."""

    timed: Timed
    ids: list[int]


def prompt_ids(rows: int, length: int) -> tuple[int, ...]:
    """A prompt of so many ids that a model with so many rows can read."""
    return tuple((17 + 31 * place) % rows for place in range(length))


def plain_lane(pair: LoadedPair, wanted: RandomBench) -> LaneMaker:
    """Our loop without guesses."""
    return _maker(pair, wanted, method="nothing")


def simulated_lane(pair: LoadedPair, wanted: RandomBench) -> LaneMaker:
    """Our loop with the draft's guesses, each kept with the wanted chance, whatever it is.

    Raises Problem for a pair that cannot speculate.
    """
    alpha, length = wanted.acceptance, wanted.draft_length
    rates = ", ".join(repr(alpha**kept) for kept in range(1, length + 1))
    return _maker(
        pair,
        wanted,
        method="draft-model",
        draft_length=length,
        rule="synthetic",
        rule_options={"rates": rates},
    )


def _maker(pair: LoadedPair, wanted: RandomBench, **way: Any) -> LaneMaker:
    settings = RunSettings(
        pair=pair.wanted.pair,
        prompt="",
        sampling=Sampling(seed=wanted.seed),
        max_new_tokens=wanted.tokens,
        ignore_end_of_text=True,
        precision=wanted.precision,
        device=wanted.device,
        passes=wanted.passes,
        **way,
    )
    model = pair.target.model
    prompt = prompt_ids(model.rows, wanted.prompt)
    maker = LaneMaker(pair, settings, prompt, model.context_length)
    maker.check()
    return maker


def record(maker: LaneMaker, lane: LaneName, *, report: Report, pause: Pause) -> None:
    """Records the passes of a lane before it is timed, where its models replay recordings.

    Raises Cancelled when `pause` does, and Problem if memory does not suffice.
    """
    with memory_guard("while passes were captured"):
        sessions = maker.open_sessions(At("random", lane))
        speculates = lane == "speculative"
        record_lane(maker, sessions, speculates=speculates, report=report, pause=pause)


def our_text(maker: LaneMaker, lane: LaneName, *, number: int, pause: Pause) -> Written:
    """A text of our loop, with draws of its own by its number. Raises Cancelled when `pause` does,
    and Problem.
    """
    sampling = maker.settings.sampling
    sampling = msgspec.structs.replace(sampling, seed=sampling.seed + number)
    settings = msgspec.structs.replace(maker.settings, sampling=sampling)
    kept: Repetition | None = None
    for event in replace(maker, settings=settings).open(At("random", lane, number), pause):
        if isinstance(event, LaneStarted):
            kept = Repetition(event.at)
        elif kept is not None:
            kept.apply(event)
    if kept is None or not kept.whole:
        raise Cancelled
    tally = counts(kept)
    timed = Timed(
        tokens=tally.committed,
        total=total_seconds(kept) or 0.0,
        decode=decode_seconds(kept),
        outside=phase_seconds(kept).outside_models,
        rounds=tally.rounds,
        accepted=tally.accepted,
        tested=tally.tested,
    )
    return Written(timed, kept.token_ids)


def generated(inner: Any, prompt: Sequence[int], tokens: int, *, pause: Pause) -> Written:
    """The same of transformers' `generate`, greedy. Raises Cancelled between two passes when
    `pause` does, and Problem if memory does not suffice.
    """
    device = inner.get_input_embeddings().weight.device
    clock, ids = clock_for(device), torch.tensor([list(prompt)], device=device)
    seen = torch.ones_like(ids)
    asked = inner.register_forward_pre_hook(lambda *given: pause())
    try:
        with memory_guard("in generate of transformers"), torch.inference_mode():
            clock.wait()
            start = clock.now()
            text = inner.generate(
                ids, attention_mask=seen, max_new_tokens=tokens, do_sample=False, pad_token_id=0
            )
            clock.wait()
            seconds = clock.now() - start
    finally:
        asked.remove()
    made: list[int] = text[0, len(prompt) :].tolist()
    return Written(Timed(len(made), seconds), made)
