"""Prompts from a column of a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.library.prompts_lines import Fault, Placed
from app.library.prompts_set import Prompt
from app.run.problems import Problem

_USUAL = "prompt"
_IDS = ("question_id", "task_id", "id")
_CATEGORY = "category"


def from_table(text: str, path: Path, *, column: str | None) -> Iterator[Placed | Fault]:
    """A prompt from each row below the first, which names the columns. Raises Problem."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(text)
    rows = _rows(text, delimiter)
    first = next(rows, None)
    if first is None or isinstance(first, Fault):
        reason = first.message if first else "it is empty"
        message = f"{path}: no columns can be read: {reason}."
        raise Problem(message, "Begin the file with a row that names its columns.")
    names = [name.strip() for name in first[1]]
    place = _column(names, path, column=column)
    ids = next((names.index(name) for name in _IDS if name in names), None)
    category = names.index(_CATEGORY) if _CATEGORY in names else None
    for row in rows:
        if isinstance(row, Fault):
            yield row
            continue
        line, cells = row
        yield _prompt(
            line,
            cells,
            width=len(names),
            prompt=_cell(cells, place),
            id=_cell(cells, ids if ids != place else None) or str(line),
            category=_cell(cells, category if category != place else None) or path.stem,
        )


def _prompt(
    line: int, cells: Sequence[str], *, width: int, prompt: str, id: str, category: str
) -> Placed | Fault:
    if len(cells) > width:
        hint = "a cell with a comma has to stand in quotes"
        return Fault(line, f"it has {len(cells)} cells, the first row {width}: {hint}")
    if not prompt.strip():
        return Fault(line, "the prompt is empty")
    return Placed(line, Prompt(id, category, (prompt,)))


def _column(names: Sequence[str], path: Path, *, column: str | None) -> int:
    """Where the prompts stand. Raises Problem, which lists the columns."""
    wanted = column.strip() if column is not None else _USUAL
    places = [place for place, name in enumerate(names) if name == wanted]
    if column is None and not places and len(names) == 1:
        return 0
    if len(places) == 1:
        return places[0]
    listed = ", ".join(repr(name[:80]) for name in names[:50])
    if len(places) > 1:
        message = f"{path} has {len(places)} columns called {wanted!r}; its columns are {listed}."
        raise Problem(message, "Give each column a name of its own.")
    if column is None:
        message = f"{path} does not say which column holds the prompts; it has {listed}."
        raise Problem(message, "Choose one of these columns.")
    message = f"{path} has no column {wanted!r}; it has {listed}."
    raise Problem(message, "Choose one of these columns.")


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]] | Fault]:
    """Every row that is not blank with the line it begins in; a fault ends the file."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begin = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        yield Fault(begin, str(error))


def _delimiter(text: str) -> str:
    """What parts the most columns in the first line: spreadsheets write commas or semicolons."""
    head = text.lstrip("\r\n").split("\n", 1)[0]
    return max(",;\t", key=head.count)


def _cell(cells: Sequence[str], place: int | None) -> str:
    """The text of a cell; empty where the row is shorter."""
    return cells[place] if place is not None and place < len(cells) else ""
