"""A training from beginning to end: the target writes, the head learns, the best one is saved."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.library.head_folder import MadeFor
from app.library.training_folder import HEAD, Identity, prompts_mark
from app.models.draft_head import DraftHead, shape_for
from app.models.head_file import save_head
from app.models.machine import environment
from app.run.events import Progress
from app.run.problems import Problem
from app.run.teaching import CurvePoint, Taught
from app.training.batches import Batch, batch_of, side_by_side
from app.training.beginning import begin_head
from app.training.card import Facts, in_a_sentence, write_card
from app.training.checkpoint import read_checkpoint
from app.training.claim import Claim
from app.training.course import BATCH_TOKENS, Course, Material
from app.training.gathering import Budget, Corpus, Source
from app.training.lesson import Teacher
from app.training.prompts import KINDS
from app.training.room import bytes_for_texts, require_memory
from app.training.schedule import Span
from app.training.vocabulary import DraftVocabulary, choose_vocabulary

Report = Callable[[Progress], None]
Point = Callable[[CurvePoint], None]
Pause = Callable[[], None]

_NOTED_EVERY = 5.0
"""Seconds of writing that a kill may leave uncounted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything."""

    writing_seconds: float
    span: Span
    """Of the lessons."""
    draft_vocabulary: int
    disk_gib: float
    licence: str = ""
    """The target's, as far as it is known."""
    most_tokens: int = 1 << 62
    """Tokens at which the writing ends, whatever the time."""


class Training:
    """A training in a folder of its own: what it has done is found there by the next time."""

    def __init__(self, source: Source, made_for: MadeFor, plan: Plan, folder: Path) -> None:
        """Raises Problem for a target or a folder that won't do, or too little memory or disk."""
        inner = source.model.inner
        vocabulary = min(plan.draft_vocabulary, source.model.width)
        shape = shape_for(inner, vocabulary)
        require_memory(shape, source.model.device)
        self._source = source
        self._made_for = made_for
        self._plan = plan
        self._folder = folder
        self._shape = shape
        self._claim = Claim(folder, _identity(source, made_for, vocabulary))
        self._corpus = Corpus(folder)
        self._written = 0
        held = self._corpus.learned.byte_count
        self._bytes = bytes_for_texts(folder, plan.disk_gib, held)

    @property
    def head_folder(self) -> Path:
        """Where the head is saved."""
        return self._folder / HEAD

    def run(self, *, report: Report, point: Point, pause: Pause) -> Taught:
        """Writes and teaches for as long as planned, or as is left of it.

        `point` is told each judgement, first those of earlier times. Raises Problem for what a
        person can mend, Cancelled when `pause` does; the next time goes on from there.
        """
        self._write(report, pause)
        pause()
        report(Progress("preparing the lessons"))
        course = self._course()
        self._written = self._corpus.learned.written

        def judged(found: CurvePoint) -> None:
            if course.best is found:
                self._save(course)
            point(found)

        for earlier in tuple(course.standing.curve):
            point(earlier)
        if not course.over:
            course.run(report=report, point=judged, pause=pause)
        self._save(course)
        return self._taught(course)

    def _write(self, report: Report, pause: Pause) -> None:
        """Lets the target write for as long as is left."""
        before, start = self._claim.writing_seconds, time.monotonic()
        noted = start

        def reported(progress: Progress) -> None:
            nonlocal noted
            if time.monotonic() - noted >= _NOTED_EVERY:
                noted = time.monotonic()
                self._claim.spend(before + noted - start)
            if progress.unit == "s" and self._plan.span.seconds:
                lessons = f"then {self._plan.span.seconds / 60:.0f} min of lessons"
                progress = msgspec.structs.replace(progress, stage=f"{progress.stage}, {lessons}")
            report(progress)

        left = max(self._plan.writing_seconds - before, 0.0)
        budget = Budget(left, self._bytes, self._plan.most_tokens)
        try:
            self._corpus.gather(self._source, budget, report=reported, pause=pause)
        finally:
            if left:
                self._claim.spend(before + time.monotonic() - start)
        if not self._corpus.learned.shards:
            raise Problem(
                "No text was written to learn from.",
                "Give more minutes, or a larger writing share.",
            )

    def _course(self) -> Course:
        """The lessons, from their beginning or from the checkpoint."""
        file = self._folder / "checkpoint.safetensors"
        inner, texts = self._source.model.inner, self._corpus.learned
        kept = read_checkpoint(file)
        if kept is None:
            vocabulary = choose_vocabulary(
                texts.read(),
                self._shape.vocabulary,
                width=self._source.model.width,
                end_ids=self._source.end_ids,
            )
            head = begin_head(inner, self._shape.vocabulary, texts.read())
        else:
            vocabulary = DraftVocabulary(kept.vocabulary, kept.standing.coverage)
            head = DraftHead(self._shape).to(self._source.model.device)
        material = Material(
            teacher=Teacher(inner, vocabulary.ids),
            texts=texts,
            held_out=self._held_out(),
            seed=self._source.seed,
        )
        course = Course(material, head, file, self._plan.span)
        course.standing.coverage = vocabulary.coverage
        if kept is not None:
            course.restore(kept)
        return course

    def _held_out(self) -> list[Batch]:
        """The texts that the head is judged by."""
        texts = list(self._corpus.held_out.read())
        return [batch_of(some) for some in side_by_side(texts, BATCH_TOKENS)]

    def _save(self, course: Course) -> None:
        """Writes the head as good as it has been so far, with its card and its curve."""
        taught = self._taught(course)
        save_head(
            self.head_folder,
            course.head,
            course.vocabulary,
            self._made_for,
            in_a_sentence(taught),
        )
        write_card(self.head_folder, taught, self._facts())

    def _facts(self) -> Facts:
        source, made_for = self._source, self._made_for
        own = len(source.prompts)
        told = environment(source.model.device)
        return Facts(
            target=made_for.title,
            fingerprint=made_for.fingerprint,
            folder_licence=self._plan.licence,
            prompts=f"{own} own prompts" if own else f"prompts of {len(KINDS)} kinds, composed",
            seed=source.seed,
            precision=source.model.precision,
            device=told.device,
            versions={"foretoken": told.app, "python": told.python, **told.packages},
        )

    def _taught(self, course: Course) -> Taught:
        standing = course.standing
        return Taught(
            head=str(self.head_folder),
            best=standing.curve[standing.best],
            curve=tuple(standing.curve),
            coverage=standing.coverage,
            written=self._written,
            writing_seconds=self._claim.writing_seconds,
            stopped_early=standing.end < 1,
        )


def _identity(source: Source, made_for: MadeFor, vocabulary: int) -> Identity:
    return Identity(
        target=made_for.title,
        fingerprint=made_for.fingerprint,
        prompts=prompts_mark(source.prompts),
        seed=source.seed,
        draft_vocabulary=vocabulary,
    )
