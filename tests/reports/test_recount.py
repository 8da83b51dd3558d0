"""The figures recomputed from an exported CSV by the definitions that are printed beside them."""

import csv
import io
from collections import Counter

import pytest
from recorded import hostile_record, run_record

from app.reports.csv_report import csv_parts
from app.run.figures import FIGURES

GUESSES = ("accepted", "rejected", "ignored", "discarded")


def rows(record, part):
    return list(csv.DictReader(io.StringIO(csv_parts(record)[part].removeprefix("\ufeff"))))


def share(above, below):
    return above / below if below else None


def figures_of(record):
    """From the rows of tokens alone: what became of each guess, and which loop it was in."""
    tokens = [row for row in rows(record, ".csv") if row["lane"] == "speculative"]
    tally = Counter(row["status"] for row in tokens)
    drafted = sum(tally[status] for status in GUESSES)
    drafting = {(row["repetition"], row["round"]) for row in tokens if row["status"] in GUESSES}
    loops = {(row["repetition"], row["round"]) for row in tokens if row["round"]}
    written = sum(bool(row["position"]) and bool(row["round"]) for row in tokens)
    return {
        # "Guesses accepted / guesses made."
        "acceptance_rate": share(tally["accepted"], drafted),
        # "Guesses accepted / guesses tested: those behind a rejection or a stop do not count."
        "conditional_acceptance": share(tally["accepted"], tally["accepted"] + tally["rejected"]),
        # "Guesses accepted / loops with a draft."
        "mean_accepted_prefix": share(tally["accepted"], len(drafting)),
        # "Tokens committed after the first / loops."
        "tokens_per_loop": share(written, len(loops)),
    }


def check(record):
    for name, expected in figures_of(record).items():
        assert FIGURES[name].value(record) == pytest.approx(expected), name
    by_round = rows(record, ".rounds.csv")
    tokens = rows(record, ".csv")
    for row in by_round:
        key = [(row[name]) for name in ("lane", "repetition", "round")]
        of_round = Counter(
            token["status"]
            for token in tokens
            if [token[name] for name in ("lane", "repetition", "round")] == key
        )
        assert int(row["drafted"]) == sum(of_round[status] for status in GUESSES)
        for status in (*GUESSES, "corrected", "bonus", "plain"):
            assert int(row[status]) == of_round[status]


@pytest.mark.parametrize("make", [run_record, hostile_record])
def test_a_recount_of_the_export_gives_the_figures(make):
    check(make())


def test_the_definitions_are_those_that_are_printed():
    assert FIGURES["acceptance_rate"].definition.startswith("Guesses accepted / guesses made.")
    assert FIGURES["conditional_acceptance"].definition.startswith(
        "Guesses accepted / guesses tested"
    )
    assert FIGURES["mean_accepted_prefix"].definition == "Guesses accepted / loops with a draft."
