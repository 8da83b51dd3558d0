"""Runs side by side: what was held equal, what was not, and every figure."""

from recorded import record_of, run_record

from app.history import compare
from app.run.figures import FIGURES, OF_TREES, figures_of


def rows_of(comparison):
    return {row.label: row for row in comparison.rows}


def test_every_figure_stands_side_by_side():
    comparison = compare([run_record(), record_of()])
    rows = rows_of(comparison)
    assert not rows.keys() & {FIGURES[name].label for name in OF_TREES}  # neither has a tree
    for figure in figures_of(run_record()):
        row = rows[figure.label]
        assert row.group == "Figures"
        assert row.cells == (figure.text(run_record()), figure.text(record_of()))
        assert row.values == (figure.value(run_record()), figure.value(record_of()))
        assert row.definition == figure.definition
    assert not rows["Decode speed-up"].equal


def test_what_was_not_held_equal_is_named():
    long = "x" * 300
    one = run_record(prompt=f"{long}a", draft_length=4, method_options={"shortest": 2})
    two = run_record(prompt=f"{long}b", draft_length=8, method_options={"shortest": 2})
    comparison = compare([one, two])
    assert comparison.unequal_settings == ("Prompt", "Draft length")
    rows = rows_of(comparison)
    assert rows["Draft length"].cells == ("4", "8")
    assert rows["Prompt"].cells[0] == rows["Prompt"].cells[1]  # what differs lies behind the cell
    assert rows["Method options"].cells == ("shortest 2", "shortest 2")
    assert rows["Temperature"].equal


def test_one_run_or_none_can_be_shown():
    assert all(row.equal for row in compare([run_record()]).rows)
    assert all(row.cells == () for row in compare([]).rows)


def test_the_history_compares_what_it_holds(history, make):
    history.add(make("a"))
    history.add(make("b", draft_length=9))
    comparison = history.compare(["b", "a"])
    assert comparison.runs == ("b", "a")
    assert rows_of(comparison)["Draft length"].cells == ("9", "4")
