"""Where reports go: known suffixes, whole files, safe names; Markdown that text cannot leave."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some
from recorded import HOSTILE, costed_record, hostile_record, run_record

from app.reports import FORMATS, check_report_path, suggested_name, write_report
from app.reports.file_names import slug
from app.reports.plain_text import fenced, inline, pictured
from app.run.events import ConditionsSeen
from app.run.flags import Flag
from app.run.problems import Problem


@pytest.mark.parametrize("name", ["run", "run.txt", "run.json.gz", ".json"])
def test_an_unknown_suffix_is_refused_and_the_known_are_named(name, tmp_path):
    with pytest.raises(Problem) as refused:
        write_report(run_record(), tmp_path / name, overwrite=False)
    assert all(suffix in refused.value.remedy for suffix in FORMATS)


@pytest.mark.parametrize("name", ["a.json", "a.CSV", "a.b.csv", "a.md"])
def test_reports_are_whole_and_leave_nothing_beside(name, tmp_path):
    written = write_report(run_record(), tmp_path / name, overwrite=False)
    assert sorted(tmp_path.iterdir()) == sorted(written)
    with pytest.raises(Problem, match="there already"):
        write_report(run_record(), tmp_path / name, overwrite=False)
    assert write_report(run_record(), tmp_path / name, overwrite=True) == written


@pytest.mark.parametrize("beside", ["a.rounds.csv", "a.run.csv"])
def test_a_file_beside_is_not_replaced_unasked(beside, tmp_path):
    (tmp_path / beside).write_text("mine", encoding="utf-8")
    with pytest.raises(Problem):
        write_report(run_record(), tmp_path / "a.csv", overwrite=False)
    assert not (tmp_path / "a.csv").exists()


def test_a_missing_folder_and_a_folder_as_file_are_refused(tmp_path):
    (tmp_path / "folder.md").mkdir()
    for path in (tmp_path / "none" / "a.json", tmp_path / "folder.md"):
        with pytest.raises(Problem):
            check_report_path(path, overwrite=True)


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.md"
    path.write_text("old", encoding="utf-8")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Problem, match="No space left"):
        write_report(run_record(), path, overwrite=True)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_half_a_character_is_a_problem_not_a_crash(suffix, tmp_path):
    record = run_record(prompt="\ud800", stop_strings=("\ud800",))
    with pytest.raises(Problem, match="half a character"):
        write_report(record, tmp_path / f"a{suffix}", overwrite=False)


@pytest.mark.parametrize(
    "text",
    [
        "Qwen/Qwen2.5: 7B?",
        "CON",
        "con.txt",
        "LPT1",
        "..",
        "trailing. ",
        "x" * 300,
        "",
        "日本",
        "a\0b",
    ],
)
def test_file_names_are_safe_everywhere(text):
    name = slug(text)
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,70}", name)
    assert not name.endswith(".")
    assert name.split(".")[0] not in {"con", "lpt1"}
    assert ".." not in name


def test_a_suggested_name_says_what_and_when():
    assert suggested_name(run_record()) == "pair-ngram-20260102-030405"


def test_markdown_tells_the_run_and_its_figures(tmp_path):
    (path,) = write_report(run_record(), tmp_path / "a.md", overwrite=False)
    text = path.read_text(encoding="utf-8")
    for word in ("2.00× (one pair, no spread)", "50.0 %", "re-quantised from Q4\\_1", "torch 2",
                 "Both lanes wrote the same 5 tokens.", "Guesses accepted / guesses made",
                 '"draft_length": 4', "<1><2><3><4><5>"):  # fmt: skip
        assert word in text
    assert "| Peak memory on the target's device |" in text


def test_markdown_says_whether_it_pays_and_what_to_mind(tmp_path):
    record = costed_record()
    record.apply(ConditionsSeen("r", (Flag("other load", "by another"),)))
    (path,) = write_report(record, tmp_path / "a.md", overwrite=False)
    text = path.read_text(encoding="utf-8")
    for word in ("Verdict: pays: 1.71× (one pair, no spread), predicted best draft length 2, "
                 "not tried, but the run was disturbed (other load): measure again on a quiet "
                 "machine.",
                 "caution: other load",
                 "> Caution: Something else used the device", "| Draft step | 0.20 single steps",
                 "| guessing | 700.00 | 0.00 |", "| baseline | time a token | 1000.00 |",
                 "Draft resident during baseline: no", "| Power limit | n/a |"):  # fmt: skip
        assert word in text


@given(some.text() | some.text(alphabet="`~\n #"))
def test_nothing_ends_a_fence_from_inside(text):
    first, *inside, last = fenced(text).split("\n")
    fence = first.removesuffix("text")
    assert last == fence
    assert not any(re.match(rf" {{0,3}}`{{{len(fence)},}}\s*$", line) for line in inside)


@given(some.text())
def test_inline_text_is_one_line_that_means_nothing(text):
    line = inline(text)
    assert "\n" not in line
    assert not re.search(r"(?<!\\)(?:\\\\)*[|<`*_\[]", line)


def test_a_hostile_markdown_report_keeps_its_shape(tmp_path):
    (path,) = write_report(hostile_record(), tmp_path / "a.md", overwrite=False)
    text = path.read_text(encoding="utf-8")
    assert "\x1b" not in text
    outside = re.sub(r"^(`{3,})text\n.*?\n\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert "<script" not in outside.replace("\\<", "")
    headings = [line for line in outside.split("\n") if line.startswith("#")]
    assert len(headings) == 1 + 10 + 3 + 1


@given(some.text() | some.sampled_from(HOSTILE))
def test_pictured_text_moves_no_cursor(text):
    shown = pictured(text)
    assert len(shown) == len(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
