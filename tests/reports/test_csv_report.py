"""G03: spreadsheets and csv.reader get the same rows, and no cell is a formula."""

import csv
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from recorded import HOSTILE, TARGET, hostile_record, run_record

from app.reports import write_report
from app.reports.csv_report import ROUND_COLUMNS, TOKEN_COLUMNS, cell, text_of
from app.run.events import ConditionsSeen, Environment, ModelFacts
from app.run.flags import Flag
from app.run.settings import Message, RunSettings, Sampling

TEXTS = {
    *("pair", "prompt", "system", "continues", "method", "draft_length_policy", "rule"),
    *("order", "detail"),
    *("app", "python", "platform", "processor"),
    *("name", "folder", "precision_note", "attention", "rewind_note", "rows_note", "kernel"),
    "passes",
}
TEXTS_OR_NULL = {"precision", "draft_precision", "device", "draft_device", "driver"}
EVERYTHING = "".join(HOSTILE)
SETTINGS = RunSettings(
    pair=EVERYTHING,
    prompt="=1+1" + EVERYTHING,
    system="null",
    raw=True,
    earlier=(Message("user", EVERYTHING), Message("assistant", "␀ said")),
    continues="-r0",
    prompt_ids=(7, 0, 9),
    method="draft-model",
    method_options={"=longest": 3, "half": 0.5, "yes": True, "words": "-1"},
    draft_length=7,
    draft_length_policy="null",
    draft_length_options={"start": 3, "=words": "=1+1"},
    rule="greedy",
    rule_options={"threshold": 0.25, "reading": EVERYTHING},
    sampling=Sampling(0.7, 40, 0.95, 1e-05, 1.1, -0.5, -(2**63)),
    max_new_tokens=99,
    stop_strings=HOSTILE,
    ignore_end_of_text=True,
    precision="bf16",
    draft_precision=None,
    device="cuda:0",
    draft_device="-cpu",
    allow_offload=True,
    passes="fixed",
    context_length=4096,
    baseline=False,
    repetitions=3,
    order="interleaved",
    detail="full",
)
"""No field has its default but `draft_precision`."""


def rows_of(path):
    with open(path, encoding="utf-8-sig", newline="") as page:
        return list(csv.reader(page))


def facts_of(path):
    """The rows of the table to repeat a run by, as pairs of texts."""
    head, *rows = rows_of(path)
    assert head == ["name", "value"]
    return [(name, text_of(value)) for name, value in rows]


def rebuilt(facts, part, kind):
    """The struct that a part's rows tell of: fields of text as they stand, all others as JSON."""
    plain = {}
    for name, value in facts:
        first, *way = name.split(".")
        if first == part and way:
            holder = plain
            for inner in way[:-1]:
                holder = holder.setdefault(inner, {})
            text = way[-1] in TEXTS or (way[-1] in TEXTS_OR_NULL and value != "null")
            holder[way[-1]] = value if text else json.loads(value)
    return msgspec.convert(plain, kind)


def test_the_settings_tried_here_are_not_the_defaults():
    default = RunSettings("", "")
    same = [f for f in SETTINGS.__struct_fields__ if getattr(SETTINGS, f) == getattr(default, f)]
    assert same == ["draft_precision"]


@given(some.text() | some.text(alphabet="'=+-@\t\r\n␀0\x00"))
def test_a_cell_is_reversible_and_never_acts(text):
    made = cell(text)
    assert text_of(made) == text
    assert "\0" not in made
    assert not made.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_cells_come_back(text):
    assert text_of(cell(text)) == text


def test_hostile_texts_come_back_row_by_row(tmp_path):
    record = hostile_record()
    tokens, rounds, _ = write_report(record, tmp_path / "run.csv", overwrite=False)
    head, *rows = rows_of(tokens)
    assert tuple(head) == TOKEN_COLUMNS
    assert len(rows) == 1 + 2 * len(HOSTILE)
    assert [text_of(row[5]) for row in rows[1::2]] == list(HOSTILE)
    assert [text_of(row[7]) for row in rows[1::2]] == list(HOSTILE)
    assert {row[8] for row in rows[1::2]} == {"-0.5"}
    head, *rows = rows_of(rounds)
    assert tuple(head) == ROUND_COLUMNS
    stop = ROUND_COLUMNS.index("draft_stop")
    assert [text_of(row[stop]) for row in rows] == list(HOSTILE)


def test_files_begin_with_the_mark_that_spreadsheets_need(tmp_path):
    for file in write_report(run_record(), tmp_path / "run.csv", overwrite=False):
        assert file.read_bytes().startswith(b"\xef\xbb\xbf")
        assert b"\r\r\n" not in file.read_bytes()


