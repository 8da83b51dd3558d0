"""What a run takes of a device's memory, drawn as one bar in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.style import Style

from app.cli.screen import say
from app.library.fitting import Fit, numbered
from app.library.memory import PARTS, Held
from app.run.sizes import bytes_in_words

_WIDTH = 60
_SIGNS = {"target": "#", "draft": "+", "caches": "=", "working": "-"}
"""Plain characters: every terminal can show them."""
_FREE = "."
_BAD = Style(color="red")


def show_fit(console: Console, fit: Fit) -> None:
    """One bar for each device, what its parts are, and the verdict."""
    free = {device.name: device.free_bytes for device in fit.devices}
    for held in fit.held:
        name = numbered(held.device)
        _show(console, held, free.get(name, held.total))
    style = _BAD if fit.verdict == "does not fit" else Style.null()
    say(console, fit.sentence, style=style)


def _show(console: Console, held: Held, free: int) -> None:
    say(console, f"{held.device} [{bar(held, free)}]")
    for part in PARTS:
        size = getattr(held, part.name)
        if size:
            say(
                console,
                f"  {_SIGNS[part.name]} {part.title}: {bytes_in_words(size)}. {part.meaning}",
            )
    say(console, f"  {_FREE} Left free: {bytes_in_words(max(free - held.total, 0))}")


def bar(held: Held, free: int) -> str:
    """The bar: as long as what is free, or as what is held where that is more."""
    whole = max(free, held.total, 1)
    drawn = ""
    reached = done = 0
    for part in PARTS:
        reached += getattr(held, part.name)
        end = round(_WIDTH * reached / whole)
        drawn += _SIGNS[part.name] * (end - done)
        done = end
    return drawn + _FREE * (_WIDTH - done)
