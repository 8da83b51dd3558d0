"""What the window knows of its engine: its state, the job at hand, and the run that waits."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from app.engine.protocol import (
    AskMemory,
    Command,
    CountTokens,
    EngineEnded,
    JobCancelled,
    JobProblem,
    MemoryFree,
    Message,
    Run,
    Stop,
)
from app.run.auditing import Audit, Audited, auditable
from app.run.events import (
    FirstToken,
    LaneStarted,
    ModelFacts,
    Progress,
    PromptRead,
    RunEnded,
    RunStarted,
)
from app.run.preparation import (
    DeviceMemory,
    EngineReady,
    Prepare,
    Prepared,
    Release,
    Released,
)
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.settings import RunSettings
from app.run.teaching import CurvePoint, Taught, Teach

Job = Literal["", "prepare", "run", "audit", "teach", "release"]
"""What the engine is at."""

Phase = Literal["starting", "ready", "working", "trouble", "off"]
"""How the engine stands."""


class Client(Protocol):
    """What the window asks of the engine's client."""

    record: RunRecord | None

    @property
    def alive(self) -> bool:
        """Whether the engine process is there."""

    def start(self) -> None:
        """Starts the engine process."""

    def send(self, command: Command) -> None:
        """Sends a command."""

    def drain(self) -> list[Message]:
        """What has arrived since the last call."""

    def kill(self) -> None:
        """Ends the engine process at once."""

    def close(self, timeout: float = 3.0) -> None:
        """Ends the engine process and leaves nothing behind."""


@dataclass
class Trouble:
    """Something that went wrong, and what to do."""

    message: str
    remedy: str
    job: Job = ""
    """What the engine was at."""


