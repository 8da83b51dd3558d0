"""The layout of the JSON report, as a JSON Schema that says of every field what it means."""

from __future__ import annotations

import ast
import inspect
import sys
from itertools import pairwise
from typing import Any

import msgspec

from app.elsewhere.setup import Recipe
from app.run.record import RunRecord

_FIELDS: dict[str, str] = {
    "Abandoned.at": "Which repetition gave the round up.",
    "Abandoned.drafted": "Guesses of its draft, or the passes over one that was not whole yet.",
    "Abandoned.type": "The kind of event that it was.",
    "Divergence.type": "The kind of event that it was.",
    "Divergence.run": "The run's own name.",
    "Divergence.speculative": "What the speculative lane wrote there.",
    "Divergence.baseline": "What the baseline wrote there.",
    "Abandoned.seconds": "Seconds that the round had taken.",
    "At.lane": "The lane.",
    "At.provenance": "Measured here, reported by a server, or inferred from what one reported.",
    "At.repetition": "Which repetition of the lane, from 0.",
    "At.run": "The run's id.",
    "At.sequence": "Which of several texts written at once, from 0.",
    "At.turn": "Which turn of a conversation, from 0.",
    "Candidate.id": "The token's id.",
    "Candidate.probability": "Its probability.",
    "Candidate.text": "The token's text.",
    "Environment.app": "Foretoken's version.",
    "Environment.device": "The device that the target ran on, in words.",
    "Environment.packages": "Versions of the libraries that decide the result, by name.",
    "Environment.platform": "Operating system and architecture.",
    "Environment.processor": "The processor, in words.",
    "Environment.python": "Python's version.",
    "Flag.kind": "Why figures are to be read with care.",
    "PassCosts.attention": "How the target computes attention.",
    "PassCosts.device": "The hardware by name; for a processor with the number of threads.",
    "PassCosts.model": "The target's name.",
    "PassCosts.passes": "How passes were computed; empty for eager ones.",
    "PassCosts.precision": "How the target's weights are held.",
    "PassCosts.context_bucket": "Most tokens in the cache while the passes were measured.",
    "Environment.threads": "Threads that a pass on the processor used.",
    "Inspection.draft": "Likeliest tokens of the draft's law.",
    "Inspection.residual": "Likeliest tokens of the law that a correction is drawn from.",
    "Inspection.target": "Likeliest tokens of the target's law.",
    "Lane.name": "Which lane this is.",
    "Lane.repetitions": "Its repetitions, in the order in which they ran.",
    "Message.role": "Who says it.",
    "Message.text": "What is said.",
    "ModelFacts.attention": "How attention is computed.",
    "ModelFacts.context_length": "Most tokens that the model can read.",
    "ModelFacts.device": "Where the weights lie.",
    "ModelFacts.offloaded": "The share of the weights, from 0 to 1, that is not on the device.",
    "ModelFacts.folder": "The folder it was loaded from.",
    "ModelFacts.name": "The model's name.",
    "ModelFacts.parameters": "Number of parameters.",
    "ModelFacts.passes": "How passes are computed; with the reason where not as asked for.",
    "ModelFacts.precision": "How the weights are held.",
    "ModelFacts.rewind_note": "What the proof of rewinding found.",
    "ModelFacts.rewinds": "Whether the model can take tokens back; without it, no speculation.",
    "ModelFacts.rows_independent": "Whether a row's logits do not depend on the rows behind it.",
    "ModelFacts.rows_note": "What the proof of that found.",
    "ModelFacts.vocabulary": "Width of the logits.",
    "ModelFacts.weight_bytes": "Bytes of the weights in memory, with output rows that a draft head "
    "copies from its target.",
    "Phases.draft": "Guessing, in seconds, without the draft model's pass over the prompt.",
    "Phases.rest": "Seconds of the round that no other phase accounts for.",
    "Repetition.abandoned": "A round given up at the end; it enters no figure.",
    "Repetition.at": "Where in the run this repetition belongs.",
    "Repetition.cache_bytes": "Bytes of the caches at its end.",
    "Repetition.dropped": "Characters at the end of the text that belong to the stop string or lie "
    "behind it.",
    "Repetition.finish": "Why it ended; null if it was cut off.",
    "Repetition.first": "The token that the prompt pass yielded.",
    "Repetition.held_back": "Characters at the end that may begin a stop string; 0 once it ended.",
    "Repetition.prompt_read": "Prompt tokens read, as last told.",
    "Repetition.rounds": "The committed rounds, in order.",
    "Repetition.tail": "Text of an incomplete character that no further token completed.",
    "Repetition.time_to_first_token": "Seconds from the lane's opening until the first token.",
    "Round.index": "Which round of the repetition, from 0.",
    "Round.limited_by": "What set the limit.",
    "Round.phases": "Where its seconds went.",
    "RunRecord.draft_resident": "Whether a draft model lay in memory while the baseline ran.",
    "RunRecord.draft_peak_bytes": "The same on the draft model's device, where that is another.",
    "RunRecord.draft": "The draft model; null for methods without one.",
    "Recipe.program": "The other program.",
    "Recipe.text": "What to run there; empty where it has nothing of the kind.",
    "RunRecord.elsewhere": "The same set-up for other programs, and what is not the same there.",
    "RunRecord.end_ids": "Every id that ends a text.",
    "RunRecord.environment": "What it ran on.",
    "RunRecord.lanes": "The lanes, in the order in which they first opened.",
    "RunRecord.lossless": "Whether the output keeps the target's distribution exactly.",
    "RunRecord.message": "What went wrong, for a run that failed.",
    "RunRecord.notes": "What a person should know before trusting a figure.",
    "RunRecord.outcome": "How the run ended.",
    "RunRecord.peak_bytes": "Most memory held on the target's device; null where unreadable.",
    "RunRecord.prompt_ids": "The prompt as the models read it, chat template included.",
    "RunRecord.remedy": "What to do about it.",
    "RunRecord.run": "The run's id.",
    "RunRecord.schema": "The version of this layout.",
    "RunRecord.settings": "What was asked for; the same object served both lanes.",
    "RunRecord.started": "Local time with its offset, ISO 8601.",
    "RunRecord.target": "The target.",
    "RunSettings.allow_offload": "Whether weights without room on the card may lie elsewhere.",
    "RunSettings.passes": "How passes are computed: as graphs where that holds, eager, or fixed.",
    "RunSettings.baseline": "Whether the baseline ran too.",
    "RunSettings.detail": "Light, or full with the likeliest tokens of every decision.",
    "RunSettings.device": "The device asked for; null leaves the choice to the machine.",
    "RunSettings.draft_device": "The draft model's device; null takes the pair's, or the target's.",
    "RunSettings.draft_length": "Most tokens guessed in a round (γ).",
    "RunSettings.draft_length_options": "The options of the draft length policy.",
    "RunSettings.draft_length_policy": "What chooses each round's draft length, up to γ.",
    "RunSettings.ignore_end_of_text": "Whether the text goes on behind an end-of-text token.",
    "RunSettings.max_new_tokens": "The cap on the text, in tokens, the first included.",
    "RunSettings.method": "How guesses are made.",
    "RunSettings.method_options": "The method's options.",
    "RunSettings.order": "Interleaved lanes for looking, alternated whole lanes for measuring.",
    "RunSettings.pair": "The pair's name in the catalogue.",
    "RunSettings.prompt": "The prompt as it was written.",
    "RunSettings.repetitions": "How often each lane was run.",
    "RunSettings.rule": "The rule that decides which guesses are kept.",
    "RunSettings.rule_options": "The rule's options.",
    "RunSettings.sampling": "How tokens are drawn.",
    "RunSettings.stop_strings": "Strings that end the text.",
    "RunSettings.system": "The system prompt.",
    "Sampling.seed": "The seed of every draw.",
    "Sampling.temperature": "0 is greedy.",
    "Token.accept_probability": "With which probability the rule accepts the guess.",
    "Token.draft_probability": "The draft's probability of the token.",
    "Token.draw": "The uniform draw that decided.",
    "Token.id": "The token's id.",
    "Token.inspection": "The laws that decided the position (detail full only).",
    "Token.kept_by": "Whether the rule or its leniency kept the guess.",
    "Token.status": "first: from the prompt pass. accepted: guessed and kept. corrected: replaces "
    "the first rejected guess. bonus: follows a fully accepted draft. plain: a round without a "
    "draft. rejected: tested, thrown away. ignored: behind the first rejection, never decided. "
    "discarded: behind a stop.",
    "Token.target_probability": "The target's probability of the token.",
}
"""What the structs themselves do not say of their fields."""


