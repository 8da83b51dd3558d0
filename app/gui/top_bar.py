"""The bar above the page: the name, the pages, how the engine stands, and a few actions."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QPushButton, QToolButton

from app.gui.actions import make_menu
from app.gui.elided import Elided
from app.gui.plain import label, scaled_font

SHOWN = ("open", "export")
"""Actions that have a button of their own; the menu has all of them."""

PAGES = ("show_playground", "show_runs", "show_train", "show_models")
"""The actions that show a page, in the order of the tabs."""


class TopBar(QFrame):
    """The state gives way where there is no room; the buttons do not."""

    def __init__(self, actions: dict[str, QAction]) -> None:
        super().__init__()
        self.setObjectName("bar")
        name = label("Foretoken")
        scaled_font(name, 1.15, bold=True)
        self.state = Elided(tone="muted")
        self.state.setAccessibleName("State of the engine")
        scaled_font(self.state, 0.92)
        self.menu = _quiet_button()
        self.menu.setText("&Menu")
        self.menu.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu.setMenu(make_menu(actions, self))
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 0, 10, 0)
        row.addWidget(name)
        row.addSpacing(10)
        self._tabs = QButtonGroup(self)
        for place, page in enumerate(PAGES):
            self._tabs.addButton(_tab(actions[page]), place)
            row.addWidget(self._tabs.button(place))
        self.show_page(0)
        row.addStretch(1)
        row.addWidget(self.state, 1000)
        row.addSpacing(8)
        for shown in SHOWN:
            button = _quiet_button()
            button.setDefaultAction(actions[shown])
            row.addWidget(button)
        row.addWidget(self.menu)

    def show_page(self, place: int) -> None:
        """Marks the tab of the page that is shown."""
        self._tabs.button(place).setChecked(True)


def _tab(action: QAction) -> QPushButton:
    made = QPushButton(action.text())
    made.setObjectName("tab")
    made.setCheckable(True)
    made.setToolTip(action.toolTip())
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    made.clicked.connect(lambda _checked=False: action.trigger())
    return made


def _quiet_button() -> QToolButton:
    made = QToolButton()
    made.setObjectName("quiet")
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return made
