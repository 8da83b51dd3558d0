"""A bench without models: its passes are naps, and what goes wrong is asked for by name.

`pair` says what loading does, `method_options` what the run does; see `_load` and `_option`.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterator

from app.engine.jobs import Pause, Point, Report
from app.run.auditing import Audit, Audited
from app.run.events import (
    At,
    Environment,
    FirstToken,
    LaneEnded,
    LaneStarted,
    ModelFacts,
    Phases,
    Progress,
    PromptRead,
    Round,
    RoundCommitted,
    RunEnded,
    RunEvent,
    RunStarted,
    Token,
)
from app.run.preparation import DeviceMemory, EngineReady, Prepare, Prepared, Released
from app.run.problems import Cancelled, Problem
from app.run.settings import OptionValue, RunSettings
from app.run.teaching import CurvePoint, Taught, Teach

FACTS = ModelFacts(
    name="Fake",
    folder="/модель",
    precision="fp32",
    precision_note="",
    device="CPU",
    parameters=1,
    weight_bytes=4,
    vocabulary=8,
    context_length=64,
    attention="none",
    rewinds=True,
    rewind_note="",
    rows_independent=True,
    rows_note="",
)
MACHINE = Environment("0", "3", "here", "one", "CPU", 1, {"fake": "1"})
LONG = 60.0
CURVE_POINT = CurvePoint(7, 0.5, (0.5, 0.25), 0.625, (1.5, 2.5))


class FakeBench:
    """Loads, runs and counts at the pace that it is told."""

    def __init__(self) -> None:
        self.passes = 0
        self._heavy: weakref.ref[Heavy] | None = None

    def ready(self) -> EngineReady:
        return EngineReady("fake", "CPU")

    def memory(self) -> tuple[DeviceMemory, ...]:
        return (DeviceMemory("cpu", "CPU", 1000 - self.passes, 2000),)

    def refusals(self) -> dict[str, dict[str, str]]:
        return {}

    def prepare(self, wanted: Prepare, *, report: Report, pause: Pause) -> Prepared:
        report(Progress("loading"))
        notes = self._load(wanted.pair, pause)
        return Prepared(wanted.pair, FACTS, None, 64, True, notes)

    def run(
        self,
        run: str,
        settings: RunSettings,
        *,
        emit: Callable[[RunEvent], None],
        report: Report,
        pause: Pause,
    ) -> None:
        report(Progress("loading"))
        self._load(settings.pair, pause)
        at = At(run, "baseline")
        emit(RunStarted(run, "now", settings, MACHINE, FACTS, None, (1, 2), (0,), True))
        emit(LaneStarted(at))
        try:
            for event in self._lane(at, settings, pause):
                emit(event)
        except Cancelled:
            emit(LaneEnded(at, "cancelled"))
            emit(RunEnded(run, "cancelled"))
        else:
            emit(LaneEnded(at, "length"))
            if not _option(settings, "silent"):
                emit(RunEnded(run, "finished"))
            if _option(settings, "late"):
                raise RuntimeError("too late to matter")

    def audit(self, wanted: Audit, *, report: Report, pause: Pause) -> Audited:
        self._load(wanted.settings.pair, pause)
        report(Progress("auditing", 1, wanted.runs, "texts"))
        return audited(wanted)

    def teach(self, wanted: Teach, *, report: Report, point: Point, pause: Pause) -> Taught:
        self._load(wanted.target, pause)
        report(Progress("teaching", 1, 2, "s"))
        curve = (CURVE_POINT, CURVE_POINT)
        for one in curve:
            pause()
            self.passes += 1
            point(one)
        return Taught(f"{wanted.out}/head", curve[0], curve, 0.97, 9, 1.5, False)

    def release(self) -> Released:
        return Released(("Fake",), 4)

    def count_tokens(self, prompt: str, *, system: str, raw: bool) -> int:
        if not prompt:
            raise Problem("No prompt.", "Write one.")
        if prompt == "bug":
            raise ZeroDivisionError("a question too hard")
        return len(prompt.split()) + len(system.split()) + raw

    def _load(self, pair: str, pause: Pause) -> tuple[str, ...]:
        """Loads as the method of this name does; what it found is told as notes."""
        notes: tuple[str, ...] = getattr(self, f"_{pair}")(pause)
        return notes

    def _lane(self, at: At, settings: RunSettings, pause: Pause) -> Iterator[RunEvent]:
        chunks = int(_option(settings, "chunks", 2))
        for chunk in range(1, chunks):
            self._forward(settings, pause)
            yield PromptRead(at, chunk, chunks)
        self._forward(settings, pause)
        yield FirstToken(at, Token(1, "é", "first"), 0.5)
        for index in range(settings.max_new_tokens):
            self._forward(settings, pause)
            if index == _option(settings, "fault_at", -1):
                self._leave_something_heavy()
            yield RoundCommitted(at, _round(index))

    def _forward(self, settings: RunSettings, pause: Pause) -> None:
        pause()
        self.passes += 1
        time.sleep(_option(settings, "step"))

    def _leave_something_heavy(self) -> None:
        """Raises from a frame that holds a large thing, and a fault that holds itself."""
        gc.disable()
        heavy = Heavy()
        self._heavy = weakref.ref(heavy)
        fault = RuntimeError("what nobody foresaw: ∞")
        fault.itself = fault  # type: ignore[attr-defined]
        raise fault

    def _stuck(self, pause: Pause) -> tuple[str, ...]:
        time.sleep(LONG)
        return ()

    def _staged(self, pause: Pause) -> tuple[str, ...]:
        for _ in range(int(LONG / 0.01)):
            pause()
            time.sleep(0.01)
        return ()

    def _here(self, pause: Pause) -> tuple[str, ...]:
        return ("held",) if self._heavy is not None and self._heavy() is not None else ()

    def _missing(self, pause: Pause) -> tuple[str, ...]:
        raise Problem("There is no such pair.", "Choose another.")

    def _broken(self, pause: Pause) -> tuple[str, ...]:
        raise KeyError("weights")

    def _gone(self, pause: Pause) -> tuple[str, ...]:
        os._exit(7)

    def _chatty(self, pause: Pause) -> tuple[str, ...]:
        print("python chatter ∞", flush=True)
        os.write(1, b"chatter of a library\n")
        os.write(2, b"complaint of a library\n")
        return ()

    def _modules(self, pause: Pause) -> tuple[str, ...]:
        return tuple(sorted({name.partition(".")[0] for name in sys.modules}))


def audited(wanted: Audit) -> Audited:
    """An answer by which the law was kept."""
    return Audited(
        settings=wanted.settings,
        asked=wanted.runs,
        runs=wanted.runs,
        lossless=True,
        drafted=9,
        accepted=4,
        texts=8,
        tv=0.01,
        bound=0.1,
        impossible=0,
        edge=0,
        statistic=7.0,
        cells=8,
        chance=0.4,
        smallest_seen=0.05,
    )


class Heavy:
    """Stands for a tensor."""


def settings_of(pair: str = "here", rounds: int = 3, **options: OptionValue) -> RunSettings:
    """Settings of a run on this bench."""
    return RunSettings(
        pair, "a prompt", method="nothing", method_options=options, max_new_tokens=rounds
    )


def no_bench() -> FakeBench:
    """A factory that fails as a library does whose parts are missing."""
    raise ImportError("DLL load failed")


def _option(settings: RunSettings, name: str, default: float = 0) -> float:
    return float(settings.method_options.get(name, default))


def _round(index: int) -> Round:
    token = Token(index % 8, "ab", "plain", target_probability=0.1 + 1e-17 * index)
    return Round(index, 0, "draft length", (token,), (), Phases(verify=1 / 3))
