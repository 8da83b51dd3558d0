"""Dresses the application in one of two schemes, and follows the system when it changes."""

from __future__ import annotations

from pathlib import Path
from string import Template

from PySide6.QtCore import QObject, QSettings, Qt, Signal
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from app import files
from app.gui.colours import DARK, LIGHT, Colours

_ROLES = QPalette.ColorRole

_KEY = "colours"

_SCHEMES = {"dark": Qt.ColorScheme.Dark, "light": Qt.ColorScheme.Light}
"""What a person may stay with, by the word that is kept."""


class Theme(QObject):
    """The colours in force; `changed` is emitted after the application has been dressed anew."""

    changed = Signal()
    chosen = Signal()
    """The person has chosen a scheme, or to follow the system; the colours may be as before."""

    def __init__(self, application: QApplication, *, choices: Path | None = None) -> None:
        """`choices` is the file in which the window's choices are kept; without it none is."""
        super().__init__(application)
        self._application = application
        self._kept = QSettings(str(choices), QSettings.Format.IniFormat) if choices else None
        kept = str(self._kept.value(_KEY, "")) if self._kept else ""
        self._forced: Qt.ColorScheme | None = _SCHEMES.get(kept)
        self.colours = self._wanted()
        application.setStyle("Fusion")
        application.styleHints().colorSchemeChanged.connect(self._follow)
        self._dress()

    @property
    def forced(self) -> Qt.ColorScheme | None:
        """The scheme that is stayed with; None follows the system."""
        return self._forced

    def force(self, scheme: Qt.ColorScheme | None) -> None:
        """Stays with one scheme; None follows the system again."""
        self._forced = scheme
        if self._kept is not None:
            words = {known: word for word, known in _SCHEMES.items()}
            self._kept.setValue(_KEY, words.get(scheme, "") if scheme else "")
            self._kept.sync()
        self._follow()
        self.chosen.emit()

    def follow_system(self) -> None:
        """Takes the colours of the system."""
        self.force(None)

    def go_dark(self) -> None:
        """Stays dark."""
        self.force(Qt.ColorScheme.Dark)

    def go_light(self) -> None:
        """Stays light."""
        self.force(Qt.ColorScheme.Light)

    def _follow(self) -> None:
        """Dresses the application anew if another scheme is wanted."""
        wanted = self._wanted()
        if wanted is not self.colours:
            self.colours = wanted
            self._dress()
            self.changed.emit()

    def _wanted(self) -> Colours:
        scheme = self._forced or self._application.styleHints().colorScheme()
        return DARK if scheme == Qt.ColorScheme.Dark else LIGHT

    def _dress(self) -> None:
        self._application.setPalette(palette(self.colours))
        self._application.setStyleSheet(style_sheet(self.colours))


def palette(colours: Colours) -> QPalette:
    """The palette of a scheme, for all that the style sheet does not reach."""
    made = QPalette()
    table = {
        _ROLES.Window: colours.window,
        _ROLES.WindowText: colours.text,
        _ROLES.Base: colours.field,
        _ROLES.AlternateBase: colours.panel,
        _ROLES.Text: colours.text,
        _ROLES.PlaceholderText: colours.muted,
        _ROLES.Button: colours.panel,
        _ROLES.ButtonText: colours.text,
        _ROLES.ToolTipBase: colours.card,
        _ROLES.ToolTipText: colours.text,
        _ROLES.Highlight: colours.selection.ground,
        _ROLES.HighlightedText: colours.selection.text,
        _ROLES.Link: colours.accent,
        _ROLES.Accent: colours.accent,
    }
    for role, colour in table.items():
        made.setColor(role, QColor(colour))
    for role in (_ROLES.WindowText, _ROLES.Text, _ROLES.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, role, QColor(colours.muted))
    return made


def style_sheet(colours: Colours) -> str:
    """The style sheet of a scheme."""
    plain = {name: value for name, value in vars(colours).items() if isinstance(value, str)}
    tints = {
        "selection_text": colours.selection.text,
        "selection_ground": colours.selection.ground,
        "caution": colours.corrected.text,
        "trouble_text": colours.trouble.text,
        "trouble_ground": colours.trouble.ground,
    }
    icons = files.resource("icons").as_posix()
    sheet = files.resource("window.qss").read_text(encoding="utf-8")
    return Template(sheet).substitute(plain, **tints, icons=icons)