def test_every_token_and_round_has_its_row(tmp_path):
    tokens, rounds, facts = write_report(run_record(), tmp_path / "run.csv", overwrite=False)
    names = [file.name for file in (tokens, rounds, facts)]
    assert names == ["run.csv", "run.rounds.csv", "run.run.csv"]
    assert rows_of(tokens)[1:8] == [
        ["speculative", "0", "", "0", "1", "<1>", "first", "", "", "", "", "", "", "", ""],
        ["speculative", "0", "0", "1", "2", "<2>", "accepted", "ngram", "", "", "", "", "", "", ""],
        ["speculative", "0", "0", "2", "3", "<3>", "bonus", "", "", "", "", "", "", "", ""],
        ["speculative", "0", "1", "3", "4", "<4>", "accepted", "ngram", "0.5", "1.0", "0.5",
         "0.25", "rule", "", ""],
        ["speculative", "0", "1", "4", "5", "<5>", "corrected", "", "0.75", "", "", "", "", "", ""],
        ["speculative", "0", "1", "", "8", "<8>", "rejected", "ngram", "-0.0", "1.0", "0.0",
         "0.5", "", "", ""],
        ["speculative", "0", "1", "", "9", "<9>", "ignored", "ngram", "", "", "", "", "", "", ""],
    ]  # fmt: skip
    named = [dict(zip(ROUND_COLUMNS, row, strict=True)) for row in rows_of(rounds)[1:]]
    assert named[1] == {
        "lane": "speculative", "repetition": "0", "round": "1", "limit": "4",
        "limited_by": "draft length", "drafted": "3", "accepted": "1", "rejected": "1",
        "ignored": "1", "discarded": "0", "corrected": "1", "bonus": "0", "plain": "0",
        "committed": "2", "draft_prompt_s": "0.0", "draft_s": "0.25", "verify_s": "0.75",
        "decide_s": "0.0", "rest_s": "0.0", "draft_calls_s": "0.0", "total_s": "1.0",
        "draft_stop": "no match", "nodes": "",
    }  # fmt: skip
    assert sum(row["lane"] == "baseline" for row in named) == 4


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        RunSettings(pair="pair", prompt=""),
        *(RunSettings(pair="p", prompt=text, stop_strings=(text,)) for text in (*HOSTILE, "null")),
    ],
)
def test_a_reader_can_repeat_the_run(settings, tmp_path):
    record = run_record(**{name: getattr(settings, name) for name in settings.__struct_fields__})
    *_, path = write_report(record, tmp_path / "run.csv", overwrite=False)
    facts = facts_of(path)
    assert rebuilt(facts, "settings", RunSettings) == settings
    assert not any(value.startswith(("=", "+", "-", "@")) and not number(value)
                   for row in rows_of(path) for value in row)  # fmt: skip


def number(value):
    try:
        return float(value) is not None
    except ValueError:
        return False


def test_the_machine_and_the_models_are_told_in_full(tmp_path):
    record = run_record()
    record.environment = Environment(
        "0.1", "3.11.9", "Linux x86_64", "a processor", "a card", 4,
        {"torch": "2.9", "a.dotted-name": "1"}, "570.1", 1980.0, None,
    )  # fmt: skip
    record.target = msgspec.structs.replace(TARGET, suggested_sampling=Sampling(0.6), kernel="lean")
    record.draft = msgspec.structs.replace(TARGET, name="=draft", rewinds=False)
    record.prompt_ids, record.end_ids = (5, 6), (0, 2)
    *_, path = write_report(record, tmp_path / "run.csv", overwrite=False)
    facts = facts_of(path)
    assert rebuilt(facts, "environment", Environment) == record.environment
    for name in ("target", "draft"):
        read = msgspec.structs.asdict(getattr(record, name))
        assert msgspec.structs.asdict(rebuilt(facts, name, ModelFacts)) == read
    named = dict(facts)
    for name, value in {
        "run": "r", "started": "2026-01-02T03:04:05+01:00", "environment.driver": "570.1",
        "environment.clock_mhz": "1980.0", "environment.power_limit_w": "null",
        "target.suggested_sampling.temperature": "0.6", "draft.rewinds": "false",
        "draft.suggested_sampling": "null", "prompt_ids": "[5, 6]", "end_ids": "[0, 2]",
        "lossless": "true", "outcome": "finished", "speculative.0.finish": "length",
        "baseline.0.finish": "length", "peak_bytes": "null",
    }.items():  # fmt: skip
        assert named[name] == value


def test_what_was_not_held_equal_is_told_and_what_to_mind(tmp_path):
    record = run_record()
    record.apply(ConditionsSeen("r", (Flag("other load", "by another"), Flag("battery"))))
    record.notes = ("=a note", "another")
    *_, path = write_report(record, tmp_path / "run.csv", overwrite=False)
    facts = facts_of(path)
    assert [value for name, value in facts if name == "not held equal"] == [
        "Draft resident during baseline: no, the pair has no draft.",
        "Width of the target's passes: 1 row in the baseline, up to 5 in the speculative lane. "
        "Rounding may differ between them.",
        "The lanes ran one after the other, not at the same time: speculative 1, baseline 1.",
        "One pair only: chance, heat and other load are not averaged out.",
    ]
    assert [value for name, value in facts if name == "caution"] == [
        "Something else used the device while the run went on (by another).",
        "The machine ran on its battery, which may slow it.",
    ]
    assert [value for name, value in facts if name == "note"] == ["=a note", "another"]
    assert dict(facts)["draft"] == "null"


def test_a_hostile_run_is_told_whole(tmp_path):
    *_, path = write_report(hostile_record(), tmp_path / "run.csv", overwrite=False)
    facts = facts_of(path)
    assert dict(facts)["message"] == dict(facts)["note"] == EVERYTHING
    assert ("not held equal", "There is no baseline: nothing was compared.") in facts
