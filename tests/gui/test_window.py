"""The window as a person drives it: run, stop, trouble, export, close."""

from __future__ import annotations

import json
from itertools import pairwise
from operator import attrgetter

import pytest
from msgspec import structs
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from scripted_engine import STORY, costed, record_of, run_of

from app.appraisal.appraise import appraise
from app.appraisal.time_split import time_split
from app.engine.protocol import (
    CountTokens,
    EngineEnded,
    JobCancelled,
    JobProblem,
    Run,
    Stop,
    TokenCount,
)
from app.gui import dialogs, report_exchange
from app.gui.actions import ACTIONS
from app.gui.private_run import without_text
from app.gui.rows_panel import PanelRow
from app.gui.verdict_line import BEFORE, MEANWHILE
from app.run.events import At, Divergence, LaneEnded, Progress, PromptRead, RunEnded, Token
from app.run.figures import FIGURES
from app.run.flags import Flag
from app.run.metrics import counts, same_text
from app.run.preparation import DeviceMemory, EngineReady, Prepare, Release, Released
from app.run.problems import EMPTY_PROMPT
from app.run.settings import Sampling


def test_starts_the_engine_and_makes_the_default_pair_ready(window, client):
    assert client.starts == 1
    assert client.sent[0] == Prepare("embedded")
    assert "Engine ready" in window.bar.state.text()
    assert "re-quantised from Q4_1" in window.bar.state.text()
    assert window.page.run_button.isEnabled()
    assert window.page.prompt.prompt.text()


def test_a_run_streams_into_both_lanes_and_the_verdict(window, client, play):
    window.run()
    sent = client.sent[-1]
    assert isinstance(sent, Run)
    assert (sent.settings.order, sent.settings.detail) == ("interleaved", "full")
    play(*run_of()[:60])
    assert "Running" in window.bar.state.text()
    assert not window.page.run_button.isEnabled()
    play(*run_of()[60:])
    for lane in window.page.lanes:
        assert lane.text.toPlainText() == STORY
        assert lane.text.record_text() == STORY
    figure = FIGURES["decode_speedup"]
    shown = window.page.verdict.tiles["decode_speedup"].number.text()
    assert shown == figure.written(figure.value(window.record))
    assert window.page.verdict.tiles["same_text"].number.text() == "Same"
    assert window.page.run_button.isEnabled()


def test_run_pressed_while_the_pair_is_made_ready_waits_for_it(window, client, play):
    window.page.form.choose_pair("embedded-nf4-draft")
    assert isinstance(client.sent[-1], Prepare)
    window.run()
    assert isinstance(client.sent[-1], Prepare)
    window.renew()
    assert window.page.run_button.text() == "Runs when ready"
    client.ready()
    play()
    assert any(isinstance(command, Run) for command in client.sent)


def test_choosing_a_pair_of_a_hub_fetches_nothing_but_a_run_does(window, client, monkeypatch):
    monkeypatch.setattr("app.library.sources.find_in_cache", lambda source: None)
    sent = len(client.sent)
    window.page.form.choose_pair("qwen2.5-72b-1.5b")
    assert not any(isinstance(command, Prepare) for command in client.sent[sent:])
    assert window.background.wait(10)
    window.frame()
    assert "a run fetches it first (148.5 GB)" in window.page.form.picker.note.text()
    window.run()
    assert client.sent[-1].settings.pair == "qwen2.5-72b-1.5b"


def test_stop_forgets_the_run_that_waits(window, client, play):
    window.page.form.choose_pair("embedded-nf4-draft")
    window.run()
    window.stop()
    assert isinstance(client.sent[-1], Stop)
    play(JobCancelled())
    assert isinstance(client.sent[-1], Stop)
    assert window.page.run_button.isEnabled()


def test_progress_shows_with_cancel_and_goes(window, client, play):
    window.page.form.choose_pair("embedded-nf4-draft")
    play(Progress("Fetching", 20e6, 80e6, "bytes"))
    assert window.page.progress.isVisible()
    window.page.progress.cancel.click()
    assert isinstance(client.sent[-1], Stop)
    play(JobCancelled())
    assert not window.page.progress.isVisible()


def test_reading_the_prompt_is_progress_too(window, play):
    window.run()
    events = run_of()
    play(*events[:2], PromptRead(At("r", "speculative"), 512, 2048))
    assert window.page.progress.isVisible()
    play(PromptRead(At("r", "speculative"), 2048, 2048))
    assert not window.page.progress.isVisible()