class EngineLink:
    """Sends commands, pulls messages, and keeps the engine's state for the widgets to show."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._since = clock()
        self.device = ""
        """What the engine calls its best device; empty while it is not there."""
        self.memory: tuple[DeviceMemory, ...] = ()
        """What was free on each device when it was asked for last."""
        self._memory_asked = False
        self._waiting: Run | None = None
        self._wanted: Prepare | None = None
        self._questions = 0
        self._replaced = 0
        self._superseded = 0
        self.phase: Phase = "off"
        self.job: Job = ""
        self.stopping = False
        self.progress: Progress | None = None
        self.pair: str | None = None
        """The pair whose models are loaded."""
        self.target: ModelFacts | None = None
        """The target that is loaded."""
        self.trouble: Trouble | None = None
        self.curve: list[CurvePoint] = []
        """What the newest training has told of its head."""
        self.taught: Taught | None = None
        """What came of the newest training; None unless it has come to its end."""

    @property
    def record(self) -> RunRecord | None:
        """The record of the newest run."""
        return self._client.record

    @property
    def busy(self) -> bool:
        """Whether a job is at hand or waits."""
        return bool(self.job or self._waiting)

    @property
    def waits(self) -> bool:
        """Whether a run waits for the job at hand to end."""
        return self._waiting is not None

    @property
    def seconds_since_start(self) -> float:
        """How long ago the engine process was started."""
        return self._clock() - self._since

    def start(self) -> None:
        """Starts the engine process, if it is not there."""
        if not self._client.alive:
            self._since = self._clock()
            self.phase = "starting"
            self._forget_models()
            self._client.start()

    def prepare(self, wanted: Prepare) -> None:
        """Makes a pair ready instead of another that is being made ready; not during another job.

        Asked for what is being made ready already, it lets that go on.
        """
        if self.job in ("run", "audit", "teach", "release") or self._waiting:
            return
        if self.job == "prepare" and not self.stopping and wanted == self._wanted:
            return
        self._supersede()
        self.start()
        self._forget_models()
        self._wanted = wanted
        self._begin("prepare", wanted)

    def release(self) -> None:
        """Lets go of the models that are loaded; not while a job is at hand."""
        if self._client.alive and not self.busy:
            self._begin("release", Release())

    def restart(self) -> None:
        """Ends the engine process at once; the next command starts a new one."""
        if self._client.alive:
            self._replaced += 1
            self._client.kill()
        self._lose_engine()
        self.phase = "off"

    def run(self, settings: RunSettings) -> str:
        """Runs these settings now, or as soon as the pair at hand is ready; the run's id.

        Raises Problem for settings out of range, and while a head is taught: that may take hours.
        """
        settings.check()
        if self.job == "teach":
            raise Problem("A training goes on.", "Stop it on the Train page, or wait for its end.")
        self.start()
        command = Run(uuid.uuid4().hex[:12], settings)
        if self.job:
            self._waiting = command
        else:
            self._begin("run", command)
        return command.run

    def audit(self, settings: RunSettings) -> None:
        """Audits settings as near to these as can be audited; not while a job is at hand.

        Raises Problem for what cannot be audited.
        """
        wanted = Audit(auditable(settings))
        wanted.check()
        if not self.busy:
            self.start()
            self._begin("audit", wanted)

    def teach(self, wanted: Teach) -> None:
        """Teaches a head instead of making a pair ready; not during another job.

        The models that were loaded are let go.
        """
        if self.job in ("run", "audit", "teach", "release") or self._waiting:
            return
        self._supersede()
        self.start()
        self._forget_models()
        self.curve, self.taught = [], None
        self._begin("teach", wanted)

    def stop(self) -> None:
        """Ends the job at hand, and forgets the run that waits."""
        self._waiting = None
        if self.job:
            self.stopping = True
            self._client.send(Stop())

    def count(self, prompt: str, *, system: str, raw: bool) -> int:
        """Asks how many tokens a prompt is; the answer carries the number that this returns."""
        self._questions += 1
        if self.target and self._client.alive:
            self._client.send(CountTokens(self._questions, prompt, system=system, raw=raw))
        return self._questions

    def ask_memory(self) -> None:
        """Asks what is free now, unless an answer is on its way, or a job at hand is changing it:
        then it is to be asked for at its end.
        """
        if self._client.alive and self.phase == "ready" and not self._memory_asked:
            self._memory_asked = True
            self._questions += 1
            self._client.send(AskMemory(self._questions))

    def pull(self) -> list[Message]:
        """The messages that have arrived, each taken into account."""
        messages, before = self._client.drain(), self.phase
        for message in messages:
            handle = _HANDLERS.get(type(message))
            if handle:
                handle(self, message)
        if self._waiting and not self.job and self.phase != "trouble":
            command, self._waiting = self._waiting, None
            self._begin("run", command)
        if before == "working":  # a job that has ended has left other memory free
            self.ask_memory()
        return messages

    def close(self) -> None:
        """Ends the engine process; no message follows."""
        self._waiting = None
        self._client.close(timeout=2.0)

    def _forget_models(self) -> None:
        self.pair, self.target = None, None

    def _lose_engine(self) -> None:
        """Forgets what was known of an engine that is no more, and what waited for it."""
        self._waiting, self.device, self._superseded = None, "", 0
        self._forget_models()
        self._end_job()

    def _supersede(self) -> None:
        """Ends a job that makes a pair ready; what it says from now on is nobody's."""
        if self.job == "prepare":
            self._superseded += 1
            self._client.send(Stop())

    def _begin(self, job: Job, command: Command) -> None:
        self.job, self.stopping, self.trouble, self.progress = job, False, None, None
        if self.phase != "starting":
            self.phase = "working"
        self._client.send(command)

    def _end_job(self) -> None:
        self.job, self.stopping, self.progress = "", False, None
        self.phase = "ready"

    def _end_preparing(self) -> None:
        """Ends the job, unless this is the end of an earlier one that another has replaced."""
        if self._superseded:
            self._superseded -= 1
        else:
            self._end_job()

    def _on_ready(self, message: EngineReady) -> None:
        self.phase = "working" if self.job else "ready"
        self.device = message.device
        self.memory, self._memory_asked = message.memory, False

    def _on_memory(self, message: MemoryFree) -> None:
        self._memory_asked, self.memory = False, message.memory

    def _on_progress(self, message: Progress) -> None:
        self.progress = message

    def _on_prepared(self, message: Prepared) -> None:
        if self.job == "teach":  # it was ready before it heard of the Stop
            self._end_preparing()
            return
        self.pair, self.target = message.pair, message.target
        if self.job == "prepare":
            self._end_preparing()

    def _on_audited(self, message: Audited) -> None:
        self.pair = message.settings.pair
        self._end_job()

    def _on_released(self, message: Released) -> None:
        self._forget_models()
        self._end_job()

    def _on_problem(self, message: JobProblem) -> None:
        if message.question is not None:
            self._memory_asked = False
            return
        if not self._superseded:
            self.trouble = Trouble(message.message, message.remedy, self.job)
            self._waiting = None
        self._end_preparing()

    def _on_cancelled(self, message: JobCancelled) -> None:
        self._end_preparing()

    def _on_point(self, message: CurvePoint) -> None:
        self.curve.append(message)

    def _on_taught(self, message: Taught) -> None:
        self.taught = message
        self._end_job()

    def _on_run_started(self, message: RunStarted) -> None:
        self.pair, self.target = message.settings.pair, message.target
        self.progress = None

    def _on_lane_moved(self, message: LaneStarted | FirstToken) -> None:
        self.progress = None

    def _on_prompt_read(self, message: PromptRead) -> None:
        whole = message.done >= message.total
        lane = message.at.lane
        self.progress = (
            None
            if whole
            else Progress(f"Reading the prompt, {lane} lane", message.done, message.total, "tokens")
        )

    def _on_run_ended(self, message: RunEnded) -> None:
        if message.message:
            self.trouble = Trouble(message.message, message.remedy, "run")
        self._end_job()

    def _on_engine_ended(self, message: EngineEnded) -> None:
        if message.expected and self._replaced:
            self._replaced -= 1
            return
        job = self.job
        self._lose_engine()
        self.phase = "off" if message.expected else "trouble"
        if not message.expected:
            kept = "What had come of the run is kept." if self.record else ""
            if job == "teach":
                kept = "What was taught up to the last minute is kept: Resume goes on."
            self.trouble = Trouble(message.reason, kept, job)


_HANDLERS: dict[type, Callable] = {
    EngineReady: EngineLink._on_ready,
    MemoryFree: EngineLink._on_memory,
    Progress: EngineLink._on_progress,
    Prepared: EngineLink._on_prepared,
    Audited: EngineLink._on_audited,
    CurvePoint: EngineLink._on_point,
    Taught: EngineLink._on_taught,
    Released: EngineLink._on_released,
    JobProblem: EngineLink._on_problem,
    JobCancelled: EngineLink._on_cancelled,
    RunStarted: EngineLink._on_run_started,
    LaneStarted: EngineLink._on_lane_moved,
    PromptRead: EngineLink._on_prompt_read,
    FirstToken: EngineLink._on_lane_moved,
    RunEnded: EngineLink._on_run_ended,
    EngineEnded: EngineLink._on_engine_ended,
}
