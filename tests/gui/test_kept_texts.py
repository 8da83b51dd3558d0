"""What the window keeps for suffix decoding, tells of it, and lets go."""

import pytest
from PySide6.QtWidgets import QApplication
from scripted_engine import run_of

from app import files
from app.engine.protocol import Run
from app.gui import dialogs
from app.library.kept_texts import KeptSize, KeptTexts
from app.run.events import ConditionsSeen
from app.run.flags import Flag


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path / "home"))


def settle(window):
    assert window.background.wait(20)
    window.frame()


def keep():
    KeptTexts(files.kept_texts_file()).add("a-model-1", prompt=[1], ids=[1, 2, 3], most=9)


def test_how_much_is_kept_is_told_and_let_go_after_a_yes(window, monkeypatch):
    asked = []
    answers = [False, True]
    monkeypatch.setattr(
        dialogs, "confirm_forget", lambda _, sizes: asked.append(sizes) or answers.pop(0)
    )
    kept = KeptTexts(files.kept_texts_file())
    keep()
    window.action["forget_texts"].trigger()
    settle(window)
    assert asked == [[KeptSize("a-model-1", 1, 3)]]
    assert kept.sizes() == asked[0]
    window.action["forget_texts"].trigger()
    settle(window)
    settle(window)
    assert kept.sizes() == []
    assert "any more" in window.page.notice.text.text()
    window.action["forget_texts"].trigger()
    settle(window)
    assert len(asked) == 2  # there is nothing to ask
    assert "No text" in window.page.notice.text.text()


def test_the_question_tells_targets_and_sizes(window, monkeypatch):
    seen = []

    def answered(box):
        seen.append(f"{box.text()} {box.informativeText()}")
        return 0

    monkeypatch.setattr("PySide6.QtWidgets.QMessageBox.exec", answered)
    assert not dialogs.confirm_forget(window, [KeptSize("a-model-1", 2, 30)])
    assert "a-model-1: 2 texts, 30 tokens" in seen[0]
    QApplication.processEvents()


def test_a_damaged_file_can_be_let_go_from_the_window(window, monkeypatch):
    path = files.kept_texts_file()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database" * 500)
    monkeypatch.setattr(dialogs, "confirm_forget", lambda *_: False)
    window.action["forget_texts"].trigger()
    settle(window)
    assert "damaged" in window.page.notice.text.text()
    monkeypatch.setattr(dialogs, "confirm_forget", lambda *_: True)
    window.action["forget_texts"].trigger()
    settle(window)
    settle(window)
    assert KeptTexts(path).sizes() == []


def test_a_private_run_asks_that_nothing_be_kept_also_when_it_goes_on(window, client, play):
    window.page.form.rows["method"].field.put("suffix")
    window.run()
    assert client.sent[-1].settings.method_options["keep"] is True
    play(*run_of(run=client.sent[-1].run))
    window.page.prompt.private.setChecked(True)
    window.run()
    private = client.sent[-1]
    assert isinstance(private, Run)
    assert private.settings.method_options["keep"] is False
    play(*run_of(run=private.run))
    window.page.prompt.private.setChecked(False)
    window.running.again(window.record)
    assert client.sent[-1].settings.method_options.get("keep", False) is False
    # What the form shows is what was asked for: later runs keep their texts as before.
    assert window.page.settings().method_options["keep"] is True


def test_a_repeated_text_is_told_beside_the_verdict(window, client, play):
    window.run()
    *events, end = run_of(run=client.sent[-1].run)
    flag = Flag("repeated text", "its prompt was run before")
    play(*events, ConditionsSeen(client.sent[-1].run, (flag,)), end)
    told = window.page.verdict.line.cautions
    assert told.isVisible()
    assert told.text() == "Caution: repeated text"
    assert "its prompt was run before" in told.toolTip()