def test_a_killed_engine_leaves_the_partial_run_and_run_works_again(window, client, play):
    window.run()
    play(*run_of()[:80])
    before = window.page.lanes[0].text.toPlainText()
    play(EngineEnded("The engine was killed (signal 9).", expected=False))
    assert window.page.notice.isVisible()
    assert "signal 9" in window.page.notice.text.text()
    assert window.page.lanes[0].text.toPlainText() == before
    assert window.record.outcome == "engine ended"
    assert "broke off" in window.page.lanes[0].footer.text()
    assert window.page.run_button.isEnabled()
    window.run()
    assert client.starts == 2
    assert isinstance(client.sent[-1], Run)
    assert not window.page.notice.isVisible()


def test_a_run_that_fails_says_why_and_what_to_do(window, play):
    window.run()
    play(*run_of()[:30], RunEnded("r", "failed", "No memory is left.", "Choose NF4."))
    assert window.page.notice.text.text() == "No memory is left.\nChoose NF4."
    assert window.page.run_button.isEnabled()


def test_a_problem_with_the_pair_is_shown_in_place(window, play):
    window.page.form.choose_pair("embedded-nf4-draft")
    play(JobProblem("The download failed.", "Check the network."))
    assert "The download failed." in window.page.notice.text.text()
    window.page.notice.findChildren(type(window.page.stop_button))[0].click()
    assert not window.page.notice.isVisible()


def test_an_empty_prompt_is_complained_of_until_something_is_written(window, play):
    notice, prompt = window.page.notice, window.page.prompt.prompt
    prompt.setPlainText("")
    window.run()
    play(RunEnded("r", "failed", EMPTY_PROMPT, "Write something."))
    prompt.setPlainText("  ")
    assert notice.isVisible()
    prompt.setPlainText("  a")
    assert not notice.isVisible()
    play()
    assert not notice.isVisible()


def test_another_trouble_stays_whatever_is_written(window, play):
    window.run()
    play(*run_of()[:30], RunEnded("r", "failed", "No memory is left.", "Choose NF4."))
    window.page.prompt.prompt.setPlainText("a")
    assert window.page.notice.isVisible()


def test_settings_out_of_range_are_refused_before_they_are_sent(window, client, monkeypatch):
    sent = len(client.sent)
    monkeypatch.setattr(window.page.form.rows["draft_length"].field, "get", lambda: 65)
    window.run()
    assert len(client.sent) == sent
    assert "draft length" in window.page.notice.text.text()


def test_another_pair_chosen_during_a_run_is_made_ready_after_it(window, client, play):
    window.run()
    play(*run_of()[:20])
    window.page.form.choose_pair("embedded-nf4-draft")
    assert isinstance(client.sent[-1], Run)
    play(*run_of()[20:])
    assert client.sent[-1] == Prepare("embedded-nf4-draft")


def test_restart_ends_the_engine_and_prepares_anew(window, client, play):
    window.action["restart"].trigger()
    assert isinstance(client.sent[-1], Prepare)
    assert client.starts == 2
    client.ready()
    play()
    assert "Engine ready" in window.bar.state.text()


def test_the_engine_tells_which_devices_there_are(window, play):
    assert window.page.form.rows["device"].field.isHidden()
    play(
        EngineReady(
            "2", "cpu", (DeviceMemory("cuda:0", "One", 1, 1), DeviceMemory("cpu", "CPU", 1, 1))
        )
    )
    field = window.page.form.rows["device"].field
    assert not field.isHidden()
    assert [field.itemData(place) for place in range(field.count())] == [None, "cuda:0", "cpu"]


def test_models_can_be_released_and_the_next_run_asks_for_them_again(window, client, play):
    window.action["release"].trigger()
    assert isinstance(client.sent[-1], Release)
    assert not window.action["release"].isEnabled()
    play(Released(("Tiny",), 540_000_000))
    assert "540 MB" in window.page.notice.text.text()
    assert not window.action["release"].isEnabled()
    window.run()
    assert isinstance(client.sent[-1], Run)


def test_tokens_are_counted_after_a_pause_in_typing(window, client, play):
    window.page.prompt.prompt.setPlainText("Hello")
    assert window.count.clock.isActive()
    window.count.clock.timeout.emit()
    window.count.clock.stop()
    question = client.sent[-1]
    assert question == CountTokens(question.question, "Hello")
    play(TokenCount(question.question - 1, 99), TokenCount(question.question, 7))
    assert window.page.prompt.tokens.text() == "7 tokens · chat template"


