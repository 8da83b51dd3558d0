"""The question for a newer version is asked by who wants it, and by nobody else."""

from __future__ import annotations

import pytest

from app.gui import updates
from app.gui.background import Background
from app.gui.strips import Notice
from app.gui.updates import Updates
from app.library.updates import Release
from app.run.problems import Problem

NEWER = Release("9.0.0", "https://example.org/9.0")


@pytest.fixture
def asked(monkeypatch):
    """How often it was asked; what it answers is the list's own last entry, put in by a test."""
    calls: list[object] = []
    answers: list[Release | Problem | None] = [None]

    def newer_release():
        calls.append(None)
        if isinstance(answers[-1], Problem):
            raise answers[-1]
        return answers[-1]

    monkeypatch.setattr(updates, "newer_release", newer_release)
    return calls, answers


@pytest.fixture
def made(application, tmp_path):
    notice, background = Notice(), Background()

    def make() -> Updates:
        return Updates(tmp_path / "window.ini", notice, background)

    def settle() -> str:
        background.wait(5.0)
        background.deliver()
        return notice.text.text() if not notice.isHidden() else ""

    return make, settle


def test_nothing_is_asked_unless_it_is_switched_on(asked, made):
    make, settle = made
    make().look()
    assert settle() == ""
    assert asked[0] == []
    assert not make().wanted


def test_the_choice_is_kept_and_a_newer_version_told_of_at_the_next_start(asked, made):
    make, settle = made
    make().set_wanted(True)
    assert "newest version" in settle()
    asked[1].append(NEWER)
    again = make()
    assert again.wanted
    again.look()
    assert settle().startswith("Foretoken 9.0.0 is out; this is ")
    assert settle().endswith(NEWER.page)
    again.set_wanted(False)
    make().look()
    settle()
    assert len(asked[0]) == 2


def test_a_start_without_a_connection_says_nothing_of_it(asked, made):
    make, settle = made
    asked[1].append(Problem("It could not be asked.", "Check the connection."))
    first = make()
    first.set_wanted(True)
    assert "could not be asked" in settle()
    first._notice.hide()
    make().look()
    assert settle() == ""
    assert len(asked[0]) == 2


def test_the_window_has_the_switch_and_it_is_off(window):
    assert not window.action["updates"].isChecked()
    assert not window.updates.wanted
