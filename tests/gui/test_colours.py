"""Colours that can be read in both schemes, and told apart by everyone."""

from __future__ import annotations

from itertools import combinations

import pytest
from colour_sight import SIGHTS, contrast, difference
from PySide6.QtCore import Qt

from app.gui.colours import CUES, DARK, LIGHT

SCHEMES = pytest.mark.parametrize("colours", [DARK, LIGHT], ids=["dark", "light"])
SHOWN = ("accepted", "corrected", "bonus", "rejected", "plain")


@SCHEMES
def test_every_text_stands_out_from_its_ground(colours):
    for tint in colours.readable():
        assert contrast(tint.text, tint.ground) >= 4.5, tint


@SCHEMES
def test_lines_of_charts_and_frames_of_focus_stand_out(colours):
    for colour in (colours.speculative, colours.baseline, colours.accent, colours.muted):
        assert contrast(colour, colours.panel) >= 3, colour


@SCHEMES
@pytest.mark.parametrize("sight", SIGHTS)
def test_statuses_are_told_apart_by_their_grounds(colours, sight):
    for one, other in combinations(SHOWN, 2):
        apart = difference(colours.tint(one).ground, colours.tint(other).ground, sight)
        assert apart >= 10, (one, other, apart)


@SCHEMES
@pytest.mark.parametrize("sight", SIGHTS)
def test_the_lanes_are_told_apart(colours, sight):
    assert difference(colours.speculative, colours.baseline, sight) >= 20


def test_statuses_that_share_a_page_differ_in_a_cue_that_is_not_colour():
    assert len({CUES[status] for status in ("accepted", "corrected", "bonus", "rejected")}) == 4


def test_the_page_follows_a_change_of_scheme_at_once(window, theme, play):
    assert window.page.lanes[0].text._colours is DARK
    theme.force(Qt.ColorScheme.Light)
    assert theme.colours is LIGHT
    assert window.page.lanes[0].text._colours is LIGHT
    background = window.page.charts.charts[0].plot.backgroundBrush().color().name()
    assert background == LIGHT.panel
    theme.force(Qt.ColorScheme.Dark)


def test_the_system_decides_unless_the_person_does(theme, application):
    theme.force(None)
    application.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert theme.colours is LIGHT  # the offscreen platform knows no scheme
    theme.force(Qt.ColorScheme.Dark)
    assert theme.colours is DARK
