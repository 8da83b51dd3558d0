"""The top bar and the pages below it, one of which is shown."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.gui.models_page import ModelsPage
from app.gui.playground import Playground
from app.gui.runs_page import RunsPage
from app.gui.top_bar import TopBar
from app.gui.train_page import TrainPage


class Pages(QWidget):
    """Turns from page to page, and gives the keyboard to what is shown."""

    turned = Signal()
    """A page is shown: another one than before, or the same anew."""

    def __init__(
        self,
        bar: TopBar,
        playground: Playground,
        *,
        runs: RunsPage,
        train: TrainPage,
        models: ModelsPage,
    ) -> None:
        super().__init__()
        self._bar, self._playground = bar, playground
        self._runs, self._train, self._models = runs, train, models
        self._stack = QStackedWidget()
        for page in (playground, runs, train, models):
            self._stack.addWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(bar)
        column.addWidget(self._stack, 1)

    def shows(self, page: QWidget) -> bool:
        """Whether this page is shown."""
        return self._stack.currentWidget() is page

    def show_playground(self) -> None:
        """Shows the page where runs are made."""
        self._show(self._playground)

    def show_runs(self) -> None:
        """Shows the page of kept runs."""
        self._show(self._runs)
        self._runs.take_keyboard()

    def show_train(self) -> None:
        """Shows the page where heads are taught."""
        self._show(self._train)
        self._train.take_keyboard()

    def show_models(self) -> None:
        """Shows the page of models."""
        self._show(self._models)
        self._models.take_keyboard()

    def search_list(self) -> None:
        """Gives the keyboard to the search of the models on their page, else of the kept runs."""
        if self.shows(self._models):
            self._models.search_list()
            return
        self.show_runs()
        self._runs.show_list()
        self._runs.search.setFocus()
        self._runs.search.selectAll()

    def focus_prompt(self) -> None:
        """Gives the keyboard to the prompt."""
        self.show_playground()
        self._playground.prompt.prompt.setFocus()

    def _show(self, page: QWidget) -> None:
        self._runs.side.flush()
        self._stack.setCurrentWidget(page)
        self._bar.show_page(self._stack.currentIndex())
        self.turned.emit()
