"""`--speculative-config`: settings in vLLM's words."""

from __future__ import annotations

import typer

from app.cli.screen import remarks, say
from app.elsewhere.vllm_pair import in_vllm_words
from app.library.catalogue import Catalogue
from app.run.settings import RunSettings


def told_by_vllm(
    settings: RunSettings,
    text: str,
    catalogue: Catalogue,
    *,
    pair: str | None,
    own: tuple[object, ...],
) -> RunSettings:
    """The settings as vLLM's JSON changes them; what has no effect is told on stderr.

    `own`: the values of the flags that say the same; none of them may be given too.
    """
    if any(value not in (None, []) for value in own):
        raise typer.BadParameter(
            "says method, draft length and rule: give either it or their own flags",
            param_hint="--speculative-config",
        )
    changed, notes = in_vllm_words(settings, text, catalogue, asked=pair)
    for note in notes:
        say(remarks(), f"Speculative config: {note}")
    return changed
