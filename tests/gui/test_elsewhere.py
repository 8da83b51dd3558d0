"""Set-ups that leave for other programs, and vLLM's that come in."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from scripted_engine import run_of

from app.elsewhere.programs import recipes
from app.gui import dialogs

NGRAM = '{"method": "ngram", "num_speculative_tokens": 7, "prompt_lookup_max": 3}'


@pytest.fixture
def told(window, play, monkeypatch):
    """Fills the form from this JSON, and returns what the notice says."""

    def tell(text):
        monkeypatch.setattr(dialogs, "ask_config", lambda parent: text)
        window.action["vllm_config"].trigger()
        play()
        return window.page.notice.text.text()

    return tell


def test_the_run_that_is_shown_can_be_copied_for_every_program(window, play):
    window.run()
    play(*run_of())
    window.action["use_elsewhere"].trigger()
    dialog = window.elsewhere.dialog
    assert dialog.isVisible()
    assert "The run that is shown" in dialog.about.text()
    for place, one in enumerate(recipes(window.record)):
        dialog.programs.setCurrentIndex(place)
        assert one.release in dialog.programs.currentText()
        assert dialog.text.toPlainText() == one.text
        assert all(line in dialog.notes.text() for line in one.not_carried)
        dialog.copy.click()
        assert QGuiApplication.clipboard().text() == one.text
    dialog.close()


def test_before_a_run_it_is_the_form_that_is_meant(window, play):
    play()
    window.page.form.rows["method"].field.put("ngram")
    window.action["use_elsewhere"].trigger()
    dialog = window.elsewhere.dialog
    assert "settings of the form" in dialog.about.text()
    assert dialog.text.toPlainText().startswith("vllm serve path/to/smollm2-135m-instruct ")
    dialog.close()


def test_a_program_without_a_counterpart_has_nothing_to_copy(window, play):
    play()
    window.page.form.rows["method"].field.put("ngram-else-head")
    window.action["use_elsewhere"].trigger()
    dialog = window.elsewhere.dialog
    assert dialog.text.toPlainText() == ""
    assert not dialog.copy.isEnabled()
    assert "no counterpart" in dialog.notes.text()
    dialog.close()


def test_the_dialog_is_walked_with_the_keyboard(window, play, qtbot):
    play()
    window.action["use_elsewhere"].trigger()
    dialog = window.elsewhere.dialog
    dialog.activateWindow()
    qtbot.waitUntil(dialog.programs.hasFocus)
    seen = [QApplication.focusWidget()]
    for _ in range(3):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        seen.append(QApplication.focusWidget())
    assert {dialog.programs, dialog.text} <= set(seen)
    assert len(set(seen)) == 4 - (not dialog.copy.isEnabled())
    qtbot.keyClick(dialog.programs, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def test_a_hostile_name_is_only_text(window, play):
    window.run()
    play(*run_of(pair="</script>\u202e\x1b[2J"))
    window.action["use_elsewhere"].trigger()
    assert "\x1b" not in window.elsewhere.dialog.text.toPlainText()
    window.elsewhere.dialog.close()


def test_vllms_words_fill_the_form(window, told):
    before = window.page.settings()
    said = told(NGRAM[:-1] + ', "enforce_eager": true}')
    settings = window.page.settings()
    assert (settings.method, settings.draft_length, settings.rule) == ("ngram", 7, "exact")
    assert settings.method_options["longest"] == 3
    assert settings.method_options["match"] == "first"
    assert settings.pair == before.pair
    assert "enforce_eager: true has no effect here" in said


def test_a_draft_brings_its_pair(window, told):
    config = {"model": "smollm2-135m-instruct", "num_speculative_tokens": 2}
    assert "embedded-nf4-draft" in told(json.dumps(config))
    assert window.page.settings().pair == "embedded-nf4-draft"
    assert window.page.settings().method == "draft-model"
    told(NGRAM)
    assert window.page.settings().pair == "embedded-nf4-draft"


def test_what_cannot_be_honoured_leaves_the_form_as_it_was(window, told):
    before = window.page.settings()
    assert "temperature is a sampling parameter" in told('{"method": "ngram", "temperature": 1}')
    assert window.page.settings() == before
    assert told(None)
    assert window.page.settings() == before
