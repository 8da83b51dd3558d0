"""vLLM's words on the command line, and set-ups for other programs."""

import json

from recorded import run_record

from app.reports import write_report
from app.reports.bench_report import write_bench_report
from app.reports.bench_summary import summarise_bench

SAID = ("run", "--prompt", "Hello")
NGRAM = '{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}'


def test_vllms_words_reach_the_settings(call, workbench):
    more = ', "draft_tensor_parallel_size": 1, "rejection_sample_method": "block"}'
    done = call(*SAID, "--speculative-config", NGRAM[:-1] + more)
    assert done.code == 0, done.err
    found = workbench.settings
    assert (found.pair, found.method, found.draft_length) == ("embedded", "ngram", 5)
    assert (found.rule, found.draft_length_policy) == ("block", "fixed")
    assert found.method_options == {"shortest": 4, "longest": 4, "match": "first"}
    assert "Speculative config: draft_tensor_parallel_size: 1 has no effect here" in done.err


def test_a_draft_of_the_catalogue_brings_its_pair(call, workbench):
    config = '{"model": "smollm2-135m-instruct", "num_speculative_tokens": 2}'
    done = call(*SAID, "--speculative-config", config, "--temperature", "0")
    assert done.code == 0, done.err
    assert (workbench.settings.pair, workbench.settings.method) == (
        "embedded-nf4-draft", "draft-model",
    )  # fmt: skip
    assert "The pair is embedded-nf4-draft." in done.err


def test_vllms_words_and_flags_of_their_own_exclude_each_other(call):
    for flag in (("--method", "ngram"), ("--draft-length", "0"), ("--rule", "exact"),
                 ("--option", "shortest=2"), ("--draft-length-policy", "best")):  # fmt: skip
        done = call(*SAID, "--speculative-config", NGRAM, *flag)
        assert done.code == 2
        assert "--speculative-config" in done.err


def test_what_cannot_be_honoured_is_a_problem(call):
    done = call(*SAID, "--speculative-config", '{"method": "ngram", "temperature": 0.5}')
    assert done.code == 1
    assert "temperature is a sampling parameter" in done.err
    assert "--temperature" in done.err


def test_a_run_tells_its_set_up_for_other_programs_when_asked(call, workbench):
    assert "vllm serve" not in call(*SAID).out
    done = call(*SAID, "--use-elsewhere")
    assert "vLLM (0.33.0)" in done.out
    for word in ("\nvllm serve ", "\nllama-server ", "    prompt_lookup_num_tokens="):
        assert word in done.out
    told = json.loads(call(*SAID, "--json").out)["elsewhere"]
    assert [one["program"] for one in told] == ["vLLM", "llama.cpp", "transformers"]


def test_a_report_tells_its_set_up(call, tmp_path):
    (path,) = write_report(run_record(), tmp_path / "run.json", overwrite=False)
    done = call("elsewhere", str(path))
    assert done.code == 0
    assert done.out.count("path/to/target") > 2
    one = call("elsewhere", str(path), "--program", "vllm").out
    assert "vllm serve" in one
    assert "llama-server" not in one
    (told,) = json.loads(call("elsewhere", str(path), "--program", "vLLM", "--json").out)
    assert told["text"].splitlines()[0] in one
    wrong = call("elsewhere", str(path), "--program", "ollama")
    assert wrong.code == 1
    assert "vLLM, llama.cpp, transformers" in wrong.err


def test_a_bench_tells_the_set_up_of_its_best_way(call, tmp_path):
    (run,) = write_report(run_record(draft_length=6), tmp_path / "run.json", overwrite=False)
    summary = summarise_bench([("p", "a", run_record(draft_length=6))])
    (path,) = write_bench_report(summary, tmp_path / "bench.json")
    done = call("elsewhere", str(path))
    assert done.code == 0, done.err
    assert done.out == call("elsewhere", str(run)).out
    one = call("elsewhere", str(path), "--program", "vllm").out
    assert "vllm serve" in one
    assert "llama-server" not in one


def test_a_bench_of_an_earlier_version_says_what_to_do(call, tmp_path):
    told = json.loads(summarise_bench([("p", "a", run_record(draft_length=6))]).json())
    del told["elsewhere"]
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    done = call("elsewhere", str(path))
    assert (done.code, done.out) == (1, "")
    assert "Its best way was ngram with draft length 6" in done.err
    path.write_bytes(b"\xff{}")
    assert call("elsewhere", str(path)).code == 1


def test_a_bench_takes_vllms_words(call, monkeypatch):
    from app.cli.commands import bench

    asked = {}

    def study(catalogue, prompts, ways, *, settings, **rest):
        asked.update(ways=ways, settings=settings)
        return 0

    monkeypatch.setattr(bench, "run_bench_study", study)
    done = call("bench", "--speculative-config", NGRAM)
    assert done.code == 0, done.err
    assert asked["ways"] == [("ngram", 5)]
    assert asked["settings"].method_options["longest"] == 4
    both = call("bench", "--speculative-config", NGRAM, "--methods", "ngram")
    assert both.code == 2
