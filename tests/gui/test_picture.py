"""The verdict as a picture in the clipboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication
from scripted_engine import run_of

from app.gui import picture
from app.gui.colours import DARK, LIGHT

SCHEMES = {Qt.ColorScheme.Dark: DARK, Qt.ColorScheme.Light: LIGHT}


@pytest.fixture
def copied(window, play):
    """Runs, copies, and returns the picture."""

    def copy(**settings):
        window.run()
        play(*run_of(**settings))
        window.action["copy_picture"].trigger()
        play()
        return QGuiApplication.clipboard().image()

    return copy


def rows_of(image, colour: QColor) -> set[int]:
    """Rows of pixels that hold this colour."""
    return {
        y
        for y in range(image.height())
        for x in range(0, image.width())
        if image.pixelColor(x, y) == colour
    }


@pytest.mark.parametrize("scheme", SCHEMES, ids=["dark", "light"])
def test_the_picture_has_twice_the_size_and_the_colours_in_force(window, copied, scheme):
    window.theme.force(scheme)
    image = copied()
    colours = SCHEMES[scheme]
    row = window.page.verdict
    assert image.width() == 2 * (row.width() + 28)
    assert image.height() > 2 * row.height()
    assert image.pixelColor(0, 0) == QColor(colours.window)
    accent = rows_of(image, QColor(colours.accent))  # the speed-up, and nothing beside the row
    top = (image.height() - 2 * row.height()) // 5
    assert accent
    assert min(accent) > top
    text, muted = rows_of(image, QColor(colours.text)), rows_of(image, QColor(colours.muted))
    assert min(text) < min(accent)
    assert max(muted) > max(accent) + 40


def test_it_says_what_ran_where_and_when(window, copied):
    copied(pair="embedded")
    record = window.record
    assert picture.heading(record) == "Foretoken · embedded · N-gram, draft length 4"
    words = " ".join(picture.facts(record))
    for part in (record.started, "cpu", "target fp32", "2 threads"):
        assert part in words
    assert "copied as a picture" in window.page.notice.text.text()


def test_hostile_names_are_one_line_of_plain_text(window, copied):
    image = copied(pair="</script>\u202e\x1b[2J\n" + "x" * 400)
    assert image.width() == 2 * (window.page.verdict.width() + 28)
    assert "\n" not in window.page.notice.text.text()


def test_without_a_run_there_is_nothing_to_copy(window, play):
    play()
    assert not window.action["copy_picture"].isEnabled()
    QGuiApplication.clipboard().clear()
    window.copy_picture()
    assert QGuiApplication.clipboard().image().isNull()
