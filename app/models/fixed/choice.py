"""Which way the passes of a loaded model take: what was asked for, as far as it holds."""

from __future__ import annotations

from collections.abc import Callable

from app.models.cache import layer_kinds
from app.models.fixed.passes import Passes
from app.models.fixed.proof import prove_passes
from app.models.fixed.recorder import recorder_for
from app.models.language_model import LanguageModel
from app.run.settings import PassKind

_PLACED = {"full_attention", "sliding_attention", "attention"}
"""Kinds of layers whose masks are known here."""


def choose_passes(
    model: LanguageModel, wanted: PassKind, *, ask: Callable[[], None] = lambda: None
) -> None:
    """Lets the model's sessions compute their passes as it is wanted, where that is proved; else
    eagerly, with the reason. What was chosen for the same wish before stays, unless it was for
    lack of what others had taken.

    Raises what `ask` does, which is asked before each recording, and Problem where memory does not
    suffice for the model's eager passes.
    """
    if model.passes.asked == wanted:
        return
    recorder = recorder_for(model.device) if wanted == "auto" else None
    if wanted == "eager" or (wanted == "auto" and recorder is None):
        model.passes = Passes(asked=wanted)
        return
    reason = _why_not(model, recorded=recorder is not None)
    if reason:
        model.passes = Passes(reason=reason, asked=wanted)
        return
    passes = Passes("graphs" if recorder else "fixed", recorder=recorder, asked=wanted)
    held = prove_passes(model, passes, ask=ask).holds
    asked = None if passes.for_now else wanted
    model.passes = passes if held else Passes(reason=passes.reason, asked=asked)


def _why_not(model: LanguageModel, *, recorded: bool) -> str:
    """Why it need not even be tried; empty where it may work."""
    kinds = layer_kinds(model.inner.config)
    if not kinds <= _PLACED:
        return f"its layers keep what is not written by place ({', '.join(sorted(kinds))})"
    if recorded and model.precision == "llm-int8":
        return "LLM.int8 decides on the host, which no graph can hold"
    if recorded and model.offloaded:
        return "some of its weights are elsewhere"
    return ""
