"""A run that was cut off goes on: from the same ids, behind the same text, as its own run."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QTextCursor
from scripted_engine import STORY, record_of, run_of, stopped

from app.engine.protocol import EngineEnded, Run
from app.gui.colours import DARK
from app.gui.continuation import Earlier, can_continue, continued, whole_text, with_text_of
from app.gui.lane_text import LaneText
from app.gui.private_run import without_text
from app.history import History
from app.run.events import At, LaneEnded
from app.run.settings import Message

MORE = " More ships came in."


def going_on(client, text: str = MORE, **settings) -> list:
    """The events of the run that was asked for last."""
    asked = client.sent[-1]
    assert isinstance(asked, Run)
    kept = {name: getattr(asked.settings, name) for name in ("continues", "prompt_ids")}
    return run_of(text, run=asked.run, **kept, **settings)


def test_a_stopped_run_goes_on_from_prompt_and_text(window, client, play):
    window.run()
    play(*stopped(run_of(), after=80))
    before = window.record
    window.action["continue"].trigger()
    asked = client.sent[-1].settings
    last = before.repetitions("speculative")[-1]
    assert asked.continues == before.run
    assert asked.prompt_ids == (*before.prompt_ids, *last.token_ids)
    assert asked.max_new_tokens == before.settings.max_new_tokens - len(last.tokens)
    asked.check()


def test_both_lanes_show_the_same_text_before_the_new_one(window, client, play):
    window.run()
    play(*stopped(run_of(), after=80))
    earlier = window.page.lanes[0].text.toPlainText()
    window.running.go_on()
    play(*going_on(client))
    for lane in window.page.lanes:
        assert lane.text.toPlainText() == earlier + MORE
        assert lane.text.record_text() == earlier + MORE
        written = lane.text.document().find("lighthouse").charFormat()
        assert written.foreground().color().name() == DARK.muted
    number = len(pieces(earlier)) + 1
    assert window.page.notice.text.text() == f"Continues run r from token {number}."
    assert window.record.repetitions("speculative")[-1].text == MORE


def test_the_whole_text_is_copied_and_the_new_record_leaves(window, client, play):
    window.run()
    play(*run_of())
    window.running.go_on()
    play(*going_on(client))
    window.action["copy_text"].trigger()
    assert QGuiApplication.clipboard().text() == STORY + MORE
    lane = window.page.lanes[0].text
    lane.moveCursor(QTextCursor.MoveOperation.Start)
    lane.moveCursor(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
    assert lane.createMimeDataFromSelection().text() == STORY + MORE
    assert window.running.shown.to_leave() is window.record
    assert window.record.settings.continues == "r"


def test_a_run_can_be_gone_on_with_again_and_again(window, client, play):
    window.run()
    play(*run_of())
    for text in (" One.", " Two."):
        window.running.go_on()
        play(*going_on(client, text))
    assert window.page.lanes[1].text.record_text() == STORY + " One. Two."
    window.run()
    play(*run_of(run="other"))
    assert window.page.lanes[0].text.record_text() == STORY
    assert not window.page.notice.isVisible()


def test_one_that_ended_by_length_gets_the_length_of_the_form(window, client, play):
    window.run()
    play(*run_of())
    window.page.form.rows["max_new_tokens"].field.put(33)
    window.running.go_on()
    assert client.sent[-1].settings.max_new_tokens == 33


def test_it_is_offered_only_while_there_is_something_to_go_on_with(window, client, play):
    action, button = window.action["continue"], window.page.continue_button
    assert not action.isEnabled()
    window.run()
    play(*run_of()[:80])
    assert not action.isEnabled()
    assert not button.isVisible()
    play(EngineEnded("The engine was killed (signal 9).", expected=False))
    assert action.isEnabled()
    assert button.isVisible()
    window.page.form.choose_pair("embedded-nf4-draft")
    client.ready()
    play()
    assert not action.isEnabled()


@pytest.mark.parametrize("finish", ["end of text", "stop string", "context"])
def test_a_text_that_ended_by_itself_does_not_go_on(finish):
    assert not can_continue(record_of(run_of(finish=finish)))


def test_a_record_without_its_ids_does_not_go_on():
    record = record_of(run_of())
    assert can_continue(record)
    assert not can_continue(without_text(record))


def test_a_private_run_stays_private_when_it_goes_on(window, client, play):
    window.page.prompt.private.setChecked(True)
    window.run()
    play(*run_of(run=client.sent[-1].run))
    window.page.prompt.private.setChecked(False)
    window.running.go_on()
    play(*going_on(client))
    leaving = window.running.shown.to_leave()
    assert leaving.settings.prompt_ids == ()
    assert leaving.settings.continues == ""
    leaving.settings.check()
    assert window.background.wait(20)
    assert not window.kept.path.exists()


def test_the_broken_character_at_the_end_is_left_to_the_next_run():
    record = record_of(run_of("ab"))
    record.repetitions("speculative")[-1].tail = "\ufffd"
    assert record.repetitions("speculative")[-1].text == "ab\ufffd"
    assert with_text_of(record, Earlier("x", 1)).text == "xab"


def test_a_stop_string_may_begin_in_the_earlier_text(application):
    repetition = record_of(run_of("ND!")).repetitions("speculative")[-1]
    repetition.apply(LaneEnded(At("r", "speculative"), "stop string", dropped=4))
    assert whole_text("The E", repetition) == "The "
    lane = LaneText(DARK)
    lane.show_repetition(repetition, "The E")
    assert lane.toPlainText() == "The "
    lane.deleteLater()


def test_pointing_at_the_earlier_text_says_what_it_is(window, client, play, qtbot):
    window.run()
    play(*run_of())
    window.running.go_on()
    play(*going_on(client))
    lane = window.page.lanes[0].text
    lane.setFocus()
    qtbot.keyClick(lane, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    assert window.page.card.isVisible()
    assert "Earlier text" in window.page.card.accessibleName()
    qtbot.keyClick(lane, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(lane, Qt.Key.Key_Left)
    assert "Earlier text" not in window.page.card.accessibleName()


def test_where_the_new_text_begins_is_painted(window, client, play):
    window.run()
    play(*run_of())
    window.running.go_on()
    play(*going_on(client))
    lane = window.page.lanes[0].text
    cursor = QTextCursor(lane.document())
    cursor.setPosition(lane._joint)
    place = lane.cursorRect(cursor).center()
    colours = {
        lane.viewport().grab().toImage().pixelColor(place.x() + shift, place.y()).name()
        for shift in (-1, 0, 1)
    }
    assert DARK.accent in colours


def test_a_run_of_the_history_is_shown_behind_what_it_goes_on_from(window, client, play):
    first = record_of(run_of(run="first"))
    second = record_of(
        run_of(
            MORE, run="second", continues="first", prompt_ids=continued(first, fresh=1).prompt_ids
        )
    )
    with History(window.kept.path) as history:
        history.add(first)
        history.add(second)
    window.running.open(second)
    assert window.background.wait(20)
    play()
    assert window.page.lanes[0].text.record_text() == STORY + MORE
    assert "first" in window.page.notice.text.text()


def test_one_whose_beginning_is_not_kept_says_so(window, play):
    window.running.open(record_of(run_of(MORE, run="second", continues="gone", prompt_ids=(1, 2))))
    assert window.background.wait(20)
    play()
    assert window.page.lanes[0].text.record_text() == MORE
    assert "not kept here" in window.page.notice.text.text()


def pieces(text: str) -> list[str]:
    from scripted_engine import pieces_of

    return pieces_of(text)


def test_a_private_run_keeps_no_word_of_the_turns_before():
    said = (Message("user", "secret"), Message("assistant", "secret"))
    assert "secret" not in str(without_text(record_of(run_of(earlier=said))))
