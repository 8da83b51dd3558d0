"""Tables of a bench in terminals of every width: nothing is broken, nothing goes untold."""

import pytest
from msgspec.structs import replace
from recorded import COSTS, costed_record, lane_events, record_of
from rich.console import Console

from app.cli.fitted_tables import fitted
from app.reports.bench_summary import summarise_bench
from app.reports.bench_tables import bench_tables
from app.reports.html.tables import Table
from app.run.cost import MethodCosts


def lines_of(found, width):
    """What a terminal of this width shows of a table, line by line."""
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as shown:
        for part in found.parts:
            console.print(part)
    return shown.get().splitlines()


def cells_of(lines):
    """The words of every cell of every line."""
    return [cell.strip() for line in lines for cell in line.replace("┃", "│").split("│")]


WIDE = Table(
    "Figures",
    ("Category", "Prompts", "Speculative tokens/s", "Decode speed-up", "Ratio of means"),
    (
        ("all together", "12", "113.87", "1.87× (1.02–2.52)", "1.22× (1.00–1.63)"),
        ("summarise: no guess", "3", "n/a", "0.94× (0.87–1.07)", "n/a"),
    ),
    needed=("Decode speed-up", "Speculative tokens/s", "Ratio of means", "Prompts"),
)


def test_a_table_that_fits_is_one_and_whole():
    # 19 + 7 + 20 + 17 + 17 cells, three more for each column, and one.
    found = fitted(WIDE, 80 + 16)
    assert (len(found.parts), found.left_out) == (1, ())
    lines = lines_of(found, 96)
    assert {len(line) for line in lines[1:]} == {96}
    assert len(lines) == 1 + 3 + 2 + 1  # title, head, rows, edge
    # Nine cells less: "Speculative" stands above "tokens/s", and nothing else breaks.
    assert len(lines_of(fitted(WIDE, 87), 87)) == 1 + 4 + 2 + 1


def test_what_has_no_room_makes_a_second_part_and_then_stays_away():
    # "summarise:" 10, the speed-up 17, "Speculative" 11: 38 + 9 + 1. The ratio would be 20 more.
    found = fitted(WIDE, 48)
    assert len(found.parts) == 2
    assert found.left_out == ()
    titles = [line.strip() for line in lines_of(found, 48) if "Figures" in line]
    assert titles == ["Figures", "Figures, continued"]
    # With less than 48 a part holds one number: the two most needed are shown.
    assert fitted(WIDE, 41).left_out == ("Prompts", "Ratio of means")


@pytest.mark.parametrize("width", [34, 41, 48, 60, 80, 96, 200])
def test_no_word_and_no_value_is_broken(width):
    found = fitted(WIDE, width)
    lines = lines_of(found, width)
    assert max(map(len, lines)) <= width
    shown = cells_of(lines)
    kept = [name for name in WIDE.head if name not in found.left_out]
    for place, name in enumerate(WIDE.head):
        if name in kept:
            values = [row[place] for row in WIDE.rows]
            assert all(value in shown for value in values) or place == 0
    words = {word for cell in shown for word in cell.split()}
    known = {word for text in (*WIDE.head, "Figures, continued") for word in text.split()}
    known |= {word for row in WIDE.rows for cell in row for word in cell.split()} | {"Figures"}
    assert {word for word in words if word[0].isalnum()} <= known


def test_a_table_that_needs_all_its_columns_takes_as_many_parts_as_it_must():
    ways = tuple(f"ngram, draft length {length}" for length in range(1, 9))
    speeds = tuple(f"1.{length}0× (0.93–1.43)" for length in range(1, 9))
    found = fitted(Table("Decode speed-up", ("Category", *ways), (("chat", *speeds),)), 80)
    # 8 + 3 and 20 for each way and one: three ways a part.
    assert (len(found.parts), found.left_out) == (3, ())
    shown = cells_of(lines_of(found, 80))
    assert [cell for cell in shown if "×" in cell] == list(speeds)


def test_columns_that_name_a_row_stand_in_every_part():
    head = ("Way", "Lane", "Chunk gap p50, ms", "Reused")
    rows = (("ngram, draft length 2", "speculative", "50.1", "0.0 %"),)
    shown = lines_of(fitted(Table("Waiting", head, rows), 34), 34)
    assert sum("speculative" in line for line in shown) == 2


def test_a_word_longer_than_the_terminal_breaks_where_it_must():
    found = fitted(Table("T", ("What", "Runs"), (("x" * 90, "1 of 2"),)), 40)
    lines = lines_of(found, 40)
    assert max(map(len, lines)) <= 40
    assert "".join(cells_of(lines)).count("x") == 90


def measured(method, prompt, events=None, *, length=4):
    """A run of this method, with four guesses a loop, or of these lanes."""
    made = costed_record(repetitions=3) if events is None else record_of(*events)
    made.settings = replace(made.settings, method=method, draft_length=length)
    return f"{prompt}-1", prompt, made


def lanes_without_guesses():
    """Three repetitions of both lanes, a token a loop."""
    for repetition in range(3):
        for lane in ("speculative", "baseline"):
            yield from lane_events(lane, [[2], [3]], repetition=repetition, seconds=1234.5)


def test_all_columns_of_a_bench_are_there_from_120_cells_on():
    runs = []
    for method in ("ngram-else-head", "draft-model", "suffix-decoding", "head-tree"):
        runs.append(measured(method, "translation"))
        runs.append(measured(method, "summarise", lanes_without_guesses()))
    costs = {method: MethodCosts(COSTS) for method in ("ngram-else-head", "draft-model")}
    summary = summarise_bench(runs, costs)
    for one in bench_tables(summary):
        assert fitted(one, 120).left_out == ()
        assert set(fitted(one, 80).left_out) <= {"Prompts", "Turns"}
        for width in (80, 120):
            assert max(map(len, lines_of(fitted(one, width), width))) <= width
