"""vLLM's speculative config, read: what it asks for, in this program's words.

Nothing is passed over in silence: what would change results and cannot be honoured is refused by
name; what is accepted without an effect is told.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from app.elsewhere.vllm_fields import (
    AT_REST,
    DRAFTED_BY_A_MODEL,
    EVERY,
    METHODS,
    NO_EFFECT,
    NOT_HERE,
    QUANTISED_FOLDERS,
    READERS,
    RELEASE,
    RULES,
    SAMPLING,
    USED,
)
from app.run import methods
from app.run.problems import Problem
from app.run.settings import OptionValue, Precision, Sampling

Fields = Mapping[str, Any]
Options = dict[str, OptionValue]

_EXAMPLE = '{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}'


class Wanted(msgspec.Struct, frozen=True):
    """What a speculative config asks for."""

    method: str
    method_options: Options
    draft_length: int
    rule: str
    rule_options: Options
    model: str = ""
    """The draft as vLLM is told of it, a repository of the Hub or a folder; empty for none."""
    revision: str = ""
    draft_precision: Precision | None = None
    notes: tuple[str, ...] = ()
    """What was accepted without an effect, or with one of its own here; a sentence each."""


def read_vllm(text: str, sampling: Sampling) -> Wanted:
    """What the JSON of vLLM's `--speculative-config` asks for in a run that samples like this.

    Raises Problem for what is no such JSON, and for what cannot be honoured.
    """
    given = {name: value for name, value in _parsed(text).items() if value is not None}
    _refuse(given)
    for name in given.keys() & USED.keys():
        USED[name].checked(given[name])
    said = _method(given)
    fields, notes = _split(given, {said, given.get("rejection_sample_method", "standard")})
    method = _offered("tli" if fields.get("use_heterogeneous_vocab") else METHODS[said], said)
    _checked(fields, method)
    length, told = _draft_length(fields, said)
    rule, rule_options = _rule(fields, length)
    return Wanted(
        method=method,
        method_options=_method_options(fields, method, sampling),
        draft_length=length,
        rule=rule,
        rule_options=rule_options,
        model=fields.get("model", "") if said in DRAFTED_BY_A_MODEL else "",
        revision=fields.get("revision", ""),
        draft_precision=_precision(fields, notes),
        notes=(*notes, *told),
    )


def _parsed(text: str) -> dict[str, Any]:
    """The fields of the JSON."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Problem(
            f"The speculative config is not JSON: {error.msg} ({where}).",
            f"Write it like {_EXAMPLE}, in single quotes in most shells.",
        ) from error
    except RecursionError as error:
        raise Problem("The speculative config is nested too deep.", "Flatten it.") from error
    if not isinstance(found, dict):
        raise Problem("The speculative config is no JSON object.", f"Write it like {_EXAMPLE}.")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, each of whose names stands in it once."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise Problem(f"The speculative config says {name!r} twice.", "Leave one of them out.")
        found[name] = value
    return found


def _no_number(word: str) -> None:
    raise Problem(f"The speculative config holds {word}.", "Write a number.")


def _refuse(given: Fields) -> None:
    """Raises Problem for the first field that this program cannot honour."""
    for name, value in given.items():
        if name in SAMPLING:
            flag = SAMPLING[name]
            where = f"give it as {flag}" if flag else "Foretoken has no such parameter"
            raise Problem(
                f"{name} is a sampling parameter: vLLM takes it with each request, not in the "
                "speculative config.",
                f"Take it out of the JSON; {where}.",
            )
        if name not in EVERY:
            said = f"vLLM {RELEASE}'s speculative config has no field {name!r}."
            raise Problem(said, _near(name, EVERY))
        if name in AT_REST and value not in AT_REST[name].values:
            rest = AT_REST[name]
            raise Problem(f"{_written(name, value)} cannot be honoured: {rest.why}.", rest.remedy)


def _method(given: Fields) -> str:
    """vLLM's method: as said, else as it infers it from the model's name."""
    said = given.get("method") or _inferred(str(given.get("model", "")))
    if said not in METHODS and said not in NOT_HERE:
        known = (*METHODS, *NOT_HERE)
        raise Problem(f"vLLM {RELEASE} has no method {said!r}.", _near(str(said), known))
    if said in NOT_HERE:
        raise Problem(
            f"vLLM's method {said!r} {NOT_HERE[said]}; it is not run by this version.",
            f"Choose one of: {', '.join(methods.METHODS)}.",
        )
    return str(said)


