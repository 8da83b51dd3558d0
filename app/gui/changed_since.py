"""What a shown run was made with, once the form asks for something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from app.run.draft_lengths import LENGTH_POLICIES
from app.run.methods import METHODS
from app.run.options import Offer
from app.run.rules import RULES
from app.run.settings import OptionValue, RunSettings

_PROMPT = ("prompt", "system", "raw")
_SPECULATION = (
    *("method_options", "draft_length", "draft_length_policy", "draft_length_options"),
    *("rule", "rule_options", "baseline", "repetitions"),
)
"""What does not matter without speculation."""

_UNASKED = ("earlier", "continues", "prompt_ids", "order", "detail")
"""What the form does not ask for."""


def changed_since(run: RunSettings, form: RunSettings) -> str:
    """One sentence that names what a run was made with; empty if the form still asks for that."""
    before, now = _asked(run), _asked(form)
    changed = {name for name, value in before.items() if now[name] != value}
    if run.continues:  # its prompt is what was written
        changed -= {"max_new_tokens", *_PROMPT}
    if not changed:
        return ""
    what = "the prompt has" if changed <= set(_PROMPT) else "settings have"
    return f"Of the run with {made_with(run)}; {what} changed since."


def made_with(run: RunSettings) -> str:
    """Pair, method and draft length in a few words."""
    if run.method == "nothing":
        return f"{run.pair}, plain decoding"
    known = METHODS.get(run.method)
    method = known.label.lower() if known else run.method
    guesses = "1 guess" if run.draft_length == 1 else f"{run.draft_length} guesses"
    return f"{run.pair}, {method}, {guesses}"


def _asked(settings: RunSettings) -> dict[str, Any]:
    """What the form asks for, with every option at the value that it has."""
    asked = msgspec.structs.asdict(settings)
    asked["method_options"] = _filled(METHODS, settings.method, settings.method_options)
    policy, options = settings.draft_length_policy, settings.draft_length_options
    asked["draft_length_options"] = _filled(LENGTH_POLICIES, policy, options)
    asked["rule_options"] = _filled(RULES, settings.rule, settings.rule_options)
    if settings.sampling.greedy:  # then nothing is drawn
        asked["sampling"] = msgspec.structs.replace(
            settings.sampling, temperature=0.0, top_k=0, top_p=1.0, min_p=0.0, seed=0
        )
    left_out = _UNASKED + (_SPECULATION if settings.method == "nothing" else ())
    return {name: None if name in left_out else value for name, value in asked.items()}


def _filled(
    offers: Mapping[str, Offer], name: str, given: Mapping[str, OptionValue]
) -> dict[str, OptionValue]:
    offer = offers.get(name)
    return {option.name: option.default for option in offer.options} | dict(given) if offer else {}