def record_schema() -> dict[str, Any]:
    """The JSON Schema of a JSON report, every field with its description."""
    schema = _layout()
    for name, definition in schema["$defs"].items():
        told = _told_by_source(name)
        for field, value in definition["properties"].items():
            text = told.get(field) or _FIELDS.get(f"{name}.{field}", "")
            if text:
                definition["properties"][field] = _described(value, text)
    return {"title": "A run of Foretoken", **schema}


def _layout() -> dict[str, Any]:
    """A record, and what a report adds to it."""
    schema = msgspec.json.schema(RunRecord)
    (added,), more = msgspec.json.schema_components([tuple[Recipe, ...]])
    schema["$defs"]["RunRecord"]["properties"]["elsewhere"] = added
    return {**schema, "$defs": {**schema["$defs"], **more}}


def _described(value: dict[str, Any], text: str) -> dict[str, Any]:
    """A field's schema with its description; a reference takes it from beside itself."""
    return {"description": " ".join(text.split()), **value}


def _told_by_source(name: str) -> dict[str, str]:
    """The docstrings below the fields of a struct of this name; none where no source is kept."""
    kind = _struct(name)
    try:
        tree = ast.parse(inspect.getsource(kind))
    except (OSError, TypeError):
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: text.value.value
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


_RUN = ("record", "events", "settings", "cost", "flags")


def _struct(name: str) -> type:
    """The struct of this name in the modules that make a record."""
    parts = (*(f"run.{part}" for part in _RUN), "elsewhere.setup")
    modules = [sys.modules[f"app.{part}"] for part in parts]
    found: type = next(getattr(module, name) for module in modules if hasattr(module, name))
    return found
