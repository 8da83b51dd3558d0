"""`foretoken run`: exit codes, pure JSON, partial reports, and text that stays text."""

import io
import json

import pytest
from recorded import HOSTILE, costed_events, hostile_record, lossy_record, run_events, started

from app.cli.token_stream import replay
from app.reports import read_record
from app.run.events import At, ConditionsSeen, LaneEnded, Progress, RunEnded
from app.run.flags import Flag
from app.run.problems import Cancelled, Problem

SAID = ("run", "--prompt", "Hello")


def test_a_run_streams_both_lanes_and_ends_with_a_table(call, workbench):
    done = call(*SAID)
    assert done.code == 0
    assert done.err == ""
    assert done.out.count("<1><2><3><4><5>") == 2
    for word in ("2.00× (one pair, no spread)", "50.0 %", "Both lanes wrote the same 5 tokens.",
                 "Lossless", "1.00 tokens/s"):  # fmt: skip
        assert word in done.out


def test_a_run_ends_with_whether_it_pays_and_what_to_mind(call, workbench):
    *events, end = costed_events()
    workbench.events = [*events, ConditionsSeen("r", (Flag("battery"),)), end]
    done = call(*SAID)
    assert done.code == 0
    for word in ("pays: 1.71× (one pair, no spread), predicted best draft length 2, not tried",
                 "Break-even acceptance",
                 "0.20 single steps (150.00 ms)", "the target's passes", "900.00",
                 "speculative: chunk gap", "caution: battery",
                 "Caution: The machine ran on its battery, which may slow it."):  # fmt: skip
        assert word in done.out
    told = json.loads(call(*SAID, "--json").out)
    assert told["worth"]["verdict"].startswith("pays: 1.71×")


def test_defaults_are_the_catalogues(call, workbench):
    call(*SAID)
    settings = workbench.settings
    found = (settings.pair, settings.method, settings.draft_length)
    assert found == ("embedded", "ngram-else-head", 8)
    options = {"shortest": 2, "longest": 5, "match": "last", "head_length": 2}
    assert settings.method_options == options
    assert (settings.order, settings.detail, settings.baseline) == ("alternated", "light", True)


