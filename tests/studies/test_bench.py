"""A bench runs every prompt in every way, and can be stopped and gone on with."""

import json
import subprocess
import sys

import pytest

from app.cli.asked import bench_ways
from app.library.prompts_set import Prompt
from app.run.problems import Cancelled, Problem
from app.run.settings import RunSettings
from app.studies.bench import bench_costs, plan, run_bench

PROMPTS = [
    Prompt("p1", "chat", ("Say one two three, one two three.",)),
    Prompt("p2", "code", ("Write: x = 1", "And again.")),
]
SETTINGS = RunSettings(pair="embedded", prompt="", precision="bf16", max_new_tokens=6)


def test_every_prompt_in_every_way():
    planned = plan(PROMPTS, [("ngram", 2), ("ngram", 4), ("nothing", 0)], SETTINGS)
    assert [(one.prompt.id, one.settings.method, one.settings.draft_length) for one in planned] == [
        (prompt, *way)
        for prompt in ("p1", "p2")
        for way in (("ngram", 2), ("ngram", 4), ("nothing", 0))
    ]
    assert planned[3].settings.prompt == "Write: x = 1"
    assert len({one.name for one in planned}) == 6


def test_ways_are_read_from_words(catalogue):
    pair = catalogue.pair("embedded")
    assert bench_ways(pair, None, None) == [("ngram", 4)]
    assert bench_ways(pair, "ngram,nothing", "2, 4") == [
        ("ngram", 2),
        ("ngram", 4),
        ("nothing", 2),
        ("nothing", 4),
    ]
    for wrong in ("two", "-1", "65", ""):
        with pytest.raises(Problem):
            bench_ways(pair, None, wrong or ",")


@pytest.mark.embedded
def test_a_bench_yields_records_and_costs(workbench):
    told = []
    planned = plan(PROMPTS, [("ngram", 3)], SETTINGS)
    runs = list(run_bench(workbench, planned, report=told.append, pause=lambda: None))
    assert [(run.prompt, run.category) for run in runs] == [("p1", "chat"), ("p2", "code")]
    assert all(run.record.repetitions("baseline")[0].rounds for run in runs)
    assert [(progress.done, progress.total) for progress in told] == [(0, 2), (1, 2)]
    costs = bench_costs(workbench, SETTINGS, 3, report=told.append, pause=lambda: None)
    assert sorted(costs.seconds) == list(range(1, 10))
    assert costs.draft_step is None


@pytest.mark.embedded
def test_a_stop_ends_a_bench(workbench):
    def stop():
        raise Cancelled

    with pytest.raises(Cancelled):
        list(
            run_bench(workbench, plan(PROMPTS, [("ngram", 3)], SETTINGS), report=print, pause=stop)
        )


@pytest.mark.embedded
def test_a_bench_on_the_terminal_goes_on_where_it_stopped(tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    lines = [{"question_id": n, "category": "c", "turns": [f"Count to {n}."]} for n in (3, 4)]
    prompts.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    kept = tmp_path / "kept.jsonl"
    command = [sys.executable, "-m", "app", "bench", "--prompts", str(prompts), "--json"]
    command += ["--max-new-tokens", "4", "--precision", "bf16", "--repeats", "1"]
    command += ["--draft-lengths", "2", "--resume", str(kept)]
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    found = json.loads(first.stdout)
    assert found["overall"]["prompts"] == 2
    assert found["cost"]["seconds"]["3"] > 0
    whole = kept.read_bytes()
    # A kill may cut the last line off: that run is measured again, the other is not.
    kept.write_bytes(whole[: len(whole) - 40])
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["overall"]["prompts"] == 2
    assert "3 with" not in again.stderr
