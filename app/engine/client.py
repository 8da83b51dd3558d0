"""The window's side of the engine: start, send, listen, kill."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from app.engine.process import EngineProcess
from app.engine.protocol import (
    Command,
    EngineEnded,
    JobCancelled,
    JobProblem,
    Message,
    Question,
    Quit,
    Stop,
    Work,
)
from app.run.auditing import Audited
from app.run.events import RunEnded, RunEvent, RunStarted
from app.run.preparation import Prepared, Released
from app.run.record import RunRecord
from app.run.teaching import Taught

TORCH_BENCH = "app.engine.worker:torch_bench"
"""The factory of the real models, named and not imported: it leads to torch."""


class EngineClient:
    """One engine at a time, started when needed; used by one thread, which only `close` holds up.

    `on_arrival`, if set, is called, mostly by another thread, when something has arrived; it must
    neither raise nor wait for the thread that uses the client.
    """

    def __init__(self, factory: str = TORCH_BENCH) -> None:
        self.record: RunRecord | None = None
        """The present run, or the last one, as far as `drain` has brought it."""
        self.on_arrival: Callable[[], None] | None = None
        self._factory = factory
        self._arrived: deque[tuple[EngineProcess, Message]] = deque()
        self._engine: EngineProcess | None = None
        self._jobs = 0
        self._closed = False

    @property
    def alive(self) -> bool:
        """Whether there is an engine, be it only about to start."""
        return self._engine is not None and self._engine.alive

    @property
    def busy(self) -> bool:
        """Whether a job was sent whose end `drain` has not returned yet."""
        return self._jobs > 0

    def start(self) -> None:
        """Starts an engine, unless one is alive or the client is closed."""
        if self._closed or self.alive:
            return
        self._jobs = 0
        self._engine = EngineProcess(self._factory, self._arrive, after=self._engine)

    def send(self, command: Command) -> None:
        """Queues a command, for a new engine if none is alive; a closed client sends nothing.

        What cannot cross the pipe (half a character, a number too large) is answered by a
        JobProblem, like anything else that cannot be done.
        """
        if not (self.alive or isinstance(command, Stop | Quit)):
            self.start()
        if self._engine is None or not self.alive:
            return
        self._jobs += isinstance(command, Work)
        try:
            self._engine.send(command)
        except (UnicodeEncodeError, OverflowError) as error:
            self._arrive(self._engine, _unsent(command, error))

    def drain(self) -> list[Message]:
        """All that has arrived since the last call, in order; brings `record` up to it."""
        drained = []
        while self._arrived:
            engine, message = self._arrived.popleft()
            self._keep(message)
            if engine is self._engine:
                self._count(message)
            drained.append(message)
        return drained

    def kill(self) -> None:
        """Ends the engine at once; `drain` will return its EngineEnded."""
        if self._engine is not None:
            self._engine.kill()

    def close(self, timeout: float = 3.0) -> None:
        """Ends the engine, by force after `timeout` seconds, and brings `record` to its end.

        Nothing is left: no process, no thread, no message; and nothing is started any more.
        """
        self._closed = True
        if self._engine is not None:
            self._engine.close(timeout)
        self.drain()

    def _arrive(self, engine: EngineProcess, message: Message) -> None:
        """Takes in a message; called by the engine's thread, and for what could not be sent."""
        self._arrived.append((engine, message))
        if self.on_arrival is not None:
            self.on_arrival()

    def _keep(self, message: Message) -> None:
        """Applies an event of a run to the record, and the end of an engine to a run under way."""
        if isinstance(message, RunStarted):
            self.record = RunRecord.begin(message)
        elif self.record is None or self.record.outcome != "running":
            return
        elif isinstance(message, EngineEnded):
            self.record.close("engine ended", message=message.reason)
        elif isinstance(message, RunEvent):
            self.record.apply(message)

    def _count(self, message: Message) -> None:
        """Minds how many jobs are still to end."""
        if isinstance(message, EngineEnded):
            self._jobs = 0
        elif _ends_a_job(message):
            self._jobs = max(0, self._jobs - 1)


def _unsent(command: Command, error: UnicodeEncodeError | OverflowError) -> JobProblem:
    question = command.question if isinstance(command, Question) else None
    if isinstance(error, UnicodeEncodeError):
        message = f"The text is not whole Unicode: {error.object[error.start : error.end]!r}."
        return JobProblem(message, "Delete that half of a character.", question)
    return JobProblem("A number of the settings is too large.", "Choose a smaller one.", question)


def _ends_a_job(message: Message) -> bool:
    if isinstance(message, JobProblem):
        return message.question is None
    return isinstance(message, Prepared | Audited | Taught | Released | JobCancelled | RunEnded)
