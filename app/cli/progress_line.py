"""Progress of what takes over a second: a live line on a terminal, elsewhere a line a stage."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
)
from rich.progress import (
    Progress as LiveProgress,
)

from app.cli.screen import say
from app.reports.plain_text import pictured
from app.run.events import Progress
from app.run.pace import Pace


class ProgressLine:
    """Shows the stage at hand until it is closed; the next stage opens it again."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stage = ""
        self._pace = Pace()
        self._live: LiveProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def show(self, progress: Progress) -> None:
        """Shows how far a stage has come."""
        if progress.stage != self._stage:
            self.close()
            self._stage = progress.stage
            self._open(progress)
        if self._live is not None and self._task is not None:
            pace = self._pace.words(progress)
            self._live.update(self._task, completed=progress.done, total=progress.total, pace=pace)

    def close(self) -> None:
        """Takes the live line away."""
        if self._live is not None:
            self._live.stop()
        self._live = self._task = None
        self._stage = ""

    def _open(self, progress: Progress) -> None:
        if not self._console.is_terminal:
            say(self._console, f"{progress.stage} …")
            return
        columns: list[ProgressColumn] = [
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
        ]
        if progress.total is not None:
            columns.append(BarColumn())
        if progress.unit == "bytes":
            columns.append(DownloadColumn())
        columns.append(TextColumn("{task.fields[pace]}", markup=False))
        self._live = LiveProgress(*columns, console=self._console, transient=True)
        self._task = self._live.add_task(pictured(progress.stage), total=progress.total, pace="")
        self._live.start()
