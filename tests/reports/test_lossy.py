"""A lossy rule is named wherever its figures appear, and so is what leniency kept."""

import csv
import io
import json

import pytest
from recorded import lossy_record, run_record

from app.history.comparison import compare
from app.history.entry import entry_of
from app.reports import summarise, write_report
from app.reports.bench_report import BENCH_FORMATS
from app.reports.bench_summary import summarise_bench
from app.reports.html.facts import to_repeat, what_ran
from app.run.figures import FIGURES, agreement, badge, promise, standing
from app.run.metrics import leniency_share, same_text
from app.run.rules import RULES, is_lossy, same_text_due
from app.run.settings import RunSettings, Sampling


def test_the_expected_share_is_the_mean_excess_of_the_tested_guesses():
    # .9 - .6 and .8 - .8 for the two that were tested; the ignored one has no chance.
    record = lossy_record()
    assert leniency_share(record.repetitions("speculative")) == pytest.approx(0.15)
    assert FIGURES["kept_by_leniency"].text(record) == "15.0 %"
    assert FIGURES["kept_by_leniency"].text(run_record()) == "n/a"


def test_a_rule_that_is_harsher_than_the_strict_one_has_no_excess():
    record = lossy_record(chances=((0.2, 0.6), (0.1, 0.8)))
    assert leniency_share(record.repetitions("speculative")) == 0.0


@pytest.mark.parametrize("suffix", [".md", ".html"])
def test_reports_for_people_carry_the_badge(suffix, tmp_path):
    for make, marked in ((lossy_record, True), (run_record, False)):
        (path, *_) = write_report(make(), tmp_path / f"r{suffix}", overwrite=True)
        text = path.read_text(encoding="utf-8")
        assert ("LOSSY (lenience)" in text) == marked
        assert ("15.0 %" in text) == marked
        assert ("changes the target" in text) == marked


def test_reports_for_programs_say_what_the_run_promises(tmp_path):
    told = json.loads(summarise(lossy_record()).json())
    assert (told["standing"], told["rule"], told["lossless"]) == ("LOSSY", "lenience", False)
    assert told["kept_by_leniency"] == pytest.approx(0.15)
    write_report(lossy_record(), tmp_path / "r.csv", overwrite=True)
    facts = dict(csv.reader(io.StringIO((tmp_path / "r.run.csv").read_text("utf-8-sig"))))
    assert facts["standing"] == "LOSSY"
    tokens = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text("utf-8-sig"))))
    assert [row["kept_by"] for row in tokens if row["strict_probability"]] == ["leniency", ""]


@pytest.mark.parametrize("suffix", [".json", ".csv", ".md", ".html"])
def test_a_bench_marks_its_ways(suffix):
    for make, marked in ((lossy_record, True), (run_record, False)):
        summary = summarise_bench([("p", "a", make())])
        text = "".join(BENCH_FORMATS[suffix](summary).values())
        assert ("LOSSY (lenience)" in text) == marked


def test_a_report_tells_the_window_that_was_at_work():
    record = run_record(rule="fly", rule_options={"entropy": 0.5}, draft_length=4)
    told = dict(row for table in to_repeat(record) for row in table.rows)
    assert told["rule options"] == "window 3, reading vllm, entropy 0.5"
    assert dict(what_ran(record))["Rule"].startswith("FLy (deferred rejection), window 3,")


def test_a_lossy_run_has_a_text_of_its_own():
    record = lossy_record()
    assert same_text(record) is None
    assert agreement(record) == "The rule is lossy: the text need not be the baseline's."


def test_kept_runs_are_marked_in_the_list_and_side_by_side():
    assert (entry_of(lossy_record()).badge, entry_of(run_record()).badge) == (
        "LOSSY (lenience)", "",
    )  # fmt: skip
    rows = {row.label: row for row in compare([lossy_record(), run_record()]).rows}
    assert rows["Promise"].cells[0].startswith("LOSSY")
    assert rows["Rule options"].cells == ("lenience 0.5", "")


def test_three_standings():
    record = run_record()
    assert (standing(record), badge(record)) == ("lossless", "")
    record.lossless = False
    assert badge(record) == standing(record) == "not exactly lossless"
    assert promise(record).startswith("Not exactly lossless: the models' precision")
    assert badge(lossy_record()) == "LOSSY (lenience)"


@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if not rule.lossless])
def test_what_is_lossy(rule):
    def settings(**changes):
        return RunSettings("pair", "prompt", rule=rule, **changes)

    assert is_lossy(settings(sampling=Sampling(temperature=1.0)))
    assert is_lossy(settings()) == (rule != "typical")  # which is greedy at 0, as in Medusa
    assert not is_lossy(settings(method="nothing"))
    assert not same_text_due(settings(sampling=Sampling(temperature=1.0)))


def test_when_the_lanes_have_to_write_the_same():
    drawn = Sampling(temperature=1.0)
    assert same_text_due(RunSettings("pair", "prompt"))
    assert same_text_due(RunSettings("pair", "prompt", rule="coupled", sampling=drawn))
    assert not same_text_due(RunSettings("pair", "prompt", sampling=drawn))