def test_every_flag_reaches_the_settings(call, workbench, tmp_path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_bytes("\ufeffTwo\nlines 🚫".encode())
    done = call(
        "run", "--pair", "embedded-nf4-draft", "--method", "ngram", "--draft-length", "7",
        "--prompt-file", str(prompt), "--system", "be short", "--max-new-tokens", "9",
        "--precision", "bf16", "--draft-precision", "nf4", "--device", "cpu",
        "--temperature", "0.5", "--top-k", "3", "--top-p", "0.9", "--min-p", "0.1",
        "--repetition-penalty", "1.1", "--presence-penalty", "0.2", "--seed", "42",
        "--repeats", "2", "--rule", "lenience", "--rule-option", "lenience=0.25",
        "--stop", "a", "--stop", "b",
        "--draft-length-policy", "entropy", "--draft-length-option", "factor=0.5",
        "--option", "shortest=3", "--context-length", "99", "--no-baseline", "--raw",
        "--ignore-end-of-text", "--detail", "full",
        "--draft-device", "cuda:1", "--allow-offload", "--passes", "eager",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = workbench.settings
    assert found.prompt == "Two\nlines 🚫"
    assert (found.pair, found.method, found.draft_length) == ("embedded-nf4-draft", "ngram", 7)
    assert (found.system, found.max_new_tokens, found.stop_strings) == ("be short", 9, ("a", "b"))
    assert (found.precision, found.draft_precision, found.device) == ("bf16", "nf4", "cpu")
    assert (found.draft_device, found.allow_offload) == ("cuda:1", True)
    assert found.passes == "eager"
    sampling = found.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.5, 3, 0.9)
    assert (sampling.min_p, sampling.repetition_penalty, sampling.seed) == (0.1, 1.1, 42)
    assert (sampling.presence_penalty, found.repetitions, found.rule) == (0.2, 2, "lenience")
    assert found.rule_options == {"lenience": 0.25}
    assert found.draft_length_policy == "entropy"
    assert found.draft_length_options == {"factor": 0.5, "threshold": 0.4}
    assert found.method_options == {"shortest": 3, "longest": 5, "match": "last"}
    assert (found.context_length, found.baseline, found.raw) == (99, False, True)
    assert (found.ignore_end_of_text, found.detail) == (True, "full")


def test_a_preset_fills_in_what_is_not_given(call, workbench):
    ngram = (*SAID, "--method", "ngram", "--method-preset")
    call(*ngram, "transformers")
    found = workbench.settings
    assert found.method_options == {"shortest": 1, "longest": 2, "match": "first"}
    assert found.draft_length == 10
    call(*ngram, "transformers", "--option", "longest=4", "--draft-length", "3")
    found = workbench.settings
    assert found.method_options == {"shortest": 1, "longest": 4, "match": "first"}
    assert found.draft_length == 3
    call(*ngram, "vllm")
    assert workbench.settings.method_options["shortest"] == 5
    assert workbench.settings.draft_length == 8  # the pair's own


@pytest.fixture
def own_pair(tmp_path):
    """A pair of the user's own, which sets an option of its method."""
    home = tmp_path / "home" / "config"
    home.mkdir(parents=True)
    (home / "models.yaml").write_text(
        "pairs:\n  own:\n    title: Own\n    target: smollm2-135m-instruct\n    method: ngram\n"
        "    method_options: {shortest: 3, match: first}\n"
    )
    return ("--pair", "own")


def test_a_pairs_own_options_hold_for_what_is_not_given(call, workbench, own_pair):
    call(*SAID, *own_pair)
    assert workbench.settings.method_options == {"shortest": 3, "longest": 5, "match": "first"}
    call(*SAID, *own_pair, "--option", "match=last")
    assert workbench.settings.method_options == {"shortest": 3, "longest": 5, "match": "last"}
    call(*SAID, *own_pair, "--method-preset", "transformers")
    assert workbench.settings.method_options == {"shortest": 1, "longest": 2, "match": "first"}
    call(*SAID, *own_pair, "--method", "early-exit")
    assert workbench.settings.method_options["exit_layer"] == 0


@pytest.mark.parametrize("method", ["ngram", "head"])
def test_a_preset_that_there_is_not_is_told_of(method, call, workbench):
    done = call(*SAID, "--method", method, "--method-preset", "sglang")
    assert done.code == 1
    assert "preset" in done.err


def test_json_is_one_object_and_nothing_else_on_stdout(call, workbench):
    workbench.before = staticmethod(lambda report, pause: report(Progress("Loading")))
    done = call(*SAID, "--json")
    assert done.code == 0
    told = json.loads(done.out)
    assert done.out.count("\n") == 1
    assert told["token_ids"] == [1, 2, 3, 4, 5]
    assert "Loading" in done.err


@pytest.mark.parametrize(
    "wrong",
    [
        ["run"],
        ["run", "--prompt", "a", "--prompt-file", "b"],
        ["run", "--prompt", "a", "--what"],
        ["run", "--prompt", "a", "--top-k", "many"],
        ["run", "--prompt", "a", "--precision", "int3"],
        ["run", "--prompt", "a", "--option", "shortest"],
        ["report"],
        ["walk"],
    ],
)
def test_wrong_usage_is_2(wrong, call, workbench):
    done = call(*wrong)
    assert (done.code, done.out, workbench.settings) == (2, "", None)


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--pair", "none"], "embedded"),
        (["--method", "magic"], "ngram"),
        (["--temperature", "nan"], "temperature"),
        (["--top-p", "0"], "top-p"),
        (["--draft-length", "-1"], "draft length"),
        (["--option", "longest=many"], "Longest match"),
        (["--option", "widest=3"], "shortest"),
        (["--stop", ""], "stop string"),
        (["--report", "nowhere/at/all.json"], "does not exist"),
        (["--report", "run.doc"], ".json, .csv, .md"),
        (["--report", "a.json", "--report", "./a.json"], "once"),
        (["--report", "a.csv", "--report", "a.rounds.csv"], "once"),
        (["--report", "a.csv", "--report", "a.run.csv"], "once"),
    ],
)
def test_a_problem_is_1_before_anything_runs(flags, word, call, workbench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(*SAID, *flags)
    assert (done.code, done.out, workbench.settings) == (1, "", None)
    assert word in done.err
    assert "Traceback" not in done.err


def test_a_prompt_that_cannot_be_read_is_a_problem(call, workbench, tmp_path):
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    assert "UTF-8" in call("run", "--prompt-file", str(tmp_path / "latin")).err
    assert call("run", "--prompt-file", str(tmp_path / "none")).code == 1
    assert "Unicode" in call("run", "--prompt", "caf\udce9").err


def test_a_prompt_file_is_read_as_it_is(call, workbench, tmp_path, monkeypatch):
    # Line ends are tokens too; only the mark of the encoding is no part of the text.
    (tmp_path / "dos").write_bytes(b"\xef\xbb\xbfa\r\nb \x00\n")
    call("run", "--prompt-file", str(tmp_path / "dos"))
    assert workbench.settings.prompt == "a\r\nb \x00\n"
    # Standard input is UTF-8 like a file, whatever the terminal's encoding.
    piped = io.TextIOWrapper(io.BytesIO("é\r\n".encode()), encoding="ascii")
    monkeypatch.setattr("sys.stdin", piped)
    call("run", "--prompt-file", "-")
    assert workbench.settings.prompt == "é\r\n"


class Unwritable(io.StringIO):
    """A stream on a full disk."""

    def write(self, text):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_results_that_cannot_be_written_are_a_problem(
    flags, call, workbench, tmp_path, monkeypatch
):
    monkeypatch.setattr("sys.stdout", Unwritable())
    done = call(*SAID, *flags, "--report", str(tmp_path / "a.json"))
    assert done.code == 1
    assert "No space left on device" in done.err
    assert "wrong inside" not in done.err
    assert (tmp_path / "a.json").exists()


def test_remarks_that_cannot_be_written_stop_nothing(call, workbench, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr", Unwritable())
    done = call(*SAID, "--json", "--report", str(tmp_path / "a.json"))
    assert done.code == 0
    assert json.loads(done.out)["outcome"] == "finished"


def test_a_reader_that_goes_ends_the_run_but_not_its_report(call, workbench, tmp_path, monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

        def fileno(self):
            return 1

    monkeypatch.setattr("sys.stdout", Closed())
    monkeypatch.setattr("os.dup2", lambda old, new: None)  # rich puts a null device in its place
    assert call(*SAID, "--report", str(tmp_path / "a.json")).code == 1
    record = json.loads((tmp_path / "a.json").read_text())
    assert (record["outcome"], "nobody reads" in record["message"]) == ("failed", True)


def test_a_problem_while_loading_is_1_with_its_remedy(call, workbench):
    def fail(report, pause):
        raise Problem("No disk is left.", "Free some.")

    workbench.before = staticmethod(fail)
    done = call(*SAID, "--json")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == ["No disk is left.", "Free some."]


def test_a_run_that_failed_keeps_its_part(call, workbench, tmp_path):
    workbench.events = [*run_events()[:4], RunEnded("r", "failed", "It broke.", "Mend it.")]
    done = call(*SAID, "--json", "--report", str(tmp_path / "a.json"))
    assert done.code == 1
    assert json.loads(done.out)["outcome"] == "failed"
    assert "It broke.\nMend it." in done.err
    assert read_record(tmp_path / "a.json").message == "It broke."


def test_ctrl_c_before_the_run_is_130_and_tells_of_the_report_that_was_asked_for(
    call, workbench, tmp_path
):
    def stop(report, pause):
        raise Cancelled

    workbench.before = staticmethod(stop)
    done = call(*SAID)
    assert (done.code, "report" in done.err) == (130, False)
    done = call(*SAID, f"--report={tmp_path / 'a.json'}")
    assert done.code == 130
    assert "No report is written: the run had not begun.\nStopped." in done.err
    assert not (tmp_path / "a.json").exists()


def test_an_empty_prompt_is_told_before_anything_is_loaded(call, workbench):
    for prompt in ("", " \n"):
        done = call("run", "--prompt", prompt)
        assert (done.code, workbench.settings) == (1, None)
        assert "The prompt is empty." in done.err
    assert call("run", "--prompt", "", "--raw").code == 0


def test_a_cancelled_run_is_130_with_its_partial_reports(call, workbench, tmp_path):
    at = At("r", "speculative")
    cut = [LaneEnded(at, "cancelled"), RunEnded("r", "cancelled")]
    workbench.events = [*run_events()[:5], *cut]
    paths = [tmp_path / name for name in ("a.json", "a.csv", "a.md")]
    done = call(*SAID, "--json", *(f"--report={path}" for path in paths))
    assert done.code == 130
    told = json.loads(done.out)
    assert (told["outcome"], told["finish"]) == ("cancelled", "cancelled")
    assert told["token_ids"] == [1, 2, 3]
    assert told["baseline"] is told["same_text"] is told["decode_speedup"] is None
    assert read_record(paths[0]).outcome == "cancelled"
    beside = [tmp_path / name for name in ("a.rounds.csv", "a.run.csv")]
    assert all(path.exists() for path in [*paths, *beside])


def test_a_fault_is_70_with_its_traceback_in_the_log(call, workbench, tmp_path):
    def fault(index, pause):
        if index == 4:
            raise ZeroDivisionError("a fault")

    workbench.at = staticmethod(fault)
    done = call(*SAID, "--report", str(tmp_path / "a.json"))
    assert done.code == 70
    assert "Traceback" not in done.err
    (log,) = (tmp_path / "home").rglob("foretoken.log")
    assert "ZeroDivisionError: a fault" in log.read_text(encoding="utf-8")
    assert read_record(tmp_path / "a.json").outcome == "failed"


def test_hostile_text_is_shown_and_never_acted_on(call, workbench):
    record = hostile_record()
    asked = {"pair": record.settings.pair, "prompt": record.settings.prompt}
    lane = record.repetitions("speculative")[0]
    workbench.events = [started(**asked), *replay(lane), RunEnded("r", "finished")]
    done = call(*SAID)
    assert done.code == 0, done.err
    assert not set(done.out) & {"\x1b", "\x9b", "\x07", "\r", "\0"}
    for text in HOSTILE:
        if text.isascii() and text.isprintable():
            assert text in done.out


def test_a_stop_string_is_never_shown(call, workbench):
    events = run_events()
    ended = next(i for i, each in enumerate(events) if isinstance(each, LaneEnded))
    events[ended:] = [
        LaneEnded(At("r", "speculative"), "stop string", dropped=4),
        RunEnded("r", "finished"),
    ]
    workbench.events = events
    done = call(*SAID, "--stop", "><5", "--no-baseline")
    assert "<1><2><3><4\n" in done.out
    assert "<5" not in done.out


def test_rejected_guesses_are_shown_when_asked_for(call, workbench):
    assert "<8>" not in call(*SAID).out
    assert "<4>[-<8>-][-<9>-]<5>" in call(*SAID, "--show-rejected").out


def test_colours_have_a_second_cue_and_can_be_turned_off(call, workbench, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    coloured = call(*SAID, "--show-rejected").out
    assert "\x1b[32m<2>" in coloured
    assert "\x1b[4;33m<5>" in coloured
    assert "\x1b[9;31m<8>" in coloured
    assert "\x1b[1;53;36m<3>" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = call(*SAID, "--show-rejected").out
    assert "\x1b[4m<5>" in plain
    assert "\x1b[9m<8>" in plain
    assert "[3" not in plain


def test_a_lossy_run_is_marked_in_the_terminal(call, workbench):
    record = lossy_record()
    workbench.events = [
        started(**{n: getattr(record.settings, n) for n in ("rule", "sampling")}),
        *run_events()[1:],
    ]
    out = call(*SAID).out
    assert out.count("LOSSY") >= 2
    assert "changes the target's distribution" in out
    assert "Kept by leniency" in out
    workbench.events = None
    assert "LOSSY" not in call(*SAID).out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--rule", "vibes"), "There is no rule 'vibes'"),
        (("--draft-length-policy", "vibes"), "There is no draft length policy 'vibes'"),
        (("--rule", "lenience", "--rule-option", "lenience=0"), "from 0.01 to 1"),
        (("--rule-option", "lenience=0.5"), "Rule 'exact' has no option 'lenience'"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(call, workbench, asked, said):
    done = call(*SAID, *asked)
    assert done.code != 0
    assert said in done.err
