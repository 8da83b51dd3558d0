"""A lane shows what the record says, literally, once, and gives it back exactly."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QTextCursor
from recorded import HOSTILE
from scripted_engine import pieces_of, record_of, rounds_of, run_of

from app.gui.colours import CUES, DARK, LIGHT
from app.gui.lane_text import LaneText
from app.run.events import (
    At,
    FirstToken,
    LaneEnded,
    LaneStarted,
    Phases,
    Round,
    RoundCommitted,
    Token,
)
from app.run.record import Repetition, RunRecord

AT = At("r", "speculative")


@pytest.fixture
def lane(application, theme):
    made = LaneText(DARK)
    made.resize(500, 300)
    made.show()
    yield made
    made.close()
    made.deleteLater()


def growing(*tokens: Token, **settings) -> RunRecord:
    """A record whose speculative lane has written these tokens, a round each."""
    record = record_of([run_of(**settings)[0], LaneStarted(AT)])
    for token in tokens:
        add(record, token)
    return record


def add(record: RunRecord, *committed: Token, thrown=(), held_back: int = 0) -> None:
    rounds = record.repetitions("speculative")[-1].rounds
    round_ = Round(
        len(rounds),
        4,
        "draft length",
        committed,
        tuple(thrown),
        Phases(verify=0.01),
        held_back=held_back,
    )
    record.apply(RoundCommitted(AT, round_))


def repetition(record: RunRecord) -> Repetition:
    return record.repetitions("speculative")[-1]


def token(text: str, status="accepted", number: int = 1) -> Token:
    return Token(number, text, status)


def copied(lane: LaneText, first: int = 0, last: int | None = None) -> str:
    """What a copy of this part of the document gives."""
    cursor = QTextCursor(lane.document())
    cursor.setPosition(first)
    end = lane.document().characterCount() - 1 if last is None else last
    cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
    lane.setTextCursor(cursor)
    return lane.createMimeDataFromSelection().text()


@pytest.mark.parametrize(
    "text",
    [
        "10\u00a0km\nline2\tend\u2028x",
        "def f():\n\treturn 1  \n\n        x = 2\n",
        "a\r\nb\rc\n",
        "<img src=x onerror=1><b>&lt;5 && a<b</b> <script>",
        "👨‍👩‍👧 你好 🚫\ufdd0\ufdd1\ufffc\x00\x1b",
        "".join(HOSTILE),
    ],
)
def test_a_copy_gives_the_exact_characters(lane, text):
    record = growing(*(token(piece) for piece in text))
    lane.show_repetition(repetition(record))
    assert copied(lane) == text == repetition(record).text


def test_markup_is_shown_literally(lane):
    text = "<img src=x onerror=1><b>&lt;5 && a<b</b> <script>"
    lane.show_repetition(repetition(growing(token(text))))
    assert lane.toPlainText() == text


def test_part_of_a_token_can_be_copied(lane):
    lane.show_repetition(repetition(growing(token("a🚫b"), token(" kite"))))
    assert copied(lane, 1, 6) == "🚫b k"


def test_what_comes_later_is_appended_and_nothing_twice(lane):
    record = growing(token("one"))
    lane.show_repetition(repetition(record))
    lane.advance()
    add(record, token(" two"), token(" three", "bonus"))
    lane.advance()
    lane.advance()
    assert lane.toPlainText() == "one two three"


def test_text_that_may_begin_a_stop_string_waits(lane):
    record = growing(token("The "))
    lane.show_repetition(repetition(record))
    add(record, token("E"), held_back=1)
    lane.advance()
    assert lane.toPlainText() == "The "
    add(record, token("ast"))
    lane.advance()
    assert lane.toPlainText() == "The East"
    add(record, token(" EN"), held_back=2)
    lane.advance()
    assert lane.toPlainText() == "The East "
    add(record, token("D!x"), held_back=0)
    record.apply(LaneEnded(AT, "stop string", dropped=5))
    lane.advance()
    assert lane.toPlainText() == "The East " == repetition(record).text


def test_a_character_of_several_tokens_has_the_last_ones_colour_and_tells_of_all(lane):
    record = growing()
    add(record, token(""), token(""), token("", "corrected"))
    lane.show_repetition(repetition(record))
    assert lane.toPlainText() == ""
    add(record, token("🚫", "bonus"))
    lane.advance()
    span = lane.span_at(0)
    assert [placed.token.status for placed in span.tokens][-2:] == ["corrected", "bonus"]
    assert len(span.tokens) == 4
    assert span.mixed
    assert lane.toPlainText() == "🚫"


def test_the_tail_of_a_broken_character_is_shown_at_the_end(lane):
    record = growing(token("a"), token(""))
    lane.show_repetition(repetition(record))
    record.apply(LaneEnded(AT, "length", tail="\ufffd"))
    lane.advance()
    assert lane.toPlainText() == "a\ufffd"


def test_every_status_has_its_colours_and_its_cue(lane):
    statuses = ("accepted", "corrected", "bonus", "plain")
    lane.show_repetition(repetition(growing(*(token(s, s) for s in statuses))))
    for status in statuses:
        cursor = lane.document().find(status)
        written = cursor.charFormat()
        assert written.foreground().color().name() == DARK.tint(status).text
        assert written.fontUnderline() == CUES[status].underline
        assert written.fontOverline() == CUES[status].overline
    assert (
        lane.document().find("bonus").charFormat().background().color().name() == DARK.bonus.ground
    )


def test_thrown_guesses_stand_in_their_place_and_are_never_copied(lane):
    record = growing(token("The"))
    add(
        record,
        token(" red"),
        token(" kite", "corrected"),
        thrown=(token(" fox", "rejected"), token(" runs", "ignored")),
    )
    lane.show_repetition(repetition(record))
    assert lane.toPlainText() == "The red kite"
    lane.set_thrown(True)
    assert lane.toPlainText() == "The red fox runs kite"
    assert copied(lane) == "The red kite"
    assert lane.document().find("fox").charFormat().fontStrikeOut()
    lane.set_thrown(False)
    assert lane.toPlainText() == "The red kite"


def test_seams_stand_where_rounds_begin(lane):
    record = record_of(run_of()[:40])
    lane.show_repetition(repetition(record))
    plain = lane.grab().toImage()
    lane.set_seams(True)
    assert lane.grab().toImage() != plain
    lane.set_seams(False)
    assert lane.grab().toImage() == plain


def test_another_scheme_recolours_what_is_there_and_keeps_the_place(lane):
    record = record_of(run_of("\n".join(str(n) for n in range(200))))
    lane.show_repetition(repetition(record))
    lane.verticalScrollBar().setValue(300)
    lane.set_colours(LIGHT)
    assert lane.verticalScrollBar().value() == 300
    written = lane.document().find("7").charFormat()
    assert written.foreground().color().name() in {
        LIGHT.tint(status).text for status in ("accepted", "corrected", "bonus", "plain")
    }


def test_it_follows_the_text_only_from_the_bottom(lane):
    record = record_of(run_of("\n".join(str(n) for n in range(200)))[:-2])
    lane.show_repetition(repetition(record))
    bar = lane.verticalScrollBar()
    assert bar.value() == bar.maximum()
    bar.setValue(50)
    add(record, token("\nmore\nand more"))
    lane.advance()
    assert bar.value() == 50
    bar.setValue(bar.maximum())
    add(record, token("\nand more"))
    lane.advance()
    assert bar.value() == bar.maximum()


def test_it_stays_at_the_bottom_when_its_place_shrinks(lane):
    lane.show_repetition(repetition(record_of(run_of("\n".join(str(n) for n in range(200))))))
    lane.resize(400, 150)
    bar = lane.verticalScrollBar()
    assert bar.value() == bar.maximum()
    bar.setValue(60)
    lane.resize(400, 120)
    assert bar.value() == 60


def test_a_very_long_line_is_laid_out_in_parts_and_copied_whole(lane):
    text = "x" * 10_000
    record = growing(*(token("xxxxx") for _ in range(2000)))
    lane.show_repetition(repetition(record))
    while lane.behind:
        lane.advance()
    assert copied(lane) == text
    assert lane.document().blockCount() > 2


def test_the_pointer_finds_the_token(lane):
    lane.show_repetition(repetition(growing(token("one"), token(" two", "bonus"))))
    found = []
    lane.inspected.connect(lambda span, _box: found.append(span))
    cursor = QTextCursor(lane.document())
    cursor.setPosition(5)
    spot = lane.cursorRect(cursor).center() + QPoint(2, 0)
    lane._inspect_at(QPointF(spot))
    lane._inspect_at(QPointF(480, 280))
    assert [span and span.text for span in found] == [" two", None]


def test_the_caret_finds_the_token(lane, qtbot):
    lane.show_repetition(repetition(growing(token("one"), token(" two", "bonus"))))
    found = []
    lane.inspected.connect(lambda span, _box: found.append(span))
    lane.setFocus()
    qtbot.keyClick(lane, Qt.Key.Key_End)
    qtbot.keyClick(lane, Qt.Key.Key_Left)
    assert found[-1].text == " two"
    qtbot.keyClick(lane, Qt.Key.Key_Home)
    assert found[-1].text == "one"


def test_another_repetition_begins_anew(lane):
    record = growing(token("one"))
    lane.show_repetition(repetition(record))
    record.apply(LaneStarted(At("r", "speculative", 1)))
    record.apply(FirstToken(At("r", "speculative", 1), token("two", "first"), 0.1))
    lane.show_repetition(repetition(record))
    assert lane.toPlainText() == "two"


def test_random_texts_in_random_rounds_are_shown_and_copied_whole(lane):
    for seed in range(5):
        text = "Ein 🚫 Kind\u00a0\n\n\tläuft <b>你好</b> " * (seed + 3)
        record = growing()
        for round_ in rounds_of(pieces_of(text), seed=seed):
            record.apply(RoundCommitted(AT, round_))
            lane.show_repetition(repetition(record))
            lane.advance()
        assert copied(lane) == repetition(record).text
        lane.set_thrown(seed % 2 == 0)
        assert copied(lane) == repetition(record).text
