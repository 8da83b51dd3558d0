"""Runs leave as a file and come back equal; no foreign file gets in."""

import json

import pytest
from recorded import hostile_record, run_record

from app.history import History, Imported, archive
from app.reports import write_report
from app.run import stored
from app.run.problems import Problem


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


@pytest.fixture
def other(tmp_path):
    with History(tmp_path / "other" / "history.sqlite") as opened:
        yield opened


@pytest.fixture
def exported(history, make, tmp_path):
    history.add(make("a", prompt="first"))
    history.add(hostile_record())
    history.tag("a", "Ünïcode")
    history.note("a", "two\nlines\u2028and more")
    file = tmp_path / "runs.jsonl"
    history.export(None, file)
    return file


def test_what_is_exported_comes_back_with_tags_and_notes(history, other, exported):
    assert other.import_(exported) == Imported(added=2, known=0)
    for run in ("a", "r"):
        assert other.get(run) == history.get(run)
        assert other.entry(run) == history.entry(run)
    for line in exported.read_bytes().split(b"\n")[:-1]:
        json.loads(line, parse_constant=refuse)


def test_what_is_known_stays_as_it_is(other, exported, make):
    other.add(make("a", prompt="mine"))
    assert other.import_(exported) == Imported(added=1, known=1)
    assert other.get("a").settings.prompt == "mine"
    assert other.entry("a").tags == ()
    assert other.import_(exported) == Imported(added=0, known=2)


def test_a_json_report_can_be_taken_in(history, tmp_path):
    (file,) = write_report(run_record(), tmp_path / "run.json", overwrite=False)
    assert history.import_(file) == Imported(added=1, known=0)
    assert history.get("r") == run_record()


def test_only_the_chosen_runs_leave(history, other, exported, tmp_path):
    history.export(["a"], tmp_path / "one.jsonl")
    other.import_(tmp_path / "one.jsonl")
    assert [entry.run for entry in other.search()] == ["a"]
    history.export([], tmp_path / "none.jsonl")
    assert other.import_(tmp_path / "none.jsonl") == Imported(0, 0)


def test_nothing_is_replaced_unasked_or_half_written(history, exported, make, tmp_path):
    before = exported.read_bytes()
    with pytest.raises(Problem, match="there already"):
        history.export(None, exported)
    with pytest.raises(Problem, match="no run"):
        history.export(["a", "unknown"], exported, overwrite=True)
    record = make("nan")
    record.lanes[0].repetitions[0].time_to_first_token = float("nan")
    history.add(record)
    with pytest.raises(Problem, match="no number"):
        history.export(None, exported, overwrite=True)
    assert exported.read_bytes() == before
    assert list(tmp_path.glob(".foretoken*")) == []
    history.export(["a"], exported, overwrite=True)
    assert exported.read_bytes() != before
    with pytest.raises(Problem, match="cannot be written"):
        history.export(None, tmp_path / "no folder" / "runs.jsonl")


TITLE = b'{"foretoken_history": 1}\n'


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "not JSON"),
        (b"PK\x03\x04 a zip", "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
        (b"[" * 100_000, "not a report"),
        (b"\xff\xfe", "not JSON"),
        (b'{"schema": NaN}', "not JSON"),
        (b"[]", "not a report"),
        (b'{"schema": 1}', "not a report"),
        (b'{"schema": 2}', "newer"),
        (b'{"schema": 0}', "the version that wrote it"),
        (b'{"foretoken_history": 2}\n', "newer"),
        (b'{"foretoken_history": 0}\n', "does not read"),
        (b'{"foretoken_history": "1"}\n', "not a report"),
        (TITLE + b"{}\n", "line 2, is not a report of a run"),
        (TITLE + b"\n", "line 2, is not JSON"),
        (TITLE + b"[" * 100_000, "line 2"),
        (TITLE + b'{"record": {"schema": 7}}\n', "line 2, has layout 7"),
    ],
)
def test_a_foreign_file_is_refused_with_a_reason(history, tmp_path, data, word):
    file = tmp_path / "foreign.jsonl"
    file.write_bytes(data)
    with pytest.raises(Problem, match=word):
        history.import_(file)
    assert history.count() == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"prompt_ids": [', '"prompt_ids": ["a",'),
        ('"prompt_ids": [5', '"prompt_ids": [NaN'),
        ('"top_p": 1.0', '"top_p": 1e999'),
        ('"prompt_ids": [5', '"prompt_ids": [1' + "0" * 40),
        ('"note": "', '"more": 1, "note": "'),
        ('"tags": ["', '"tags": ["", "'),
        ('"draft_length": 4', '"draft_length": "4"'),
        ('"prompt": "first"', '"prompt": "\\ud800"'),
    ],
)
def test_one_bad_run_keeps_the_whole_file_out(other, exported, old, new):
    text = exported.read_text(encoding="utf-8")
    title, *lines = text.split("\n")
    wrong = lines[0].replace(old, new, 1)
    assert wrong != lines[0]
    exported.write_text("\n".join([title, lines[1], wrong, ""]), encoding="utf-8", newline="")
    with pytest.raises(Problem):
        other.import_(exported)
    assert other.count() == 0


def test_a_huge_file_a_folder_and_a_missing_file_are_refused(other, exported, monkeypatch):
    for module in (archive, stored):
        monkeypatch.setattr(module, "LARGEST", 1000)
    with pytest.raises(Problem, match="too large"):
        other.import_(exported)
    for place in (exported.parent, exported.parent / "missing.json"):
        with pytest.raises(Problem, match="cannot be read"):
            other.import_(place)
