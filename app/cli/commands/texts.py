"""`texts`: what is kept of earlier runs for suffix decoding, and letting it go."""

from __future__ import annotations

from typing import Annotated

import typer

from app import files
from app.cli.screen import remarks, results, say
from app.library.kept_texts import IN_MEMORY, KeptSize, KeptTexts


def texts(
    *,
    clear: Annotated[bool, typer.Option("--clear", help="Let all of them go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Show what is kept of earlier runs for suffix decoding to copy from, or let it go."""
    kept = KeptTexts(files.kept_texts_file())
    if not clear:
        _show(kept.sizes())
        return
    if not yes and not typer.confirm("Let all kept texts go?", err=True):
        say(results(), "Nothing was let go.")
        return
    kept.clear()
    say(results(), "No text is kept any more.")


def _show(sizes: list[KeptSize]) -> None:
    for size in sizes:
        say(results(), f"{size.target}: {size.texts} texts, {size.tokens} tokens")
    if not sizes:
        say(results(), "No text of an earlier run is kept.")
    else:
        say(remarks(), IN_MEMORY)
        say(remarks(), "`foretoken texts --clear` lets them go.")
