"""The lessons of a head, one after the other: judged now and then, kept so that they can go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from app.models.draft_head import DraftHead
from app.run.events import Progress
from app.run.problems import Cancelled
from app.run.teaching import CurvePoint
from app.training.batches import Batch, epoch
from app.training.checkpoint import Checkpoint, Standing, unusable, write_checkpoint
from app.training.judging import acceptance, kept_guesses
from app.training.learner import PEAK, Learner
from app.training.lesson import Teacher, weighted
from app.training.schedule import FALL, Span, learning_rate
from app.training.texts import TextFolder

BATCH_TOKENS = 512
"""Tokens of a lesson, padding included."""
_JUDGEMENTS = 24
"""How often a head is judged, in lessons that are long enough."""
_APART = 30.0
"""Least seconds from one judgement to the next."""
_KEPT_EVERY = 60.0
"""Seconds from one checkpoint to the next."""
_PATIENCE = 6
"""So many judgements without a better one, and the learning rate begins to fall."""

Report = Callable[[Progress], None]
Pause = Callable[[], None]
Point = Callable[[CurvePoint], None]


@dataclass(frozen=True, slots=True)
class Material:
    """What lessons are made of."""

    teacher: Teacher
    texts: TextFolder
    held_out: Sequence[Batch]
    """What the head is judged by."""
    seed: int


class Course:
    """Lessons under way."""

    def __init__(self, material: Material, head: DraftHead, file: Path, span: Span) -> None:
        """`head` is as it was begun; `file` is where the checkpoint is written."""
        self._material = material
        self._learner = Learner(head, material.teacher.dtype)
        self._file = file
        self._span = span
        self._best: dict[str, Tensor] = {}
        self._losses: list[Tensor] = []
        self._since = 0.0
        self.standing = Standing(fall=1.0 - FALL)

    def restore(self, kept: Checkpoint) -> None:
        """Goes on from a checkpoint. Raises Problem if it is not of such a head."""
        try:
            self._learner.restore(kept.tensors)
            self._with(kept.best)  # they have to be whole
        except (KeyError, RuntimeError) as error:
            raise unusable(self._file, str(error).splitlines()[0]) from None
        self._best = dict(kept.best)
        self.standing = kept.standing

    @property
    def vocabulary(self) -> Tensor:
        """The ids that the head can guess, ascending: [size], int32."""
        return self._material.teacher.vocabulary.to(torch.int32)

    @property
    def best(self) -> CurvePoint:
        """The judgement that was the best so far."""
        return self.standing.curve[self.standing.best]

    @property
    def head(self) -> DraftHead:
        """The head with the best weights so far, or those that it began with."""
        return self._with(self._best or self._learner.averaged.state_dict())

    def _with(self, weights: Mapping[str, Tensor]) -> DraftHead:
        """A head with these weights, for use. Raises RuntimeError if they are not whole."""
        head = DraftHead(self._learner.head.shape).to(self._material.teacher.device)
        head.load_state_dict(weights)
        return head.eval().requires_grad_(False)

    @property
    def share(self) -> float:
        """The part of the lessons that is over."""
        return self._span.share(self._seconds, self.standing.step)

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return bool(self.standing.curve) and self.share >= self.standing.end

    def run(self, *, report: Report, point: Point, pause: Pause) -> None:
        """Learns until the span or the patience is at its end; `point` is told each judgement.

        Raises Cancelled when `pause` does, and what was learned is kept; whatever else ends it,
        that of the last whole minute is. Deterministic on a CPU if the span is in steps.
        """
        self._since = time.monotonic()
        kept = time.monotonic()
        try:
            if not self.standing.curve:
                self._judge(point)
            for batch in self._lessons():
                pause()
                report(self._progress())
                self._learn(batch)
                if self._due:
                    self._judge(point)
                if self.over:
                    break
                if time.monotonic() - kept >= _KEPT_EVERY:
                    kept = time.monotonic()
                    self._keep()
            if len(self.standing.curve) < 2 or self._losses:
                self._judge(point)
        except Cancelled:
            self._keep()
            raise
        self._keep()

    def _lessons(self) -> Iterator[Batch]:
        """Batches without end, from where the checkpoint stands; new texts join at each epoch."""
        standing, material = self.standing, self._material
        while not self.over:
            shards = material.texts.shards
            if standing.lesson:
                shards = shards[: standing.shards]
            standing.shards = len(shards)
            seed = f"{material.seed}, {standing.epoch}"
            lessons = epoch(
                material.texts, shards, seed=seed, tokens=BATCH_TOKENS, skip=standing.lesson
            )
            yield from lessons
            standing.epoch += 1
            standing.lesson = 0

    def _learn(self, batch: Batch) -> None:
        standing = self.standing
        losses = self._material.teacher.losses(
            self._learner.working, batch.to(self._material.teacher.device)
        )
        rate = learning_rate(
            PEAK, step=standing.step, share=self.share, fall=standing.fall, end=standing.end
        )
        self._learner.step(weighted(losses), rate=rate, number=standing.step)
        self._losses.append(losses.detach())
        standing.step += 1
        standing.lesson += 1
        standing.tokens += batch.tokens

    @property
    def _due(self) -> bool:
        judgements: float = _JUDGEMENTS
        if self._span.seconds:
            judgements = min(judgements, max(self._span.seconds / _APART, 1.0))
        return self.share * judgements >= len(self.standing.curve)

    def _judge(self, point: Point) -> None:
        standing, material = self.standing, self._material
        judged = deepcopy(self._learner.averaged).to(material.teacher.dtype)
        shares = acceptance(material.teacher, judged, material.held_out)
        loss = torch.stack(self._losses).mean(dim=0).tolist() if self._losses else ()
        self._losses = []
        found = CurvePoint(
            tokens=standing.tokens,
            seconds=self._seconds,
            acceptance=shares,
            kept=kept_guesses(shares),
            loss=tuple(loss),
        )
        standing.curve.append(found)
        if len(standing.curve) == 1 or found.kept > self.best.kept:
            standing.best = len(standing.curve) - 1
            self._best = {
                name: one.detach().clone()
                for name, one in self._learner.averaged.state_dict().items()
            }
        waited = len(standing.curve) - 1 - standing.best
        if waited >= _PATIENCE and self.share < standing.fall:
            standing.fall, standing.end = self.share, min(1.0, self.share * (1 + FALL))
        self._keep()
        point(found)

    @property
    def _seconds(self) -> float:
        """Seconds of lessons, those before a checkpoint included."""
        since = time.monotonic() - self._since if self._since else 0.0
        return self.standing.seconds + since

    def _keep(self) -> None:
        self.standing.seconds, self._since = self._seconds, time.monotonic()
        write_checkpoint(
            self._file,
            Checkpoint(self.standing, self.vocabulary, self._learner.tensors(), self._best),
        )

    def _progress(self) -> Progress:
        if not self._span.seconds:
            return Progress("teaching", self.standing.tokens, None, "tokens")
        whole = self._span.seconds * self.standing.end
        seconds = min(self._seconds, whole)
        return Progress(f"teaching, {(whole - seconds) / 60:.0f} min left", seconds, whole, "s")
