"""The program's own test: all of it once, and what it says when something is amiss."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest
import torch

from app.decoding.verifiers.greedy import Greedy
from app.library.catalogue import load_catalogue
from app.run.problems import Problem
from app.selftest import deep, surroundings, timed
from app.selftest.parts import run_part
from app.selftest.planted import Finding, planted, proved
from app.selftest.result import Result, tried
from app.selftest.runs import tiny_run
from app.selftest.selftest import run_selftest
from app.selftest.tiny_models import write_tiny_pair
from app.studies.workbench import Workbench

ROOT = Path(__file__).parents[2]

PARTS = {
    "well": "def checks(folder):\n    yield tried('first', lambda: str(folder))\n",
    "gone": "import sys\ndef checks(folder):\n    yield tried('first', str)\n    os._exit(7)\n",
    "killed": "def checks(folder):\n    os.kill(os.getpid(), 9)\n    yield\n",
    "broken": "raise ImportError('no such library')\n",
    "both": "sys.modules['torch'] = sys.modules['PySide6'] = sys\ndef checks(folder):\n    yield "
    "tried('first', str)\n",
}


@pytest.fixture
def part(tmp_path, monkeypatch):
    """The lines of a made-up part."""

    def lines(name: str) -> list[str]:
        module = f"part_{name}"
        head = "import os, sys\nfrom app.selftest.result import tried\n"
        (tmp_path / f"{module}.py").write_text(head + PARTS[name], encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        return [result.line for result in run_part("made up", module, tmp_path)]

    return lines


def test_all_of_it_in_a_home_of_an_unusual_name_and_from_elsewhere(tmp_path):
    home, elsewhere, scratch = (tmp_path / name for name in ("Zoë's home 模型", "else", "scratch"))
    for folder in (home, elsewhere, scratch):
        folder.mkdir()
    elsewhere.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-m", "app", "selftest"],
        cwd=elsewhere,
        env={
            **os.environ,
            "FORETOKEN_HOME": str(home),
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(scratch),
        },
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    *checks, last = done.stdout.splitlines()
    assert last == "All is well."
    assert all(": ok: " in line for line in checks)
    names = [line.partition(":")[0] for line in checks]
    assert {"libraries", "devices", "method ngram", "engine process", "plot"} <= set(names)
    assert [name for name in names if name.startswith("report .")]
    assert not list(scratch.iterdir())
    assert not list(elsewhere.iterdir())


def test_a_part_tells_its_results_in_turn(part, tmp_path):
    assert part("well") == [f"first: ok: {tmp_path}"]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_crash_is_a_line(part):
    assert part("killed") == ["made up: FAILED: was ended by signal 9"]


def test_an_early_end_is_a_line_after_the_others(part):
    assert part("gone") == ["first: ok: ", "made up: FAILED: ended with code 7"]


def test_a_library_that_cannot_be_imported_is_a_line(part):
    (line,) = part("broken")
    assert line.startswith("made up: FAILED: ImportError: no such library")


def test_torch_and_qt_must_not_meet(part):
    assert part("both")[-1] == "made up: FAILED: torch and Qt have met in one process"


def test_a_part_that_says_nothing_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("app.selftest.parts.PATIENCE", 0.1)
    (tmp_path / "part_silent.py").write_text(
        "import time\ndef checks(folder):\n    time.sleep(60)\n    yield\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    (result,) = run_part("made up", "part_silent", tmp_path)
    assert result.line == "made up: FAILED: gave no result for 0.1 s"


def test_what_stops_a_check_is_one_line():
    def look():
        raise Problem("It is\nbroken.", "Mend it.")

    assert tried("one", look).line == "one: FAILED: It is broken. Mend it."


def test_metadata_that_is_missing_fails(monkeypatch):
    def no_version(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(surroundings.metadata, "version", no_version)
    results = {result.name: result for result in surroundings.checks()}
    assert results["libraries"].failed
    assert "PackageNotFoundError" in results["libraries"].line
    assert not results["report layout"].failed


def test_one_failure_fails_the_whole(monkeypatch):
    monkeypatch.setattr("app.selftest.selftest._results", lambda embedded: [tried("one", _broken)])
    lines: list[str] = []
    assert not run_selftest(lines.append, embedded=False)
    assert lines[0].startswith("one: FAILED: RuntimeError: no at ")
    assert lines[1] == "1 failed."


def _broken() -> str:
    raise RuntimeError("no")


class Scales:
    """Something to plant a fault in."""

    def weigh(self, grams):
        return grams


def test_a_planted_fault_is_taken_out_again():
    with planted(Scales, "weigh", lambda sound, scales, grams: sound(scales, grams) + 1):
        assert Scales().weigh(5) == 6
    assert Scales().weigh(5) == 5


def weighed(spare: int = 0):
    grams = Scales().weigh(5)
    return Finding(abs(grams - 5) <= spare, f"{grams} g")


def test_a_check_is_proved_by_passing_without_the_fault_and_failing_with_it():
    fault = planted(Scales, "weigh", lambda sound, *given: 7)
    told = proved(weighed, "a heavy thumb", fault)
    assert told == "5 g; with a heavy thumb 7 g, which is seen"


def test_a_check_that_fails_as_things_are_and_a_blind_one_are_problems():
    fault = planted(Scales, "weigh", lambda sound, *given: 7)
    with pytest.raises(Problem, match="blind to a heavy thumb: 7 g"):
        proved(lambda: weighed(spare=9), "a heavy thumb", fault)
    with pytest.raises(Problem, match=r"^5 g"):
        proved(lambda: Finding(False, weighed().told), "a heavy thumb", fault)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home for tiny models, which lose by more threads than one."""
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield tmp_path
    torch.set_num_threads(threads)


def test_counts_and_law_are_proved(home):
    results = list(deep.checks(home))
    assert [result.name for result in results] == ["counts", "law", "law of trees"]
    for result in results:
        assert not result.failed, result.line
        assert result.line.endswith("which is seen")


def test_the_account_of_the_tiny_pair_sees_a_slow_rule(home, monkeypatch):
    monkeypatch.setattr(timed, "TIMES", 1)
    bench = Workbench(load_catalogue([write_tiny_pair()]))
    settings = tiny_run("ngram")
    quick = timed._look(bench, settings)
    with planted(Greedy, "verify", partial(timed._slow, 0.05)):
        slow = timed._look(bench, settings)
    assert not slow.holds
    assert slow.told != quick.told


def test_deep_checks_take_the_place_of_the_others(monkeypatch):
    parts = []
    monkeypatch.setattr(
        "app.selftest.selftest.run_part", lambda *part: parts.append(part) or [Result("one", "two")]
    )
    monkeypatch.setattr("app.selftest.embedded.has_embedded", lambda offered: False)
    lines: list[str] = []
    assert run_selftest(lines.append, deep=True)
    assert [module for _, module, _ in parts] == ["app.selftest.deep", "app.selftest.timed"]
    assert parts[0][2] == parts[1][2]  # both in the self-test's own home
    monkeypatch.setattr("app.selftest.embedded.has_embedded", lambda offered: True)
    run_selftest(lines.append, deep=True)
    assert lines[-1] == "All is well."
