"""`--speculative-config`: settings in vLLM's words."""

from __future__ import annotations

import typer

from app.cli.screen import remarks, say
from app.elsewhere.vllm_pair import in_vllm_words
from app.library.catalogue import Catalogue
from app.run.settings import RunSettings


def say_once(config: str | None, *own: object) -> None:
    """Refuses vLLM's JSON beside flags that say the same, whose values are `own`."""
    if config is not None and any(value not in (None, []) for value in own):
        raise typer.BadParameter(
            "says method, draft length and rule: give either it or their own flags",
            param_hint="--speculative-config",
        )


def told_by_vllm(
    settings: RunSettings, config: str, catalogue: Catalogue, *, pair: str | None
) -> RunSettings:
    """The settings as vLLM's JSON changes them; what has no effect is told on stderr."""
    changed, notes = in_vllm_words(settings, config, catalogue, asked=pair)
    for note in notes:
        say(remarks(), f"Speculative config: {note}")
    return changed
