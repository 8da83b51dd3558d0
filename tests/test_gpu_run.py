"""The script for a machine with a card: no step stops the others, and all of it is kept."""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "gpu" / "run.py"
TESTS = """
import pytest

pytestmark = pytest.mark.gpu

def test_right():
    pass

def test_wrong():
    assert 1 == 2, "not the same"

def test_left_out():
    pytest.skip("no card")
"""


@pytest.fixture
def script(monkeypatch):
    found = importlib.util.spec_from_file_location("gpu_run", SCRIPT)
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, "gpu_run", module)
    found.loader.exec_module(module)
    return module


def ran(script, monkeypatch, folder, made, *arguments):
    """The exit code, and what was kept of these steps."""
    monkeypatch.setattr(script, "steps", lambda scratch: made)
    monkeypatch.setattr(sys, "argv", ["run.py", "--out", str(folder), *arguments])
    code = script.main()
    kept = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return code, {one["name"]: one for one in kept["steps"]}


def python(script, name, program, limit_s=60.0):
    return script.Step(name, [sys.executable, "-c", program], limit_s)


def test_every_step_is_run_whatever_became_of_those_before(script, monkeypatch, tmp_path):
    pid = tmp_path / "pid"
    lasting = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(pid)!r}, "w").write(str(child.pid))
print("begun", flush=True)
time.sleep(600)
"""
    made = [
        python(script, "broken", "print('so far'); raise ValueError('why')"),
        python(script, "lasting", lasting, limit_s=6.0),
        script.Step("missing", ["no-such-program"], 60.0),
        python(script, "whole", "print('told'); print('{\"speed\": 2.5}')"),
    ]
    code, kept = ran(script, monkeypatch, tmp_path / "out", made)
    assert code == 1
    assert [kept[name]["code"] for name in kept] == [1, None, 127, 0]
    assert "limit" in kept["lasting"]["said"]
    assert kept["whole"]["answer"] == {"speed": 2.5}
    log = (tmp_path / "out" / "log.txt").read_text(encoding="utf-8")
    assert all(said in log for said in ("so far", "ValueError: why", "begun", "no-such-program"))
    for _ in range(100):  # a child that was killed is there until someone has asked for it
        if not os.path.exists(f"/proc/{pid.read_text()}/cmdline"):
            break
        if not Path(f"/proc/{pid.read_text()}/cmdline").read_bytes():
            break
        time.sleep(0.1)
    else:
        raise AssertionError("what a step started outlived it")


def test_outcomes_of_tests_are_kept(script, monkeypatch, tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text(TESTS, encoding="utf-8")
    step = script.tests("some", 120.0, tmp_path)
    step.command[step.command.index(str(script.HERE / "some.py"))] = str(file)
    code, kept = ran(script, monkeypatch, tmp_path / "out", [step])
    outcomes = {name: one["ended"] for name, one in kept["tests-some"]["answer"].items()}
    assert code == 1
    assert outcomes["test_right"] == "passed"
    assert "not the same" in outcomes["test_wrong"]["failure"]
    assert outcomes["test_left_out"] == {"skipped": "no card"}


def test_tests_that_were_all_left_out_are_no_success(script, monkeypatch, tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text(TESTS.replace("assert 1 == 2", "pytest.skip('no card')"), encoding="utf-8")
    for word, succeeds in (("left_out", False), ("right", True)):
        step = script.tests("some", 120.0, tmp_path)
        step.command[step.command.index(str(script.HERE / "some.py"))] = str(file)
        step.command += ["-k", word]
        code, kept = ran(script, monkeypatch, tmp_path / "out", [step])
        assert (code, kept["tests-some"]["code"]) == (int(not succeeds), 0)
        assert kept["tests-some"]["succeeded"] is succeeds


def test_no_step_begins_without_time(script, monkeypatch, tmp_path):
    made = [python(script, "first", "print('{}')"), python(script, "second", "print('{}')")]
    code, kept = ran(script, monkeypatch, tmp_path / "out", made, "--minutes", "0.01")
    assert code == 1
    assert {one["said"] for one in kept.values()} == {"not run: no time is left"}


def test_steps_are_chosen_by_words(script, monkeypatch, tmp_path):
    made = [
        python(script, "bench-one", "print('{}')"),
        python(script, "tests-one", "raise OSError"),
    ]
    code, kept = ran(script, monkeypatch, tmp_path / "out", made, "--only", "bench")
    assert (code, list(kept)) == (0, ["bench-one"])


def test_each_step_names_a_file_that_is_there_and_all_tests_for_a_card_are_among_them(
    script, tmp_path
):
    found = script.steps(tmp_path)
    files = {part for step in found for part in step.command if part.endswith(".py")}
    assert all((script.ROOT / file).is_file() for file in files)
    there = {str(script.HERE / file.name) for file in SCRIPT.parent.glob("test_*.py")}
    assert there <= files
    assert len({step.name for step in found}) == len(found)


def test_the_benches_are_asked_for_in_words_that_the_program_knows(script, tmp_path):
    from app.library.random_shapes import RANDOM_SHAPES
    from app.studies.random_bench import PRECISIONS

    for step in script.steps(tmp_path):
        if step.name.startswith("bench"):
            options = dict(zip(step.command[4::2], step.command[5::2], strict=False))
            assert options["--random-model"] in RANDOM_SHAPES
            assert options["--precision"] in PRECISIONS
            assert options["--passes"] in ("auto", "eager", "fixed")
