"""What the engine does: one job at a time, and questions between its passes."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from app.engine.inbox import Inbox, Job
from app.engine.outbox import Outbox
from app.engine.protocol import (
    CountTokens,
    JobCancelled,
    JobProblem,
    MemoryFree,
    Question,
    TokenCount,
    Work,
)
from app.run.auditing import Audit, Audited
from app.run.events import Outcome, Progress, RunEnded, RunEvent, RunStarted
from app.run.preparation import (
    DeviceMemory,
    EngineReady,
    PrecisionsRefused,
    Prepare,
    Prepared,
    Release,
    Released,
)
from app.run.problems import Cancelled, Problem, release_frames
from app.run.settings import RunSettings
from app.run.teaching import CurvePoint, Taught, Teach

Report = Callable[[Progress], None]
Point = Callable[[CurvePoint], None]
Pause = Callable[[], None]

_log = logging.getLogger(__name__)


class Bench(Protocol):
    """Where the models are: what an engine needs of the torch side."""

    def ready(self) -> EngineReady:
        """What the engine says of itself once it is up."""
        ...

    def refusals(self) -> dict[str, dict[str, str]]:
        """Why a kind of device here cannot take a precision, for each that it cannot take."""
        ...

    def memory(self) -> tuple[DeviceMemory, ...]:
        """What is free now on each device."""
        ...

    def prepare(self, wanted: Prepare, *, report: Report, pause: Pause) -> Prepared:
        """Makes the models of a pair ready. Raises Problem, and Cancelled when `pause` does."""
        ...

    def run(
        self,
        run: str,
        settings: RunSettings,
        *,
        emit: Callable[[RunEvent], None],
        report: Report,
        pause: Pause,
    ) -> None:
        """Tells a run from RunStarted to RunEnded. Raises Problem and Cancelled only before it."""
        ...

    def audit(self, wanted: Audit, *, report: Report, pause: Pause) -> Audited:
        """Compares texts with the target's law. Raises Problem, and Cancelled before the first."""
        ...

    def teach(self, wanted: Teach, *, report: Report, point: Point, pause: Pause) -> Taught:
        """Makes a draft head, or goes on with it. Raises Problem, and Cancelled when `pause` does;

        what was done until then is kept in its folder. No other models stay loaded.
        """
        ...

    def release(self) -> Released:
        """Lets go of every model, and says which they were."""
        ...

    def count_tokens(self, prompt: str, *, system: str, raw: bool) -> int:
        """Tokens of a prompt. Raises Problem if nothing is loaded."""
        ...


class Engine:
    """Does what the inbox holds, and tells the outbox; it outlives whatever goes wrong in a job."""

    def __init__(self, bench: Bench, inbox: Inbox, outbox: Outbox, log_file: Path) -> None:
        self._bench = bench
        self._inbox = inbox
        self._outbox = outbox
        self._log_file = log_file
        self._run: str | None = None
        self._told = False
        self._looked = False

    def work(self) -> None:
        """Does one thing after the other until Quit comes."""
        while task := self._next():
            if isinstance(task, Question):
                self._answer(task)
            else:
                self._do(task)

    def _next(self) -> Job | Question | None:
        """What to do next; the first time that nothing waits, what is refused is looked up."""
        if not self._looked and self._inbox.empty:
            self._looked = True
            self._tell_refusals()
        return self._inbox.next()

    def _tell_refusals(self) -> None:
        try:
            reasons = self._bench.refusals()
        except Exception:
            _log.exception("what the devices cannot take could not be found out")
            return
        if any(reasons.values()):
            self._outbox.put(PrecisionsRefused(reasons))

    def _do(self, job: Job) -> None:
        """Does a job; exactly one message says how it ended."""
        self._run, self._told = None, False
        pause = partial(self._pause, job)
        try:
            pause()
            self._start(job.command, pause)
        except Cancelled:
            self._end("cancelled")
        except Problem as problem:
            self._end("failed", problem.message, problem.remedy)
        except Exception as fault:
            self._end("failed", *self._words(fault))

    def _start(self, command: Work, pause: Pause) -> None:
        report = self._outbox.put
        if isinstance(command, Prepare):
            self._outbox.put(self._bench.prepare(command, report=report, pause=pause))
            return
        if isinstance(command, Audit):
            self._outbox.put(self._bench.audit(command, report=report, pause=pause))
            return
        if isinstance(command, Release):
            self._outbox.put(self._bench.release())
            return
        if isinstance(command, Teach):
            point = self._outbox.put
            self._outbox.put(self._bench.teach(command, report=report, point=point, pause=pause))
            return
        self._bench.run(command.run, command.settings, emit=self._emit, report=report, pause=pause)
        if not self._told:
            raise RuntimeError(f"run {command.run} is over and has not said how it ended")

    def _emit(self, event: RunEvent) -> None:
        """Hands an event on, minding whether a run is under way."""
        self._outbox.put(event)
        if isinstance(event, RunStarted):
            self._run = event.run
        elif isinstance(event, RunEnded):
            self._told = True

    def _pause(self, job: Job) -> None:
        """Called before every pass: the place for Stop, and for questions."""
        if self._inbox.stopped(job):
            raise Cancelled
        while question := self._inbox.question():
            self._answer(question)

    def _answer(self, asked: Question) -> None:
        """Answers a question; no answer ever ends a job."""
        try:
            if isinstance(asked, CountTokens):
                tokens = self._bench.count_tokens(asked.prompt, system=asked.system, raw=asked.raw)
                self._outbox.put(TokenCount(asked.question, tokens))
            else:
                self._outbox.put(MemoryFree(asked.question, self._bench.memory()))
        except Problem as problem:
            self._outbox.put(JobProblem(problem.message, problem.remedy, asked.question))
        except Exception as fault:
            self._outbox.put(JobProblem(*self._words(fault), asked.question))

    def _end(self, outcome: Outcome, message: str = "", remedy: str = "") -> None:
        """Says that the job at hand is over, unless its run has said so itself."""
        if self._told:
            return
        if self._run is not None:
            self._outbox.put(RunEnded(self._run, outcome, message, remedy))
        elif outcome == "cancelled":
            self._outbox.put(JobCancelled())
        else:
            self._outbox.put(JobProblem(message, remedy))

    def _words(self, fault: Exception) -> tuple[str, str]:
        """Message and remedy for an exception that nobody foresaw; the log gets the whole of it."""
        _log.error("a fault in a job", exc_info=fault)
        what = "".join(traceback.format_exception_only(fault)).strip()
        release_frames(fault)
        return f"A fault in Foretoken: {what}", f"The details are in {self._log_file}."
