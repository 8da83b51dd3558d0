"""The page of kept runs: every run that ended is there, and all that can be done with it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from recorded import HOSTILE
from scripted_engine import STORY, record_of, run_of, stopped

from app.engine.protocol import EngineEnded, Run
from app.gui import dialogs
from app.gui.comparison_view import unequal_setting
from app.gui.runs_model import COLUMNS, RunsModel
from app.gui.runs_page import EMPTY, NOT_FOUND
from app.history import History
from app.run.events import RunEnded

TITLES = [column.title for column in COLUMNS]


@pytest.fixture
def kept(window) -> Path:
    """A history with three runs."""
    with History(window.kept.path) as history:
        for number, prompt in enumerate(("Name the zebras", "Light the lamp", "Name the quails")):
            made = record_of(run_of(run=f"run{number}", prompt=prompt, draft_length=4 + number))
            made.started = f"2026-01-0{number + 2}T03:04:05+01:00"
            history.add(made)
        history.tag("run0", "harbour")
    return window.kept.path


def settle(window) -> None:
    """Lets the background end its work, and the window take it in."""
    for _ in range(4):
        assert window.background.wait(20)
        window.frame()


def listed(window) -> list[str]:
    """The runs in the list, from top to bottom."""
    return [entry.run for entry in window.runs.table.model().entries]


def choose(window, *rows: int) -> None:
    table = window.runs.table
    table.clearSelection()
    for row in rows:
        flags = table.selectionModel().SelectionFlag
        index = table.model().index(row, 0)
        table.selectionModel().select(index, flags.Select | flags.Rows)


def test_the_list_says_why_it_is_empty(window):
    window.pages.show_runs()
    settle(window)
    assert (window.runs.empty.text(), window.runs.number.text()) == (EMPTY, "0 runs")
    assert window.runs.empty.isVisible()
    assert not window.runs.table.isVisible()


@pytest.mark.parametrize("ending", ["finished", "stopped", "failed", "killed"])
def test_every_run_that_ends_is_kept(window, client, play, ending):
    window.run()
    run = client.sent[-1].run
    begun = run_of(run=run)
    events = {
        "finished": begun,
        "stopped": stopped(begun, after=60),
        "failed": [*begun[:60], RunEnded(run, "failed", "No memory is left.", "")],
        "killed": [*begun[:60], EngineEnded("The engine was killed.", expected=False)],
    }
    play(*events[ending])
    settle(window)
    with History(window.kept.path) as history:
        assert history.get(run) == window.record


def test_a_run_that_goes_on_when_the_window_closes_is_kept(window, client, play):
    window.run()
    run = client.sent[-1].run
    play(*run_of(run=run)[:60])
    client.close = lambda timeout=3.0: client.record.close("engine ended")
    window.close()
    with History(window.kept.path) as history:
        assert history.get(run).outcome == "engine ended"


def test_a_private_run_is_not_kept(window, client, play):
    window.page.prompt.private.setChecked(True)
    window.run()
    play(*run_of(run=client.sent[-1].run))
    settle(window)
    assert not window.kept.path.exists()


def test_a_run_that_cannot_be_kept_says_so_in_place(window, play):
    window.kept.path.mkdir()
    window.run()
    play(*run_of())
    settle(window)
    assert "The run was not kept." in window.page.notice.text.text()


def test_the_list_shows_the_latest_first_with_its_figures(window, kept):
    window.action["show_runs"].trigger()
    settle(window)
    assert listed(window) == ["run2", "run1", "run0"]
    assert window.runs.number.text() == "3 runs"
    model = window.runs.table.model()
    row = [model.index(2, column).data() for column in range(model.columnCount())]
    shown = dict(zip(TITLES, row, strict=True))
    assert shown["When"] == "2026-01-02 03:04"
    assert (shown["Method"], shown["γ"], shown["Outcome"]) == ("N-gram", "4", "finished")
    assert shown["Speed-up"].endswith("×")
    assert shown["Acceptance"].endswith("%")
    assert shown["Tags"] == "harbour"


def test_a_search_finds_by_words_and_by_tag(window, kept):
    window.pages.search_list()
    settle(window)
    assert window.runs.search.hasFocus() or not window.isActiveWindow()
    window.runs.search.setText("name zebra")
    settle(window)
    assert listed(window) == ["run0"]
    window.runs.search.setText("nothing like it")
    settle(window)
    assert listed(window) == []
    assert window.runs.empty.text() == NOT_FOUND
    assert window.runs.empty.isVisible()
    window.runs.search.clear()
    window.runs.tag.put("harbour")
    settle(window)
    assert listed(window) == ["run0"]


def test_only_the_last_of_many_searches_counts(window, kept):
    window.pages.show_runs()
    for text in ("n", "na", "name the q"):
        window.runs.search.setText(text)
    settle(window)
    assert listed(window) == ["run2"]


def test_tags_and_note_are_kept_when_the_field_is_left(window, kept):
    window.pages.show_runs()
    settle(window)
    choose(window, 0)
    window.runs.side.tags.setText("talk, lamp")
    window.runs.side.tags.editingFinished.emit()
    window.runs.side.note.setPlainText("Write\nit down")
    choose(window, 1)
    settle(window)
    with History(kept) as history:
        assert history.entry("run2").tags == ("lamp", "talk")
        assert history.entry("run2").note == "Write\nit down"
        assert history.entry("run1").note == ""
    choose(window, 0)
    assert window.runs.side.note.text() == "Write\nit down"


def test_what_is_being_written_is_not_lost_when_the_list_is_renewed(window, kept):
    window.pages.show_runs()
    settle(window)
    window.runs.side.note.setPlainText("Half a sent")
    window.desk.search()
    settle(window)
    assert window.runs.side.note.text() == "Half a sent"
    window.close()
    with History(kept) as history:
        assert history.entry("run2").note == "Half a sent"


def test_a_tag_that_cannot_be_kept_says_why_and_goes(window, kept):
    window.pages.show_runs()
    settle(window)
    window.runs.side.tags.setText("x" * 99)
    window.runs.side.tags.editingFinished.emit()
    settle(window)
    assert "A tag is" in window.runs.notice.text.text()
    assert window.runs.side.tags.text() == ""


def test_enter_opens_the_run_in_the_playground(window, kept, play, qtbot):
    window.pages.show_runs()
    settle(window)
    qtbot.keyClick(window.runs.table, Qt.Key.Key_Down)
    qtbot.keyClick(window.runs.table, Qt.Key.Key_Return)
    settle(window)
    play()
    assert window.page.isVisible()
    assert window.record.run == "run1"
    assert window.page.lanes[0].text.record_text() == STORY
    assert window.page.prompt.prompt.text() == "Light the lamp"


def test_run_again_runs_the_settings_of_the_chosen_run(window, client, kept):
    window.pages.show_runs()
    settle(window)
    choose(window, 2)
    window.action["run_again"].trigger()
    settle(window)
    asked = client.sent[-1]
    assert isinstance(asked, Run)
    assert (asked.settings.prompt, asked.settings.draft_length) == ("Name the zebras", 4)
    assert window.page.isVisible()


def test_runs_side_by_side_mark_what_was_not_held_equal(window, kept):
    window.pages.show_runs()
    settle(window)
    assert not window.action["compare_runs"].isEnabled()
    window.runs.table.selectAll()
    window.action["compare_runs"].trigger()
    settle(window)
    view = window.runs.comparison
    assert view.isVisible()
    assert "Prompt" in view.sentence.text()
    assert "Draft length" in view.sentence.text()
    marked = [row.label for row in view.model.rows if unequal_setting(row)]
    assert {"Prompt", "Draft length"} <= set(marked)
    labels = [view.model.index(row, 0).data() for row in range(view.model.rowCount())]
    assert "≠ Draft length" in labels
    assert "Decode speed-up" in labels
    view.differences.setChecked(True)
    assert all(not row.equal for row in view.model.rows)
    view.back.click()
    assert window.runs.table.isVisible()


def test_runs_leave_and_come_back(window, kept, monkeypatch, tmp_path):
    archive = tmp_path / "runs.jsonl"
    monkeypatch.setattr(dialogs, "ask_archive_path", lambda *_: archive)
    monkeypatch.setattr(dialogs, "ask_import_path", lambda *_: archive)
    monkeypatch.setattr(dialogs, "confirm_delete", lambda *_: True)
    window.pages.show_runs()
    settle(window)
    choose(window, 0, 1)
    window.action["export_runs"].trigger()
    settle(window)
    assert "Written" in window.runs.notice.text.text()
    window.action["delete_runs"].trigger()
    settle(window)
    assert listed(window) == ["run0"]
    window.action["import_runs"].trigger()
    settle(window)
    assert listed(window) == ["run2", "run1", "run0"]
    assert "Taken in: 2." in window.runs.notice.text.text()


def test_nothing_is_deleted_without_a_clear_yes(window, kept, monkeypatch, qtbot):
    asked = []
    monkeypatch.setattr(dialogs, "confirm_delete", lambda _parent, number: asked.append(number))
    window.pages.show_runs()
    settle(window)
    qtbot.keyClick(window.runs.table, Qt.Key.Key_Delete)
    settle(window)
    assert asked == [1]
    assert len(listed(window)) == 3


def test_delete_in_a_field_deletes_a_character(window, kept, monkeypatch, qtbot):
    monkeypatch.setattr(dialogs, "confirm_delete", lambda *_: pytest.fail("asked"))
    window.pages.show_runs()
    settle(window)
    window.runs.search.setText("ab")
    window.runs.search.setCursorPosition(0)
    qtbot.keyClick(window.runs.search, Qt.Key.Key_Delete)
    assert window.runs.search.text() == "b"
    settle(window)


def test_a_damaged_history_is_told_of_and_the_page_works(window, play):
    window.kept.path.write_bytes(b"this is no database at all" * 100)
    window.pages.show_runs()
    settle(window)
    assert "damaged" in window.runs.notice.text.text()
    window.pages.show_playground()
    window.run()
    play(*run_of())
    window.pages.show_runs()
    settle(window)
    assert listed(window) == ["r"]


def test_a_window_without_a_history_keeps_nothing_and_says_so(evil_free_window):
    evil_free_window.pages.show_runs()
    settle(evil_free_window)
    assert "No run is kept here." in evil_free_window.runs.notice.text.text()


@pytest.fixture
def evil_free_window(application, client, catalogue, theme):
    from app.gui.engine_link import EngineLink
    from app.gui.window import MainWindow

    made = MainWindow(EngineLink(client), catalogue, theme)
    made.show()
    yield made
    made.close()
    made.deleteLater()


def test_tabs_and_keys_change_the_page(window, qtbot):
    qtbot.keyClick(window, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    settle(window)
    assert window.runs.isVisible()
    assert not window.action["seams"].isEnabled()
    qtbot.keyClick(window, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    assert window.page.isVisible()
    assert window.action["seams"].isEnabled()
    window.bar._tabs.button(1).click()
    settle(window)
    assert window.runs.isVisible()


def test_tab_leaves_the_list(window, kept, qtbot):
    window.pages.show_runs()
    settle(window)
    window.activateWindow()
    window.runs.table.setFocus()
    qtbot.keyClick(window.runs.table, Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is not window.runs.table


@pytest.mark.parametrize("text", HOSTILE)
def test_the_list_shows_any_text_on_one_line(application, text):
    from app.history.entry import entry_of

    model = RunsModel()
    model.show_entries([entry_of(record_of(run_of("a", prompt=text, pair=text)))])
    for column in range(model.columnCount()):
        assert not set(model.index(0, column).data()) & {chr(code) for code in range(0x20)}
        tooltip = model.index(0, column).data(Qt.ItemDataRole.ToolTipRole)
        assert tooltip.startswith("<qt>")
        assert "<script" not in tooltip


def test_the_word_draft_is_said_once():
    from app.gui.runs_side import facts_of
    from app.history.entry import entry_of

    for name, said in (("draft head for X", ", draft head for X"), ("small", ", draft small")):
        record = record_of(run_of("a"))
        entry = msgspec.structs.replace(entry_of(record), draft=name)
        assert said in facts_of(entry)
        assert "draft draft" not in facts_of(entry)


def test_a_wide_list_shows_its_words_in_full(window):
    long = "embedded-nf4-draft-of-a-person-with-long-names"
    with History(window.kept.path) as history:
        history.add(record_of(run_of(run="run0", pair=long, method="ngram-else-head")))
    window.resize(2500, 1500)
    window.pages.show_runs()
    settle(window)
    table = window.runs.table
    for title in ("When", "Pair", "Method", "Outcome"):
        place = TITLES.index(title)
        assert table.columnWidth(place) >= table.sizeHintForColumn(place), title
    assert table.horizontalScrollBar().maximum() == 0
    window.resize(960, 600)
    QApplication.processEvents()
    assert table.columnWidth(TITLES.index("Pair")) < table.sizeHintForColumn(1)
