"""G03: spreadsheets and csv.reader get the same rows, and no cell is a formula."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as some
from recorded import HOSTILE, hostile_record, run_record

from app.reports import write_report
from app.reports.csv_report import ROUND_COLUMNS, TOKEN_COLUMNS, cell, text_of


def rows_of(path):
    with open(path, encoding="utf-8-sig", newline="") as page:
        return list(csv.reader(page))


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
    tokens, rounds = write_report(record, tmp_path / "run.csv", overwrite=False)
    head, *rows = rows_of(tokens)
    assert tuple(head) == TOKEN_COLUMNS
    assert len(rows) == 1 + 2 * len(HOSTILE)
    assert [text_of(row[5]) for row in rows[1::2]] == list(HOSTILE)
    assert [text_of(row[7]) for row in rows[1::2]] == list(HOSTILE)
    assert {row[8] for row in rows[1::2]} == {"-0.5"}
    head, *rows = rows_of(rounds)
    assert tuple(head) == ROUND_COLUMNS
    assert [text_of(row[-1]) for row in rows] == list(HOSTILE)


def test_files_begin_with_the_mark_that_spreadsheets_need(tmp_path):
    for file in write_report(run_record(), tmp_path / "run.csv", overwrite=False):
        assert file.read_bytes().startswith(b"\xef\xbb\xbf")
        assert b"\r\r\n" not in file.read_bytes()


def test_every_token_and_round_has_its_row(tmp_path):
    tokens, rounds = write_report(run_record(), tmp_path / "run.csv", overwrite=False)
    assert [file.name for file in (tokens, rounds)] == ["run.csv", "run.rounds.csv"]
    assert rows_of(tokens)[1:8] == [
        ["speculative", "0", "", "0", "1", "<1>", "first", "", "", "", "", "", ""],
        ["speculative", "0", "0", "1", "2", "<2>", "accepted", "ngram", "", "", "", "", ""],
        ["speculative", "0", "0", "2", "3", "<3>", "bonus", "", "", "", "", "", ""],
        ["speculative", "0", "1", "3", "4", "<4>", "accepted", "ngram", "0.5", "1.0", "0.5",
         "0.25", "rule"],
        ["speculative", "0", "1", "4", "5", "<5>", "corrected", "", "0.75", "", "", "", ""],
        ["speculative", "0", "1", "", "8", "<8>", "rejected", "ngram", "-0.0", "1.0", "0.0",
         "0.5", ""],
        ["speculative", "0", "1", "", "9", "<9>", "ignored", "ngram", "", "", "", "", ""],
    ]  # fmt: skip
    named = [dict(zip(ROUND_COLUMNS, row, strict=True)) for row in rows_of(rounds)[1:]]
    assert named[1] == {
        "lane": "speculative", "repetition": "0", "round": "1", "limit": "4",
        "limited_by": "draft length", "drafted": "3", "accepted": "1", "rejected": "1",
        "ignored": "1", "discarded": "0", "corrected": "1", "bonus": "0", "plain": "0",
        "committed": "2", "draft_prompt_s": "0.0", "draft_s": "0.25", "verify_s": "0.75",
        "decide_s": "0.0", "rest_s": "0.0", "draft_calls_s": "0.0", "total_s": "1.0",
        "draft_stop": "no match",
    }  # fmt: skip
    assert sum(row["lane"] == "baseline" for row in named) == 4