def _inferred(model: str) -> str:
    """The method that vLLM takes for a model; a repository may also tell it in its config."""
    if not model:
        raise Problem(
            "The speculative config names neither a method nor a model.",
            f"Add a method, as in {_EXAMPLE}.",
        )
    if model in METHODS:
        return model
    parts = model.split(".")
    if "/" not in model and len(parts) > 1 and all(part.isidentifier() for part in parts):
        return "custom_class"
    name = model.lower()
    known = {"eagle-": "eagle", "eagle3": "eagle3", "dflash": "dflash", "dspark": "dspark"}
    return next((method for part, method in known.items() if part in name), "draft_model")


def _split(given: Fields, readers: set[str]) -> tuple[dict[str, Any], list[str]]:
    """The fields that this method and this rule read, and notes of those without an effect."""
    fields, notes = {}, []
    for name, value in given.items():
        wanted = next((every for start, every in READERS.items() if name.startswith(start)), None)
        if name in NO_EFFECT:
            notes.append(f"{_written(name, value)} has no effect here: {NO_EFFECT[name]}.")
        elif name in AT_REST:
            notes.append(f"{_written(name, value)} has no effect here: it is always so.")
        elif wanted is not None and not readers & {*wanted}:
            notes.append(f"{_written(name, value)} has no effect, as in vLLM: nothing reads it.")
        else:
            fields[name] = value
    return fields, notes


def _offered(method: str, said: str) -> str:
    """The method, if this version has it."""
    if method not in methods.METHODS:
        raise Problem(
            f"vLLM's method {said!r} is {method!r} here, which is not run by this version.",
            f"Choose one of: {', '.join(methods.METHODS)}.",
        )
    return method


def _draft_length(fields: Fields, said: str) -> tuple[int, list[str]]:
    """Most guesses of a round, and what to say of where they come from."""
    name = "num_speculative_tokens_per_batch_size"
    if name in fields:
        length = _of_one_text(name, fields[name])
        return length, [f"{name}: one text at a time is decoded here, so {length} are guessed."]
    if "num_speculative_tokens" in fields:
        return int(fields["num_speculative_tokens"]), []
    if said == "suffix":
        depth = USED["suffix_decoding_max_tree_depth"].default
        length = int(fields.get("suffix_decoding_max_tree_depth", depth))
        USED["num_speculative_tokens"].checked(length)
        return length, [f"num_speculative_tokens is {length}, the depth of the trees, as in vLLM."]
    raise Problem(
        "The speculative config does not say num_speculative_tokens.",
        "Add it: vLLM reads it from the config of some drafts, Foretoken does not.",
    )


def _of_one_text(name: str, schedule: object) -> int:
    """The entry of a schedule `[[first, last, tokens], …]` for one text at a time."""
    rows = schedule if isinstance(schedule, list) else []
    for row in rows:
        if not (isinstance(row, list) and len(row) == 3 and all(type(n) is int for n in row)):
            rows = []
            break
    fitting = [tokens for first, last, tokens in rows if first <= 1 <= last]
    if not fitting:
        raise Problem(
            f"{_written(name, schedule)} says nothing of one text at a time, which is how "
            "Foretoken decodes.",
            "Give lists of three whole numbers, first and last batch size and tokens, from 1 on: "
            "[[1, 4, 5], [5, 64, 2]].",
        )
    if fitting[0]:
        USED["num_speculative_tokens"].checked(fitting[0])
    return int(fitting[0])


def _method_options(fields: Fields, method: str, sampling: Sampling) -> Options:
    """The method's options, in which vLLM's own defaults stand for what was not said."""
    if method == "ngram":
        return _ngram_options(fields)
    if method == "suffix":
        found = {name: fields.get(field, USED[field].default) for field, name in SUFFIX.items()}
        return {**found, "offset": 0.0}
    return {} if sampling.greedy else _drawing(fields, sampling)


def _drawing(fields: Fields, sampling: Sampling) -> Options:
    """How the draft draws: by default it takes its likeliest token, else by the temperature alone.

    Source: `draft_sample_method` of that release.
    """
    probabilistic = fields.get("draft_sample_method") == "probabilistic"
    uncut = (sampling.top_k, sampling.top_p, sampling.min_p) == (0, 1.0, 0.0)
    if probabilistic and uncut:
        return {}
    if probabilistic:
        return {"draft_sampling": "own", "draft_temperature": sampling.temperature}
    return {"draft_sampling": "argmax"}


