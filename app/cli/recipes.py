"""A run's set-up for other programs, on the screen of a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.style import Style

from app.cli.screen import say
from app.elsewhere.setup import Recipe


def show_recipes(console: Console, recipes: Sequence[Recipe]) -> None:
    """Each program, what to run there, and what is not the same; nothing is wrapped."""
    for one in recipes:
        say(console, "")
        say(console, f"{one.program} ({one.release})", style=Style(bold=True))
        if one.text:
            say(console, one.text)
        for line in one.not_carried:
            say(console, f"- {line}")
