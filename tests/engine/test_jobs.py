"""The engine's work on its jobs, without a second process."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from fake_bench import CURVE_POINT, FakeBench, audited, settings_of

from app.engine.inbox import Inbox, Job
from app.engine.jobs import Engine, Pause, Point, Report
from app.engine.protocol import (
    AskMemory,
    Command,
    CountTokens,
    JobCancelled,
    JobProblem,
    MemoryFree,
    Message,
    Question,
    Quit,
    Run,
    Stop,
    TokenCount,
)
from app.run.auditing import Audit
from app.run.events import FirstToken, Progress, RoundCommitted, RunEnded, RunStarted
from app.run.preparation import (
    DeviceMemory,
    PrecisionsRefused,
    Prepare,
    Prepared,
    Release,
    Released,
)
from app.run.settings import RunSettings
from app.run.teaching import CurvePoint, Taught, Teach

LOG = Path("engine.log")


class Ending(Inbox):
    """An inbox that says Quit when nothing waits."""

    def next(self) -> Job | Question | None:
        if not (self._jobs or self._questions):
            self.put(Quit())
        return super().next()


class Told(list[Message]):
    """Takes the place of the outbox."""

    put = list.append

    def of(self, *kinds: type[Message]) -> list[Message]:
        return [message for message in self if isinstance(message, kinds)]


class Interrupted(FakeBench):
    """A bench at whose pass `at` commands arrive, as if the reader had put them there."""

    def __init__(self, inbox: Inbox, *commands: Command, at: int = 3) -> None:
        super().__init__()
        self.inbox, self.commands, self.at = inbox, commands, at

    def _forward(self, settings: RunSettings, pause: Pause) -> None:
        super()._forward(settings, pause)
        if self.passes == self.at:
            for command in self.commands:
                self.inbox.put(command)


def work(bench: FakeBench, inbox: Inbox, *commands: Command) -> Told:
    """All that an engine tells that is given these commands."""
    told = Told()
    for command in commands:
        inbox.put(command)
    Engine(bench, inbox, told, LOG).work()  # type: ignore[arg-type]
    return told


def test_stop_ends_a_run_before_its_next_pass() -> None:
    inbox = Ending()
    bench = Interrupted(inbox, Stop(), at=5)
    told = work(bench, inbox, Run("a", settings_of(rounds=100)))
    assert bench.passes == 5
    assert told[-1] == RunEnded("a", "cancelled")


def test_stop_ends_a_prompt_before_its_next_chunk() -> None:
    inbox = Ending()
    bench = Interrupted(inbox, Stop(), at=2)
    told = work(bench, inbox, Run("a", settings_of(chunks=50)))
    assert bench.passes == 2
    assert not told.of(FirstToken)
    assert told[-1] == RunEnded("a", "cancelled")


def test_stop_when_nothing_runs_hits_no_later_job() -> None:
    inbox = Ending()
    told = work(FakeBench(), inbox, Stop(), Stop(), Run("a", settings_of()))
    assert told[-1] == RunEnded("a", "finished")


def test_stop_reaches_a_job_that_still_waits_and_none_behind_it() -> None:
    inbox = Ending()
    bench = Interrupted(inbox, Run("b", settings_of()), Stop(), Run("c", settings_of()))
    told = work(bench, inbox, Run("a", settings_of()))
    assert told.of(RunEnded, JobCancelled) == [
        RunEnded("a", "cancelled"),
        JobCancelled(),
        RunEnded("c", "finished"),
    ]
    assert [event.run for event in told.of(RunStarted)] == ["a", "c"]


def test_stop_while_loading_cancels_the_job_before_the_next_stage() -> None:
    inbox = Ending()

    class StoppedInLoad(FakeBench):
        def _here(self, pause: Pause) -> tuple[str, ...]:
            if not self.passes:
                self.passes += 1
                inbox.put(Stop())
            pause()
            return ()

    told = work(StoppedInLoad(), inbox, Run("a", settings_of()))
    assert told == [Progress("loading"), JobCancelled()]
    inbox = Ending()
    told = work(StoppedInLoad(), inbox, Prepare("here"))
    assert told == [Progress("loading"), JobCancelled()]


def test_an_audit_is_a_job_with_one_answer() -> None:
    wanted = Audit(settings_of(), runs=20)
    told = work(FakeBench(), Ending(), wanted, Audit(settings_of("missing")))
    assert told[0] == Progress("auditing", 1, 20, "texts")
    assert told[1] == audited(wanted)
    assert told[2:] == [JobProblem("There is no such pair.", "Choose another.")]


def test_a_training_tells_its_curve_and_then_what_came_of_it() -> None:
    told = work(FakeBench(), Ending(), Teach("here", "out", 1.0), Teach("missing", "out", 1.0))
    assert told[:3] == [Progress("teaching", 1, 2, "s"), CURVE_POINT, CURVE_POINT]
    assert told[3].head == "out/head"
    assert told[4:] == [JobProblem("There is no such pair.", "Choose another.")]


def test_stop_ends_a_training_at_its_next_pause() -> None:
    inbox = Ending()

    class StoppedInLessons(FakeBench):
        def teach(self, wanted: Teach, *, report: Report, point: Point, pause: Pause) -> Taught:
            def told(one: CurvePoint) -> None:
                point(one)
                inbox.put(Stop())

            return super().teach(wanted, report=report, point=told, pause=pause)

    told = work(StoppedInLessons(), inbox, Teach("here", "out", 1.0))
    assert told.of(CurvePoint, Taught, JobCancelled) == [CURVE_POINT, JobCancelled()]


def test_a_release_is_a_job_in_its_turn_with_one_answer() -> None:
    told = work(FakeBench(), Ending(), Run("a", settings_of()), Release(), Prepare("here"))
    ends = told.of(RunEnded, Released, Prepared)
    assert [type(message) for message in ends] == [RunEnded, Released, Prepared]
    assert ends[1] == Released(("Fake",), 4)


def test_a_question_is_answered_between_two_passes() -> None:
    inbox = Ending()
    bench = Interrupted(inbox, CountTokens(7, "one two three", "four"), at=4)
    told = work(bench, inbox, Run("a", settings_of(rounds=5)))
    answer = told.index(TokenCount(7, 4))
    assert len([event for event in told[:answer] if isinstance(event, RoundCommitted)]) == 2
    assert isinstance(told[answer + 1], RoundCommitted)
    assert told[-1] == RunEnded("a", "finished")


@pytest.mark.parametrize(
    ("prompt", "message"),
    [("", "No prompt."), ("bug", "A fault in Foretoken: ZeroDivisionError: a question too hard")],
)
def test_a_question_that_fails_ends_no_job(prompt: str, message: str) -> None:
    inbox = Ending()
    told = work(Interrupted(inbox, CountTokens(7, prompt)), inbox, Run("a", settings_of(rounds=5)))
    (problem,) = told.of(JobProblem)
    assert (problem.question, problem.message) == (7, message)
    assert told[-1] == RunEnded("a", "finished")


def test_quit_ends_the_job_at_hand() -> None:
    inbox = Ending()
    bench = Interrupted(inbox, Quit())
    told = work(bench, inbox, Run("a", settings_of(rounds=100)), Run("b", settings_of()))
    assert bench.passes == 3
    assert told[-1] == RunEnded("a", "cancelled")


def test_a_problem_before_the_start_is_told_as_one() -> None:
    told = work(FakeBench(), Ending(), Prepare("missing"), Run("a", settings_of("missing")))
    problem = JobProblem("There is no such pair.", "Choose another.")
    loading = Progress("loading")
    assert told == [loading, problem, loading, problem]


def test_what_is_free_is_told_between_two_passes_of_a_run() -> None:
    inbox = Ending()
    bench = Interrupted(inbox, AskMemory(7), at=3)
    told = work(bench, inbox, Run("a", settings_of()))
    [answer] = told.of(MemoryFree)
    assert (answer.question, answer.memory[0].free_bytes) == (7, 997)
    assert told[-1] == RunEnded("a", "finished")


def test_a_device_that_cannot_be_asked_ends_no_job() -> None:
    class Mute(FakeBench):
        def memory(self) -> tuple[DeviceMemory, ...]:
            raise RuntimeError("the driver is gone")

    told = work(Mute(), Ending(), AskMemory(4), Run("a", settings_of()))
    [problem] = told.of(JobProblem)
    assert problem.question == 4
    assert told[-1] == RunEnded("a", "finished")


def test_a_fault_while_loading_is_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    told = work(FakeBench(), Ending(), Prepare("broken"), Prepare("here"))
    (problem,) = told.of(JobProblem)
    assert problem.message == "A fault in Foretoken: KeyError: 'weights'"
    assert str(LOG) in problem.remedy
    assert "Traceback" in caplog.text
    assert isinstance(told[-1], Prepared)


def test_a_fault_in_a_run_ends_the_run_and_keeps_nothing_alive() -> None:
    told = work(FakeBench(), Ending(), Run("a", settings_of(rounds=9, fault_at=4)), Prepare("here"))
    (ended,) = told.of(RunEnded)
    assert (ended.run, ended.outcome) == ("a", "failed")
    assert ended.message == "A fault in Foretoken: RuntimeError: what nobody foresaw: ∞"
    assert len(told.of(RoundCommitted)) == 4
    assert told[-1].notes == (), "the frame of the fault is still held"


def test_a_run_that_does_not_say_how_it_ended_is_a_fault() -> None:
    told = work(FakeBench(), Ending(), Run("a", settings_of(silent=True)))
    assert told[-1].outcome == "failed"
    assert "has not said how it ended" in told[-1].message


def test_a_fault_behind_the_end_of_a_run_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        told = work(FakeBench(), Ending(), Run("a", settings_of(late=True)))
    assert told[-1] == RunEnded("a", "finished")
    assert len(told.of(RunEnded, JobProblem)) == 1
    assert "too late to matter" in caplog.text


class Refusing(FakeBench):
    """A bench whose device cannot take a precision; it counts how often it is asked."""

    asked = 0

    def refusals(self) -> dict[str, dict[str, str]]:
        self.asked += 1
        return {"cpu": {"fp16": f"fp16 crawls, after {self.passes} passes."}}


def test_what_is_refused_is_told_once_and_only_when_nothing_else_waits() -> None:
    # Looking it up loads a library for a second or two: what a person waits for comes first.
    bench = Refusing()
    told = work(bench, Ending(), Run("a", settings_of(rounds=3)), Run("b", settings_of(rounds=3)))
    (refused,) = told.of(PrecisionsRefused)
    assert told[-1] is refused
    assert refused.reasons["cpu"]["fp16"].endswith(f"after {bench.passes} passes.")
    assert bench.passes > 0
    assert bench.asked == 1


def test_an_engine_that_cannot_find_out_what_is_refused_works_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(FakeBench):
        def refusals(self) -> dict[str, dict[str, str]]:
            raise RuntimeError("the driver is gone")

    class Slow(Ending):
        empty = True

    told = work(Broken(), Slow(), Run("a", settings_of()))
    assert told[-1] == RunEnded("a", "finished")
    assert not told.of(PrecisionsRefused)
    assert "the driver is gone" in caplog.text
    caplog.clear()
