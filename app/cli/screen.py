"""The two consoles: results on stdout, all else on stderr; text is never taken for markup."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.style import Style

from app.reports.plain_text import pictured
from app.run.problems import Problem

_NO_STYLE = Style.null()


def results() -> Console:
    """Where results go."""
    return Console(highlight=False, markup=False, emoji=False)


def remarks() -> Console:
    """Where progress, warnings and problems go."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def write(console: Console, text: str, *, style: Style = _NO_STYLE) -> None:
    """Writes text as it is: no wrapping, no markup, and no control characters that act."""
    put(console, Segments([Segment(pictured(text), style)]), end="", soft_wrap=True)


def say(console: Console, text: str, *, style: Style = _NO_STYLE) -> None:
    """Writes a line."""
    write(console, f"{text}\n", style=style)


def put(
    console: Console, what: RenderableType, *, end: str = "\n", soft_wrap: bool = False
) -> None:
    """Prints anything. Raises Problem if results cannot be written; a remark is then left out."""
    try:
        console.print(what, end=end, soft_wrap=soft_wrap)
    except OSError as error:
        if not console.stderr:
            said = f"The results cannot be written: {error.strerror or error}."
            raise Problem(said, "Check where the output goes, and the disk.") from error


def say_problem(message: str, remedy: str) -> None:
    """Tells on stderr what is wrong, and on the next line what to do."""
    console = remarks()
    say(console, message, style=Style(color="red", bold=True))
    if remedy:
        say(console, remedy)


def warn(text: str) -> None:
    """Tells on stderr of something that does not stop the command."""
    say(remarks(), f"Warning: {text}", style=Style(color="yellow"))