def _ngram_options(fields: Fields) -> Options:
    """Both bounds of a match: the one that is left out is the other; without any they are 5."""
    least, most = fields.get("prompt_lookup_min"), fields.get("prompt_lookup_max")
    shortest = int(least or most or USED["prompt_lookup_min"].default)
    longest = int(most or least or USED["prompt_lookup_max"].default)
    if shortest > longest:
        raise Problem(
            f"prompt_lookup_min ({shortest}) is larger than prompt_lookup_max ({longest}).",
            "Lower the one, or raise the other.",
        )
    return {"shortest": shortest, "longest": longest, "match": "first"}


SUFFIX = {
    "suffix_decoding_max_tree_depth": "depth",
    "suffix_decoding_max_cached_requests": "cached",
    "suffix_decoding_max_spec_factor": "factor",
    "suffix_decoding_min_token_prob": "least_probability",
}
"""The options of suffix decoding here, by vLLM's fields."""
_NAMES = {**SUFFIX, "prompt_lookup_min": "shortest", "prompt_lookup_max": "longest"}


def _checked(fields: Fields, method: str) -> None:
    """Raises Problem for a field that is outside the bounds of the option that it is here."""
    offered = {option.name: option for option in methods.METHODS[method].options}
    for field, name in _NAMES.items():
        if field in fields and name in offered:
            msgspec.structs.replace(offered[name], label=field).checked(fields[field])


def _rule(fields: Fields, length: int) -> tuple[str, Options]:
    """The rule and its options."""
    rule = RULES[fields.get("rejection_sample_method", "standard")]
    synthetic = [name for name in fields if name.startswith("synthetic_")]
    if (rule == "synthetic") != (len(synthetic) == 1):
        raise Problem(
            "Synthetic acceptance needs one of synthetic_acceptance_rates and "
            'synthetic_acceptance_length, and "rejection_sample_method": "synthetic".',
            "Say exactly one of the two, or leave all three out.",
        )
    if rule == "synthetic":
        return rule, _synthetic(fields, length)
    return rule, _fly(fields, length) if rule == "fly" else {}


def _synthetic(fields: Fields, length: int) -> Options:
    if "synthetic_acceptance_length" in fields:
        mean = float(fields["synthetic_acceptance_length"])
        if mean > length + 1:
            raise Problem(
                f"synthetic_acceptance_length is {mean:g}; with {length} guesses a loop a text "
                f"grows by {length + 1} tokens at most.",
                "Lower it, or raise num_speculative_tokens.",
            )
        return {"length": mean}
    rates = fields["synthetic_acceptance_rates"]
    numbers = isinstance(rates, list) and all(type(rate) in (int, float) for rate in rates)
    falling = numbers and all(
        0.0 <= now <= last for last, now in zip([1.0, *rates], rates, strict=False)
    )
    if not falling or len(rates) != length:
        raise Problem(
            f"synthetic_acceptance_rates is {json.dumps(rates)}; it has to be {length} numbers "
            "from 0 to 1 that never rise.",
            "Give as many of them as num_speculative_tokens says.",
        )
    return {"rates": ", ".join(map(str, rates))}


def _fly(fields: Fields, length: int) -> Options:
    top, window = fields.get("fly_entropy_top_k", 3), int(fields.get("fly_window_size", 0))
    if top != 3:
        raise Problem(
            f"fly_entropy_top_k: {top} cannot be honoured: the entropy here is that of the three "
            "likeliest tokens, as in the paper.",
            "Write 3, or leave it out.",
        )
    if window >= length:
        raise Problem(
            f"fly_window_size is {window}; it has to be smaller than num_speculative_tokens, "
            f"{length}.",
            "Lower it, or leave it out.",
        )
    threshold = fields.get("fly_entropy_threshold", USED["fly_entropy_threshold"].default)
    return {"window": window, "reading": "vllm", "entropy": float(threshold)}


def _precision(fields: Fields, notes: list[str]) -> Precision | None:
    """The draft model's precision; what its folder tells by itself is noted."""
    asked = fields.get("quantization")
    if asked is None or asked == "bitsandbytes":
        return "nf4" if asked else None
    if asked in QUANTISED_FOLDERS:
        notes.append(f"{_written('quantization', asked)}: a draft's folder tells it here.")
        return None
    raise Problem(
        f"{_written('quantization', asked)} cannot be honoured: this program does not quantise so.",
        "Leave it out for a folder that is quantised already, or use --draft-precision.",
    )


def _near(name: str, known: Iterable[str]) -> str:
    """What may have been meant."""
    close = difflib.get_close_matches(name, list(known), n=3)
    return f"Did you mean {' or '.join(close)}?" if close else "Take it out of the JSON."


def _written(name: str, value: object) -> str:
    """A field as it stands in the JSON."""
    return f"{name}: {json.dumps(value, ensure_ascii=False)}"
