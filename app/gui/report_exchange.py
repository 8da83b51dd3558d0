"""How records leave the window and come back: the dialogs, and the work in threads of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.gui.background import Background
from app.gui.dialogs import ask_export_path, ask_report_path
from app.gui.strips import Notice
from app.reports import read_record, write_report
from app.run.problems import Problem
from app.run.record import RunRecord


class ReportExchange:
    """Writes and reads reports; what came of it is told when the background delivers."""

    def __init__(
        self,
        parent: QWidget,
        notice: Notice,
        background: Background,
        *,
        opened: Callable[[RunRecord], None],
    ) -> None:
        self._parent = parent
        self._notice = notice
        self._opened = opened
        self._background = background

    def export(self, record: RunRecord) -> None:
        """Asks for a path and writes the record there."""
        path = ask_export_path(self._parent, record)
        if path is not None:
            self._background.start(
                lambda: write_report(record, path, overwrite=True), self._written, self._failed
            )

    def open(self) -> None:
        """Asks for a report and reads it."""
        path = ask_report_path(self._parent)
        if path is not None:
            self._background.start(lambda: read_record(path), self._opened, self._failed)

    def _written(self, files: list[Path]) -> None:
        self._notice.show_news(f"Written: {', '.join(map(str, files))}")

    def _failed(self, problem: Problem) -> None:
        self._notice.show_trouble(problem.message, problem.remedy)
