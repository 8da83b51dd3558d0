"""`foretoken bench` on a toy pair: tables, reports, progress, stopping, and going on."""

import csv
import io
import json
import signal

import msgspec
import pytest
import talking

from app.cli.bench_file import KeptCosts, KeptRun
from app.cli.remaining import Remaining
from app.run.events import Progress
from app.studies.workbench import Workbench

SHORT = ("--max-new-tokens", "5", "--repeats", "1", "--draft-lengths", "2", "--methods", "ngram")


@pytest.fixture
def runs(monkeypatch):
    """The settings of every run; the toy pair is loaded, whatever is asked for."""
    toy, ran, run = talking.pair(context=2048), [], Workbench.run
    monkeypatch.setattr(Workbench, "loaded", lambda self, wanted, **how: toy)

    def watched(self, name, settings, **how):
        run(self, name, settings, **how)
        ran.append(settings)

    monkeypatch.setattr(Workbench, "run", watched)
    return ran


@pytest.fixture
def questions(tmp_path):
    """A file of prompts with one and with two turns."""
    path = tmp_path / "question.jsonl"
    lines = [
        {"question_id": 81, "category": "writing", "turns": ["ab ab ab", "again"]},
        {"question_id": 82, "category": "math", "turns": ["1+1"]},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_turns_are_run_one_behind_the_other(call, runs, questions):
    done = call("bench", "--prompts", str(questions), *SHORT, "--json")
    assert done.code == 0, done.err
    assert [(one.prompt, one.turn) for one in runs] == [("ab ab ab", 0), ("again", 1), ("1+1", 0)]
    found = json.loads(done.out)
    assert set(found) >= {"categories", "overall", "cost", "verdict"}
    assert list(found["categories"]) == ["writing", "math"]
    for figures in (*found["categories"].values(), found["overall"]):
        assert {"low", "high"} <= set(figures["decode_speedup"])
        assert {"low", "high"} <= set(figures["request_speedup"])
        assert set(figures) >= {"tokens_per_loop", "acceptance_rate", "conditional_acceptance"}
        for lane in ("speculative", "baseline"):
            assert figures[f"{lane}_tokens_per_second"] > 0
            assert set(figures[f"{lane}_chunk_gaps"]) == {"p50", "p90", "p95"}
            assert set(figures[f"{lane}_seconds_per_token"]) == {"p50", "p90", "p95"}
    assert (found["overall"]["prompts"], found["overall"]["turns"]) == (2, 3)
    assert found["overall"]["prompt_reused"] > 0
    assert found["cost"]["seconds"]["3"] > 0


def test_every_method_with_every_length_and_every_format(call, runs, questions, tmp_path):
    paths = [tmp_path / f"bench.{suffix}" for suffix in ("json", "md", "csv", "html")]
    reports = [word for path in paths for word in ("--report", str(path))]
    done = call(
        "bench", "--pair", "embedded-nf4-draft", "--prompts", str(questions),
        "--methods", "ngram,draft-model",
        "--draft-lengths", "1,2", "--temperature", "0.5", "--limit-per-category", "1",
        "--precision", "fp32", "--repeats", "2", "--max-new-tokens", "4", *reports,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert {(one.method, one.draft_length) for one in runs} == {
        (method, length) for method in ("ngram", "draft-model") for length in (1, 2)
    }
    assert {(one.sampling.temperature, one.precision, one.repetitions) for one in runs} == {
        (0.5, "fp32", 2)
    }
    for word in ("Ratio of means", "Request speed-up", "Chunk gap", "all together", "writing"):
        assert word in done.out
    found = json.loads(paths[0].read_text(encoding="utf-8"))
    assert len(found["ways"]) == 4
    for path in (paths[1], paths[3]):
        page = path.read_text(encoding="utf-8")
        assert "draft-model, draft length 2" in page
        assert "as Spec-Bench averages" in page
    rows = list(csv.DictReader(io.StringIO(paths[2].read_text(encoding="utf-8-sig"))))
    assert len(rows) == 4 * 3
    way = found["ways"][0]
    assert (
        float(rows[0]["decode_speedup"]) == way["categories"]["writing"]["decode_speedup"]["value"]
    )
    beside = (tmp_path / "bench.run.csv").read_text(encoding="utf-8-sig")
    facts = [tuple(row) for row in csv.reader(io.StringIO(beside))]
    assert {("settings.sampling.temperature", "0.5"), ("settings.repetitions", "2")} <= set(facts)
    assert [value for name, value in facts if name == "way"] == [
        f"{method}, draft length {length}"
        for method in ("ngram", "draft-model")
        for length in (1, 2)
    ]
    assert "bench.run.csv" in done.err
    assert float(rows[2]["baseline_chunk_gaps_p95"]) == way["overall"]["baseline_chunk_gaps"]["p95"]


def test_going_on_in_the_middle_of_a_conversation(call, runs, questions, tmp_path):
    kept = tmp_path / "kept.jsonl"
    command = ("bench", "--prompts", str(questions), *SHORT, "--json", "--resume", str(kept))
    whole = json.loads(call(*command).out)
    first, ran = list(runs), kept.read_bytes()
    lines = ran.splitlines(keepends=True)
    kinds = [msgspec.json.decode(line, type=KeptRun | KeptCosts) for line in lines]
    assert [type(one) for one in kinds] == [KeptCosts, KeptRun, KeptRun, KeptRun]
    # What a kill leaves: the first turn, and half of the second.
    kept.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    runs.clear()
    again = json.loads(call(*command).out)
    assert runs == first[1:]
    assert again["overall"]["turns"] == whole["overall"]["turns"] == 3
    assert again["overall"]["tokens_per_loop"] == whole["overall"]["tokens_per_loop"]


def test_nothing_is_measured_anew_where_all_is_kept(call, runs, questions, tmp_path, monkeypatch):
    kept = tmp_path / "kept.jsonl"
    command = ("bench", "--prompts", str(questions), *SHORT, "--json", "--resume", str(kept))
    first = call(*command)
    runs.clear()
    monkeypatch.setattr("app.studies.bench.method_costs", None)
    again = call(*command)
    assert (again.code, again.out, runs) == (0, first.out, [])


def test_methods_of_every_drafter_are_costed_each_for_itself(call, runs, questions, tmp_path):
    kept, own = tmp_path / "kept.jsonl", tmp_path / "home" / "config"
    own.mkdir(parents=True)
    small = "smollm2-135m-instruct"
    both = f"title: B, target: {small}, draft: {small}, head: {small}-head, method: ngram"
    (own / "models.yaml").write_text(f"pairs:\n  both: {{{both}}}\n", encoding="utf-8")
    methods = ("ngram", "draft-model", "cascade", "early-exit", "head", "head-tree")
    command = ("bench", "--pair", "both", "--prompts", str(questions), "--limit-per-category", "1",
               "--repeats", "1", "--max-new-tokens", "12", "--draft-lengths", "2,3", "--json",
               "--resume", str(kept), "--methods")  # fmt: skip
    done = call(*command, ",".join(methods))
    assert done.code == 0, done.err
    found = {(way["method"], way["draft_length"]): way for way in json.loads(done.out)["ways"]}
    for (method, length), way in found.items():
        # The tree of the default options: 3 guesses at the first level, 8 in all behind it.
        rows = 1 + (8 if method == "head-tree" else length)
        assert way["cost"]["whole"] == rows
        assert way["cost"]["seconds"][str(rows)] > 0
        assert (way["cost"]["draft_step"] is None) == (method == "ngram")
        if way["overall"]["conditional_acceptance"] is not None:
            assert way["account"] > 0
            assert way["prediction"] > 0
            assert way["missing"] == ""
    names = {method: found[method, 2]["cost"]["draft"] for method in methods}
    assert names["draft-model"] == names["cascade"] != names["early-exit"]
    assert names["head"] == names["head-tree"]
    lines = [msgspec.json.decode(line, type=KeptRun | KeptCosts)
             for line in kept.read_bytes().splitlines()]  # fmt: skip
    costed = [one for one in lines if isinstance(one, KeptCosts)]
    assert [one.settings.method for one in costed] == list(methods)
    # One method more: what is whole is not costed anew.
    again = call(*command, ",".join(("head", "ngram", "ngram-else-head")))
    assert again.code == 0, again.err
    costed = kept.read_bytes().splitlines()[len(lines) :]
    decoded = [msgspec.json.decode(line, type=KeptRun | KeptCosts) for line in costed]
    assert [one.settings.method for one in decoded if isinstance(one, KeptCosts)] == [
        "ngram-else-head"
    ]
    ways = {(way["method"], way["draft_length"]): way for way in json.loads(again.out)["ways"]}
    assert ways["head", 3]["cost"] == found["head", 3]["cost"]


def test_a_file_of_an_earlier_version_is_gone_on_from_with_costs_of_its_own(
    call, runs, questions, tmp_path
):
    kept = tmp_path / "kept.jsonl"
    command = ("bench", "--prompts", str(questions), *SHORT, "--json", "--resume", str(kept))
    call(*command)
    first, *others = kept.read_bytes().splitlines(keepends=True)
    new = msgspec.json.decode(first, type=KeptCosts)
    costs = msgspec.structs.replace(new.costs.costs, draft="another's", draft_step=9.0)
    old = {"type": "costs", "settings": new.settings, "costs": costs}
    kept.write_bytes(b"".join([msgspec.json.encode(old) + b"\n", *others]))
    runs.clear()
    done = call(*command)
    assert (done.code, runs) == (0, [])
    assert json.loads(done.out)["cost"]["draft_step"] is None


def test_other_settings_are_other_runs(call, runs, questions, tmp_path):
    kept = tmp_path / "kept.jsonl"
    command = ("bench", "--prompts", str(questions), *SHORT, "--json", "--resume", str(kept))
    call(*command)
    runs.clear()
    found = json.loads(call(*command, "--seed", "1").out)
    assert len(runs) == 3
    assert found["overall"]["turns"] == 3


def test_a_foreign_file_is_named_with_its_line(call, runs, questions, tmp_path):
    kept = tmp_path / "kept.jsonl"
    kept.write_text('{"a": 1}\n', encoding="utf-8")
    done = call("bench", "--prompts", str(questions), *SHORT, "--resume", str(kept))
    assert (done.code, runs) == (1, [])
    assert "line 1 is not a run of a bench" in done.err


def test_ctrl_c_keeps_what_is_done(call, runs, questions, tmp_path, monkeypatch):
    kept, watched = tmp_path / "kept.jsonl", Workbench.run

    def interrupted(self, name, settings, **how):
        if len(runs) == 1:
            signal.raise_signal(signal.SIGINT)
        watched(self, name, settings, **how)

    monkeypatch.setattr(Workbench, "run", interrupted)
    report = tmp_path / "part.json"
    done = call("bench", "--prompts", str(questions), *SHORT, "--json", "--resume", str(kept),
                "--report", str(report))  # fmt: skip
    assert done.code == 130
    assert json.loads(done.out)["overall"]["turns"] == 1
    assert json.loads(report.read_text(encoding="utf-8"))["overall"]["turns"] == 1
    assert len(kept.read_bytes().splitlines()) == 2  # the costs, and the one run


def test_a_conversation_that_outgrows_the_context_ends_with_that_said(call, runs, tmp_path):
    path = tmp_path / "long.jsonl"
    lines = [
        {"question_id": "long", "category": "c", "turns": ["short", "x" * 3000, "never"]},
        {"question_id": "next", "category": "c", "turns": ["short"]},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    done = call("bench", "--prompts", str(path), *SHORT, "--json")
    assert done.code == 0
    assert [one.prompt for one in runs] == ["short", "short"]
    found = json.loads(done.out)
    assert found["overall"]["turns"] == 2
    assert len(found["notes"]) == 1
    for said in (found["notes"][0], done.err):
        assert "long with ngram 2 ended before turn 2 of 3: The prompt has" in said
    assert "next with ngram 2 (3 of 4 runs done" in done.err


def test_progress_says_what_is_left_once_there_is_a_basis():
    shown, now = [], [100.0]
    remaining = Remaining(shown.append, lambda: now[0])
    remaining.show(Progress("loading"))
    for done in (3, 4, 6):  # three were kept; then one run took 10 s, and two took 50 s
        remaining.show(Progress("a", done, 10, "runs"))
        now[0] += {3: 10.0, 4: 50.0, 6: 0.0}[done]
    assert [one.stage for one in shown] == [
        "loading",
        "a (3 of 10 runs done)",
        "a (4 of 10 runs done, about 60 s left)",
        "a (6 of 10 runs done, about 80 s left)",
    ]


IMPORTS = {
    "humaneval.jsonl": '{"task_id": "HumanEval/0", "prompt": "def f():", "entry_point": "f"}\n',
    "plain.txt": "First prompt\n---\nSecond prompt\n",
    "table.csv": "id,question,category\n1,What is it?,a\n2,Why?,b\n",
}


@pytest.mark.parametrize(
    ("name", "more", "prompts"),
    [
        ("humaneval.jsonl", (), ["def f():"]),
        ("plain.txt", (), ["First prompt", "Second prompt"]),
        ("table.csv", ("--column", "question"), ["What is it?", "Why?"]),
    ],
)
def test_files_of_every_kind(call, runs, tmp_path, name, more, prompts):
    path = tmp_path / name
    path.write_text(IMPORTS[name], encoding="utf-8")
    done = call("bench", "--prompts", str(path), *more, *SHORT, "--json")
    assert done.code == 0, done.err
    assert [one.prompt for one in runs] == prompts


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"turns": ["x"]}\n{"turns": 3}\n', "line 2"),
        ("a.jsonl", '{"turns": ["x"]}\nno JSON\n', "line 2"),
        ("a.csv", 'prompt\nx\n"open\n', "line 3"),
        ("a.csv", "one,two\nx,y\n", "which column"),
        ("a.txt", "\n\n", "holds no prompt"),
        ("a.bin", "x", "does not end like a file of prompts"),
    ],
)
def test_a_bad_file_is_named_with_its_line(call, runs, tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    done = call("bench", "--prompts", str(path), *SHORT)
    assert (done.code, done.out, runs) == (1, "", [])
    assert said in done.err


def test_the_shipped_sets_are_run_where_no_file_is_named(call, runs):
    done = call("bench", *SHORT, "--limit-per-category", "1", "--json", "--max-new-tokens", "2")
    categories = json.loads(done.out)["categories"]
    assert set(categories) == {"chat", "code", "summarise", "edit", "reasoning", "translation"}


def test_a_report_that_cannot_be_written_is_told_before_anything_runs(call, runs, questions):
    done = call("bench", "--prompts", str(questions), *SHORT, "--report", "bench.doc")
    assert (done.code, runs) == (1, [])
    assert "suffix" in done.err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("ngram,head-tree", "--rule", "block", "--temperature", "1"), "branch"),
        (("ngram,head-tree", "--draft-length-policy", "best"), "branch"),
        (("ngram,head", "--rule", "fly", "--rule-option", "window=2"), "drafts longer than 2"),
        (("ngram,draft-model",), "'embedded' has no draft model"),
        (("ngram,head", "--pair", "embedded-nf4-draft"), "'embedded-nf4-draft' has no draft head"),
        (("ngram,mtp",), "multi-token prediction"),
    ],
)
def test_a_way_that_cannot_be_run_is_told_before_anything_runs(
    call, runs, questions, monkeypatch, asked, said
):
    monkeypatch.setattr("app.studies.bench.lane_costs", None)
    done = call("bench", "--prompts", str(questions), "--draft-lengths", "2", "--methods", *asked)
    assert (done.code, done.out, runs) == (1, "", [])
    assert said in done.err
