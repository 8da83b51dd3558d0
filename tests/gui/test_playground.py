"""The page gives its room to what needs it."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication, QScrollArea

NOTES = ("One note, which is so long that it is wrapped in a form as narrow as this one.",) * 3


@pytest.mark.parametrize("size", [(1440, 980), (2500, 1500)])
def test_the_settings_take_the_room_they_need_before_the_prompt(window, size):
    window.resize(*size)
    window.page.form.choose_pair("embedded-nf4-draft")
    window.page.form.show_notes(NOTES)
    for _ in range(3):
        QApplication.processEvents()
    scroll = window.page.findChild(QScrollArea, "settings")
    prompt = window.page.prompt.prompt
    assert prompt.height() > prompt.minimumHeight()
    assert scroll.verticalScrollBar().maximum() == 0
    needed = window.page.form.heightForWidth(scroll.viewport().width())
    assert scroll.viewport().height() == needed


def test_a_small_window_keeps_some_lines_for_the_prompt(window):
    window.resize(960, 600)
    window.page.form.choose_pair("embedded-nf4-draft")
    window.page.form.show_notes(NOTES)
    for _ in range(3):
        QApplication.processEvents()
    prompt = window.page.prompt.prompt
    assert prompt.height() >= 4 * prompt.fontMetrics().lineSpacing()
    assert window.page.findChild(QScrollArea, "settings").height() > 100