def test_speculation_off_runs_the_target_alone(window, client, play):
    prepares = sum(isinstance(command, Prepare) for command in client.sent)
    window.action["speculation"].trigger()
    window.run()
    settings = client.sent[-1].settings
    assert (settings.method, settings.baseline) == ("nothing", False)
    assert sum(isinstance(command, Prepare) for command in client.sent) == prepares
    play(*run_of(method="nothing", baseline=False, chance=0.0))
    assert not window.page.lanes[1].isVisible()
    assert window.page.lanes[0].title.text() == "Plain decoding"


@pytest.mark.parametrize("suffix", [".json", ".csv", ".md", ".html"])
def test_export_writes_the_record(window, play, monkeypatch, tmp_path, suffix, qtbot):
    window.run()
    play(*run_of())
    path = tmp_path / f"report{suffix}"
    monkeypatch.setattr(report_exchange, "ask_export_path", lambda *_: path)
    window.action["export"].trigger()
    finish_background(window, qtbot)
    assert path.is_file()
    assert "Written" in window.page.notice.text.text()


def test_an_export_that_fails_says_so(window, play, monkeypatch, tmp_path, qtbot):
    window.run()
    play(*run_of())
    monkeypatch.setattr(report_exchange, "ask_export_path", lambda *_: tmp_path / "no" / "x.json")
    window.export()
    finish_background(window, qtbot)
    assert "does not exist" in window.page.notice.text.text()


def test_a_report_that_was_written_opens_again(window, play, monkeypatch, tmp_path, qtbot):
    window.run()
    play(*run_of(draft_length=7, prompt="Another prompt"))
    path = tmp_path / "report.json"
    monkeypatch.setattr(report_exchange, "ask_export_path", lambda *_: path)
    monkeypatch.setattr(report_exchange, "ask_report_path", lambda *_: path)
    window.export()
    finish_background(window, qtbot)
    before = window.record
    window.open_report()
    finish_background(window, qtbot)
    play()
    assert window.record is not before
    assert window.record == before
    assert window.page.lanes[0].text.record_text() == STORY
    assert window.page.prompt.prompt.text() == "Another prompt"
    assert window.page.form.rows["draft_length"].field.get() == 7


def test_a_private_run_leaves_without_prompt_and_text(
    window, client, play, monkeypatch, tmp_path, qtbot
):
    window.page.prompt.private.setChecked(True)
    window.run()
    play(*run_of(run=client.sent[-1].run, prompt="My secret"))
    path = tmp_path / "report.json"
    monkeypatch.setattr(report_exchange, "ask_export_path", lambda *_: path)
    window.export()
    finish_background(window, qtbot)
    written = path.read_text(encoding="utf-8")
    assert "secret" not in written
    assert "lighthouse" not in written
    assert json.loads(written)["outcome"] == "finished"


def test_a_first_difference_is_told_apart_from_a_tie(window, play):
    events = run_of()
    other = [e for e in run_of(STORY.replace("fog", "mist")) if getattr(e, "at", None)]
    changed = [e for e in events if getattr(getattr(e, "at", None), "lane", "") != "baseline"]
    changed[1:1] = [e for e in other if e.at.lane == "baseline"]
    window.run()
    play(*changed)
    tile = window.page.verdict.tiles["same_text"]
    assert tile.number.text() == "Differs"
    at = same_text(window.record).first_difference
    token = Token(1, "secret", "plain")
    play(changed[0], *changed[1:-1], Divergence("r", at, token, token, 0.001, 0.002, 5, tie=True))
    assert tile.number.text() == "Tie"
    assert "numerical tie" in tile.toolTip()
    assert "secret" not in str(without_text(window.record))


def test_run_again_repeats_the_record_and_not_the_form(window, client, play):
    window.run()
    play(*run_of(prompt="First", draft_length=3))
    window.page.prompt.prompt.setPlainText("Second")
    window.action["run_again"].trigger()
    assert client.sent[-1].settings == window.record.settings
    assert window.page.prompt.prompt.text() == "First"


def test_copy_takes_the_text_of_the_lane_with_the_keyboard(window, play):
    window.run()
    play(*run_of("10\u00a0km\nline2\tend\u2028x"))
    window.action["copy_text"].trigger()
    assert QGuiApplication.clipboard().text() == "10\u00a0km\nline2\tend\u2028x"


def test_every_action_has_a_slot_a_help_and_a_shortcut_of_its_own(window):
    shortcuts = [spec.shortcut for spec in ACTIONS if spec.shortcut]
    assert len(set(shortcuts)) == len(shortcuts)
    for spec in ACTIONS:
        assert callable(attrgetter(spec.slot)(window))
        assert spec.help.endswith(".")


