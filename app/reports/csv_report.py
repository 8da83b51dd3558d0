"""Three tables: a row a token, and beside it a row a round, and what is needed to repeat the run.

UTF-8 with a byte-order mark, commas, decimal points, quotes around cells that need them; empty
cells for null. Text cells are written so that a spreadsheet does not take them for formulas:

* a text that begins with `'`, `=`, `+`, `-`, `@`, tab, carriage return, line feed, or a full-width
  `＝＋－＠` gets a `'` in front (so a first `'` is always to be removed);
* NUL, which CSV cannot hold, is `␀0`, and a `␀` of the text is `␀␀`.

Numbers are never changed. `text_of(cell(text)) == text`.

The table to repeat the run by has a row a field (`app.reports.run_facts`): texts and numbers as
above, and JSON for all else, so that its null is `null`, apart from an empty text. Only the type of
a field (`foretoken report --schema`) tells a text `null` from that.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from app.reports.run_facts import FACT_COLUMNS, run_facts
from app.run.events import Phases, Round, Status, Token
from app.run.record import Repetition, RunRecord

_ACTING = ("'", "=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUL = "␀"

TOKEN_COLUMNS = (
    "lane",
    "repetition",
    "round",
    "position",
    "id",
    "text",
    "status",
    "source",
    "target_probability",
    "draft_probability",
    "accept_probability",
    "draw",
    "kept_by",
    "strict_probability",
    "tried",
)
"""`repetition`, `round` and `position` count from 0. `round` is empty for the first token, which
the prompt pass yields; `position`, the place in the text, is empty for guesses thrown away. `tried`
is empty where guesses do not branch."""

_STATUSES: tuple[Status, ...] = (
    "accepted",
    "rejected",
    "ignored",
    "discarded",
    "corrected",
    "bonus",
    "plain",
)
ROUND_COLUMNS = (
    "lane",
    "repetition",
    "round",
    "limit",
    "limited_by",
    "drafted",
    *_STATUSES,
    "committed",
    *(f"{name}_s" for name in Phases.__struct_fields__),
    "total_s",
    "draft_stop",
    "nodes",
)
"""Columns that end in `_s` are seconds; `draft_calls_s` is part of `draft_prompt_s + draft_s`.
Where guesses branch, `nodes` are all of them, and `drafted` and the statuses count levels."""

Cell = str | int | float | None


def csv_parts(record: RunRecord) -> dict[str, str]:
    """The table of tokens, and beside it that of rounds, and what is needed to repeat the run."""
    return {
        ".csv": sheet(TOKEN_COLUMNS, _token_rows(record)),
        ".rounds.csv": sheet(ROUND_COLUMNS, _round_rows(record)),
        ".run.csv": sheet(FACT_COLUMNS, run_facts(record)),
    }


def cell(text: str) -> str:
    """A text as it stands in a cell: never a formula, never a NUL."""
    safe = text.replace(_NUL, _NUL * 2).replace("\0", f"{_NUL}0")
    return f"'{safe}" if safe.startswith(_ACTING) else safe


def text_of(cell: str) -> str:
    """The text that a cell stands for."""
    safe = cell.removeprefix("'")
    return _NUL.join(part.replace(f"{_NUL}0", "\0") for part in safe.split(_NUL * 2))


def sheet(columns: Iterable[str], rows: Iterable[tuple[Cell, ...]]) -> str:
    """A whole file: the byte-order mark, a row of names, then the rows."""
    page = io.StringIO(newline="")
    writer = csv.writer(page)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([cell(value) if isinstance(value, str) else value for value in row])
    return "\ufeff" + page.getvalue()


def _repetitions(record: RunRecord) -> Iterator[Repetition]:
    for lane in record.lanes:
        yield from lane.repetitions


def _token_rows(record: RunRecord) -> Iterator[tuple[Cell, ...]]:
    for repetition in _repetitions(record):
        position = 0
        if repetition.first is not None:
            yield _token_row(repetition, None, position, token=repetition.first)
            position += 1
        for round_ in repetition.rounds:
            for token in round_.committed:
                yield _token_row(repetition, round_.index, position, token=token)
                position += 1
            for token in round_.thrown:
                yield _token_row(repetition, round_.index, None, token=token)


def _token_row(
    repetition: Repetition, round_: int | None, position: int | None, *, token: Token
) -> tuple[Cell, ...]:
    return (
        repetition.at.lane,
        repetition.at.repetition,
        round_,
        position,
        token.id,
        token.text,
        token.status,
        token.source,
        token.target_probability,
        token.draft_probability,
        token.accept_probability,
        token.draw,
        token.kept_by,
        token.strict_probability,
        token.tried,
    )


def _round_rows(record: RunRecord) -> Iterator[tuple[Cell, ...]]:
    for repetition in _repetitions(record):
        for round_ in repetition.rounds:
            yield _round_row(repetition, round_)


def _round_row(repetition: Repetition, round_: Round) -> tuple[Cell, ...]:
    phases = round_.phases
    return (
        repetition.at.lane,
        repetition.at.repetition,
        round_.index,
        round_.limit,
        round_.limited_by,
        round_.drafted,
        *(round_.count(status) for status in _STATUSES),
        len(round_.committed),
        *(getattr(phases, name) for name in Phases.__struct_fields__),
        phases.total,
        round_.draft_stop,
        round_.nodes,
    )
