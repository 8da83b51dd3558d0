"""`foretoken bench --random-model` on a CPU: one JSON object, tables, reports, refusals, a stop."""

import json
import signal

import pytest

from app.studies import random_bench

TINY = ("bench", "--random-model", "tiny", "--device", "cpu", "--max-new-tokens", "8")
SHORT = (*TINY, "--precision", "fp32", "--repeats", "1")


def test_one_json_object_tells_figures_goals_and_what_they_were_made_of(call):
    done = call(*TINY, "--precision", "nf4", "--repeats", "2", "--alpha", "0.5",
                "--draft-lengths", "3", "--seed", "7", "--json")  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["random_weights"], found["acceptance"]) == (True, "simulated")
    wanted = found["measured"]["wanted"]
    assert wanted == {
        "target": "tiny", "draft": "tiny-draft", "precision": "nf4", "device": "cpu",
        "passes": "auto", "acceptance": 0.5, "draft_length": 3, "prompt": 64, "tokens": 8,
        "repeats": 2, "seed": 7,
    }  # fmt: skip
    assert sorted(map(int, found["measured"]["passes"])) == list(range(1, 10))
    assert len(found["measured"]["simulated"]) == 2
    figures = found["figures"]
    limit = found["measured"]["bandwidth"] / found["measured"]["read_bytes"]
    assert figures["limit"]["value"] == pytest.approx(limit)
    assert figures["idle_share"]["value"] is None
    assert figures["share_of_limit"]["verdict"] == "not measured"
    assert figures["overhead_plain"]["verdict"] in ("met", "not met")
    assert "simulated acceptance, α 0.5, γ 3" in figures["simulated_speedup"]["label"]
    assert figures["simulated_speedup"]["verdict"] == "not measured"
    assert "making tiny in nf4 of random weights" in done.err
    assert "decoding in every way, in turns" in done.err


def test_tables_and_reports_hold_the_same(call, tmp_path):
    page, data = tmp_path / "random.md", tmp_path / "random.json"
    done = call(*SHORT, "--report", str(page), "--report", str(data))
    assert done.code == 0, done.err
    written, kept = page.read_text(encoding="utf-8"), json.loads(data.read_text(encoding="utf-8"))
    for text in (done.out, written):
        for said in ("simulated acceptance", "not measured", "Definitions", "Cost of a pass"):
            assert said in text
        assert kept["figures"]["simulated_kept"]["label"].split(" (")[0] in text
    assert "# A bench of random weights: tiny" in written
    assert f"Written: {page}" in done.err
    assert "The weights are random" in done.out


def test_without_a_draft_that_is_said(call):
    done = call(*SHORT, "--random-draft", "none")
    assert done.code == 0, done.err
    assert "There is no draft" in done.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--prompts", "p.jsonl"), "--prompts cannot be given with --random-model"),
        (("--pair", "embedded", "--methods", "ngram"), "--pair, --methods cannot be given"),
        (("--temperature", "0"), "--temperature cannot be given"),
        (("--resume", "f"), "--resume cannot be given"),
        (("--draft-lengths", "2,4"), "'2,4' is not one draft length"),
        (("--alpha", "1.5"), "alpha is 1.5"),
        (("--prompt-tokens", "0"), "prompt tokens is 0"),
        (("--prompt-tokens", "2041"), "A prompt of 2041 and a text of 8 tokens are longer"),
        (("--random-draft", "qwen-0.5b"), "cannot draft for it"),
        (("--report", "x.html"), "not written as x.html"),
        (("--report", "/nowhere/x.md"), "does not exist"),
    ],
)
def test_what_does_not_go_together_is_refused(call, given, said):
    done = call(*SHORT, *given)
    assert done.code == 1
    assert said in done.err


def test_a_device_that_is_not_there_is_refused(call):
    done = call("bench", "--random-model", "tiny", "--device", "cuda:99")
    assert (done.code, done.out) == (1, "")
    assert "no device 'cuda:99'" in done.err


@pytest.mark.parametrize("flag", ["--random-draft", "--prompt-tokens", "--alpha"])
def test_flags_of_random_weights_ask_for_a_shape(call, flag):
    done = call("bench", flag, "1")
    assert done.code == 1
    assert f"{flag} asks for random weights" in done.err


@pytest.mark.parametrize(("stop_at", "shown"), [(1, False), (3, True)])
def test_ctrl_c_shows_the_repetitions_that_were_whole(call, monkeypatch, stop_at, shown):
    turns, generated = [], random_bench.generated

    def interrupted(*given, **how):
        turns.append(1)
        if len(turns) == stop_at:
            signal.raise_signal(signal.SIGINT)
        return generated(*given, **how)

    monkeypatch.setattr(random_bench, "generated", interrupted)
    done = call(*TINY, "--precision", "fp32", "--repeats", "3", "--json")
    assert done.code == 130
    assert bool(done.out) == shown
    if shown:
        assert len(json.loads(done.out)["measured"]["plain"]) == 1