@pytest.mark.parametrize("group", dict.fromkeys(spec.group for spec in ACTIONS))
def test_every_action_can_be_walked(window, client, play, group, monkeypatch):
    monkeypatch.setattr(report_exchange, "ask_export_path", lambda *_: None)
    monkeypatch.setattr(report_exchange, "ask_report_path", lambda *_: None)
    monkeypatch.setattr(dialogs, "ask_archive_path", lambda *_: None)
    monkeypatch.setattr(dialogs, "ask_import_path", lambda *_: None)
    monkeypatch.setattr(dialogs, "confirm_delete", lambda *_: False)
    monkeypatch.setattr(dialogs, "ask_config", lambda *_: None)
    for name in [spec.name for spec in ACTIONS if spec.group == group and spec.slot != "close"]:
        window.pages.show_playground()
        client.ready()
        play()
        window.run()
        play(*run_of(run=name))
        assert (window.record.run, window.record.outcome) == (name, "finished")
        for _ in range(2):
            window.action[name].trigger()
            play()
        play(LaneEnded(At(name, "speculative"), "length"), *run_of(run=name))


@pytest.mark.parametrize("how", ["shortcut", "button"])
def test_a_run_gives_the_keyboard_to_the_text_so_that_letters_are_shortcuts(
    window, client, qtbot, how
):
    prompt = window.page.prompt.prompt
    before = prompt.text()
    prompt.setFocus()
    if how == "shortcut":
        qtbot.keyClick(prompt, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    else:
        qtbot.mouseClick(window.page.run_button, Qt.MouseButton.LeftButton)
    assert isinstance(client.sent[-1], Run)
    lane = window.focusWidget()
    assert lane is window.page.lanes[0].text
    qtbot.keyClick(lane, Qt.Key.Key_R)
    qtbot.keyClick(lane, Qt.Key.Key_L)
    assert window.action["thrown"].isChecked()
    assert window.action["seams"].isChecked()
    assert prompt.text() == before


def test_an_empty_prompt_keeps_the_keyboard(window, qtbot):
    prompt = window.page.prompt.prompt
    prompt.setPlainText("")
    prompt.setFocus()
    qtbot.keyClick(prompt, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert window.focusWidget() is prompt


def test_a_run_with_a_number_outside_its_limits_does_not_start_and_says_why(window, client, qtbot):
    row = window.page.form.rows["draft_length"]
    sent = len(client.sent)
    row.field.setFocus()
    row.field.selectAll()
    qtbot.keyClicks(row.field, "99")
    qtbot.keyClick(row.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert len(client.sent) == sent
    assert row.said.text() == "At most 64; 99 was typed."
    assert row.said.isVisible()
    assert window.focusWidget() is row.field
    qtbot.keyClicks(row.field, "6")  # it is all selected
    assert not row.said.isVisible()
    qtbot.keyClick(row.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert client.sent[-1].settings.draft_length == 6
    assert window.focusWidget() is window.page.lanes[0].text


def test_keys_reach_the_actions(window, client, qtbot):
    field = window.page.prompt.prompt
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert isinstance(client.sent[-1], Run)
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert isinstance(client.sent[-1], Stop)
    qtbot.keyClick(field, Qt.Key.Key_R)
    assert not window.action["thrown"].isChecked()
    window.page.lanes[0].text.setFocus()
    qtbot.keyClick(window.page.lanes[0].text, Qt.Key.Key_R)
    qtbot.keyClick(window.page.lanes[0].text, Qt.Key.Key_L)
    assert window.action["thrown"].isChecked()
    assert window.action["seams"].isChecked()


def test_the_record_of_a_run_equals_the_one_made_from_its_events(window, play):
    window.run()
    play(*run_of())
    assert window.record == record_of(run_of())


def test_the_verdict_comes_with_the_end_and_says_why_on_hover(window, play):
    line = window.page.verdict.line
    assert line.sentence.text() == BEFORE
    window.run()
    events = costed(run_of())
    play(*events[:60])
    assert line.sentence.text() == MEANWHILE
    play(*events[60:])
    told = appraise(window.record).verdict.text
    assert line.sentence.text().lower() == told.lower()
    assert told.startswith("pays: 2.20× (one pair, no spread), predicted best draft length 6, ")
    for word in ("Break-even acceptance", "Predicted speed-up", "Accounted speed-up: 2.2"):
        assert word in line.sentence.toolTip()
    assert not line.cautions.isVisible()
    tip = window.page.verdict.tiles["decode_speedup"].toolTip()
    assert FIGURES["request_speedup"].text(window.record) in tip


def test_cautions_stand_beside_the_verdict_and_on_the_numbers_they_touch(window, play):
    window.run()
    play(*costed(run_of(), flags=(Flag("battery"),)))
    shown = window.page.verdict
    assert shown.line.sentence.text().endswith(
        ", but the run was disturbed (battery): measure again on mains power"
    )
    assert shown.line.sentence.property("tone") == ""
    assert shown.line.cautions.text() == "Caution: battery"
    assert "ran on its battery" in shown.line.cautions.toolTip()
    assert "battery" in shown.tiles["baseline_decode_tokens_per_second"].toolTip()
    assert "battery" not in shown.tiles["acceptance_rate"].toolTip()
    window.run()
    play(run_of()[0])
    assert not shown.line.cautions.isVisible()


def test_the_page_of_costs_shows_what_the_record_says(window, play):
    pages = window.page.charts
    window.run()
    play(*costed(run_of()))
    pages.switch.buttons.button(1).click()
    assert pages.currentWidget() is pages.cost
    chart = pages.cost.chart
    assert chart.number.text() == FIGURES["verify_cost"].text(window.record)
    steps = window.record.costs.single_steps
    assert list(chart.own.opts["x"]) == [5]
    assert list(chart.own.opts["height"]) == [steps[5]]
    assert list(chart.others.opts["height"]) == [steps[w] for w in range(1, 10) if w != 5]
    assert not chart.step.isVisible()
    words = pages.cost.time.words()
    verify = next(row for row in time_split(window.record) if row.label == "the target's passes")
    place = words.index(verify.label)
    assert words[place + 1 : place + 3] == [f"{value:.2f}" for value in verify.milliseconds]
    assert "Break-even acceptance" in pages.cost.found.words()
    pages.switch.buttons.button(0).click()
    assert pages.currentWidget() is pages.course


def test_the_page_of_costs_follows_while_it_is_seen(window, play):
    pages = window.page.charts
    pages.switch.buttons.button(1).click()
    assert pages.cost.time.words() == pages.cost.found.words() == []
    window.run()
    play(*run_of()[:60])
    assert "a whole loop" in pages.cost.time.words()
    assert pages.cost.found.words() == []
    play(*run_of()[60:])
    assert "Cost of passes" in pages.cost.found.words()


def test_all_numbers_are_of_one_moment_while_a_run_goes_on(window, client):
    """Renewed as the slow clock does it, one part a tick, while tokens come in between."""
    window.run()
    events = run_of()
    client.play(*events[:30])
    window.frame()
    window.renew()
    corner = next(one for one in window.page.charts.charts if one.figure == "tokens_per_loop")
    tile, footer = window.page.verdict.tiles["tokens_per_loop"], window.page.lanes[0].footer
    numbers, charts = window._slow_clock._parts[1:]
    shown = []
    for place, part in enumerate((numbers, charts, numbers, numbers, charts), 1):
        client.play(*events[30 * place : 30 * (place + 1)])
        window.frame()
        part.renew()
        tally = counts(window.record.repetitions("speculative")[-1])
        assert tile.number.text() == corner.number.text() == f"{tally.tokens_per_loop:.2f}"
        assert f" {tally.rounds} loops " in footer.text()
        shown.append(tally.rounds)
    assert len(set(shown)) > 2


def test_words_about_what_pays_are_wrapped_and_leave_no_gaps(window, play):
    pages = window.page.charts
    pages.switch.buttons.button(1).click()
    window.run()
    play(*costed(run_of()))
    found = pages.cost.found
    more, few = (
        [PanelRow(("name", "word " * 30))] * 5,
        [PanelRow(("name", "word " * 30)), PanelRow(("name", "a word"))],
    )
    for rows in (more, few):
        found.show_rows(rows)
        QApplication.processEvents()
        grid = found._grid
        shown = [grid.itemAtPosition(line, 1).widget() for line in range(len(rows))]
        for cell in shown:
            assert cell.height() >= cell.heightForWidth(cell.width())
        gaps = [b.y() - (a.y() + a.height()) for a, b in pairwise(shown)]
        assert set(gaps) <= {grid.verticalSpacing()}


def test_a_lossy_run_is_marked_from_its_beginning(window, play):
    window.run()
    first, *others = run_of()
    asked = structs.replace(first.settings, rule="lenience", sampling=Sampling(temperature=1.0))
    play(structs.replace(first, settings=asked, lossless=False), *others[:30])
    badge = window.page.verdict.line.badge
    assert (badge.isVisible(), badge.text()) == (True, "LOSSY (lenience)")
    assert window.page.lanes[0].promise.text() == "LOSSY · lenience rule"
    assert "changes the target" in badge.toolTip()


def finish_background(window, qtbot) -> None:
    """Waits for the window's background work and lets it deliver."""
    assert window.background.wait(20)
    window.frame()
