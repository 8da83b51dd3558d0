"""A set-up for vLLM: `vllm serve` with its speculative config, and a request's parameters."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any, get_args

from app.elsewhere.setup import Setup, Written, chosen_here, eagle, place_notes, sampled
from app.elsewhere.vllm_config import SUFFIX
from app.elsewhere.vllm_fields import RULES
from app.run.methods import METHODS
from app.run.rules import RULES as OFFERED
from app.run.settings import Precision, RunSettings

_Part = tuple[dict[str, Any], list[str]]
"""Fields of the config, and what is not the same there."""

_KNOWN = get_args(Precision)
_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_REQUEST = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
}
_WORDS = {rule: word for word, rule in RULES.items()}


def vllm(setup: Setup) -> Written:
    """The command, and with each request the sampling parameters."""
    settings = setup.settings
    config, changed = speculative_config(setup)
    words = ["vllm", "serve", setup.target, *_weights(setup.precision)]
    if settings.context_length is not None:
        words += ["--max-model-len", str(settings.context_length)]
    if config is not None:
        words += ["--speculative-config", json.dumps(config, ensure_ascii=False)]
    request = json.dumps(_request(settings), ensure_ascii=False)
    text = f"{shlex.join(words)}\n# with each request: {request}"
    if config is None and settings.method != "nothing":
        return Written("", changed)
    changed += [*_sampling(settings), *_kept_here(setup), *place_notes(setup)]
    return Written(text, changed)


def speculative_config(setup: Setup) -> tuple[dict[str, Any] | None, list[str]]:
    """The fields of `--speculative-config`, and what is not the same there; None without guesses,
    or where vLLM has no such method.
    """
    settings = setup.settings
    if settings.method == "nothing":
        return None, []
    maker, label = _METHODS.get(settings.method), METHODS[settings.method].label
    if maker is None:
        return None, [f"vLLM has no counterpart of the method {label}."]
    if maker is _head and not eagle(setup.draft):
        return None, [
            f"vLLM has no counterpart of the method {label} with {setup.draft!r}: it reads "
            "published EAGLE heads only."
        ]
    (config, changed), (rule, rule_changed) = maker(setup), _rule(settings)
    length = {"num_speculative_tokens": settings.draft_length}
    changed = [*changed, *rule_changed]
    if not settings.draft_length:
        return None, [*changed, "A draft length of 0 means no speculation: nothing is said of it."]
    if settings.draft_length_policy != "fixed":
        changed.append(
            "vLLM guesses a fixed number of tokens for a single text: the draft length policy "
            f"{settings.draft_length_policy} is left out."
        )
    return {**config, **length, **rule}, changed


def _ngram(setup: Setup) -> _Part:
    options = _filled(setup.settings)
    config = {
        "method": "ngram",
        "prompt_lookup_min": options["shortest"],
        "prompt_lookup_max": options["longest"],
    }
    taken = options.get("match", "last")
    changed = f"vLLM takes the first of several places of a match, not the {taken}."
    return config, [] if taken == "first" else [changed]


def _suffix(setup: Setup) -> _Part:
    options, changed = _filled(setup.settings), []
    if options["offset"]:
        changed.append("vLLM guesses no tokens besides those by the length of a match.")
    if not options["keep"]:
        changed.append("vLLM keeps every text for later requests.")
    return {"method": "suffix", **{name: options[own] for name, own in SUFFIX.items()}}, changed


def _draft_model(setup: Setup) -> _Part:
    config: dict[str, Any] = {"method": "draft_model", "model": setup.draft}
    held, changed = _draft_weights(setup)
    drawing, drawn = _drawing(setup.settings)
    return {**config, **held, **drawing}, [*changed, *drawn]


def _draft_weights(setup: Setup) -> _Part:
    """How the draft's weights are held: quantised to nf4, or in the target's numbers."""
    precision, numbers = setup.draft_precision, setup.numbers
    if precision == "nf4":
        differ = numbers in _DTYPES and numbers != "bf16"
        told = (
            f"What is not quantised of the draft is in the target's {numbers} there, not in bf16."
        )
        return {"quantization": "bitsandbytes"}, [told] if differ else []
    if precision in _KNOWN and precision != numbers:
        said = f"vLLM holds the draft in the target's numbers, not in {precision}."
        return {}, [said]
    return {}, []


def _tli(setup: Setup) -> _Part:
    config, changed = _draft_model(setup)
    if config.pop("draft_sample_method", None):
        changed.append("With another vocabulary vLLM's draft takes its likeliest token.")
    return {**config, "use_heterogeneous_vocab": True}, changed


def _head(setup: Setup) -> _Part:
    drawing, changed = _drawing(setup.settings)
    return {"method": eagle(setup.draft), "model": setup.draft, **drawing}, changed


def _mtp(setup: Setup) -> _Part:
    drawing, changed = _drawing(setup.settings)
    return {"method": "mtp", **drawing}, changed


def _drawing(settings: RunSettings) -> _Part:
    """How the draft draws: vLLM knows its likeliest token, and the temperature without any cut."""
    if settings.sampling.greedy:
        return {}, []
    options, sampling = _filled(settings), settings.sampling
    how = options.get("draft_sampling", "target")
    if how == "argmax":
        return {}, []
    uncut = (sampling.top_k, sampling.top_p, sampling.min_p) == (0, 1.0, 0.0)
    if how == "target" and not uncut:
        changed = ["vLLM's draft draws by the temperature alone, without top-k, top-p and min-p."]
    elif how == "own" and options["draft_temperature"] != sampling.temperature:
        changed = ["vLLM's draft draws by the request's temperature, not by one of its own."]
    else:
        changed = []
    return {"draft_sample_method": "probabilistic"}, changed


_METHODS: Mapping[str, Callable[[Setup], _Part]] = {
    "ngram": _ngram,
    "suffix": _suffix,
    "draft-model": _draft_model,
    "tli": _tli,
    "head": _head,
    "mtp": _mtp,
}
"""The methods that vLLM has too, and how it is told of them."""


def _rule(settings: RunSettings) -> _Part:
    """The rule's fields; vLLM's own rule needs none."""
    name = settings.rule
    rule = OFFERED[name]
    if name in ("exact", "greedy") or (
        rule.lossless and settings.sampling.greedy and rule.greedy_at_zero
    ):
        return {}, []
    options = rule.filled(settings.rule_options)
    word = {"rejection_sample_method": _WORDS.get(name, "")}
    if name == "block":
        return word, []
    if name == "synthetic":
        return {**word, **_synthetic(settings, str(options["rates"]), options["length"])}, []
    if name == "fly" and options["reading"] == "vllm":
        window = {"fly_window_size": options["window"]} if options["window"] else {}
        return {**word, **window, "fly_entropy_threshold": options["entropy"]}, []
    return {}, [f"vLLM has no counterpart of the rule {name}: it decides by its exact one."]


def _synthetic(settings: RunSettings, rates: str, length: object) -> dict[str, Any]:
    """One rate a guess, as vLLM wants them."""
    if not rates.strip():
        return {"synthetic_acceptance_length": length}
    numbers = [float(rate) for rate in rates.split(",")]
    missing = settings.draft_length - len(numbers)
    return {"synthetic_acceptance_rates": [*numbers, *[0.0] * missing][: settings.draft_length]}


def _filled(settings: RunSettings) -> Mapping[str, Any]:
    """Every option of the method."""
    return METHODS[settings.method].filled(settings.method_options)


def _weights(precision: str) -> list[str]:
    """The flags that say how the target's weights are held."""
    if precision == "nf4":
        return ["--dtype", "bfloat16", "--quantization", "bitsandbytes"]
    return ["--dtype", _DTYPES[precision]] if precision in _DTYPES else []


def _request(settings: RunSettings) -> dict[str, Any]:
    """A request's parameters, but for the prompt."""
    request: dict[str, Any] = sampled(settings.sampling, _REQUEST)
    request["max_tokens"] = settings.max_new_tokens
    if settings.stop_strings:
        request["stop"] = list(settings.stop_strings)
    if settings.ignore_end_of_text:
        request["ignore_eos"] = True
    return request


def _sampling(settings: RunSettings) -> list[str]:
    """What a request's parameters do otherwise there."""
    sampling, changed = settings.sampling, []
    if not sampling.greedy:
        changed.append("The same seed draws another text: vLLM has a random stream of its own.")
    if sampling.min_p and (sampling.top_k or sampling.top_p < 1.0):
        changed.append("vLLM cuts by min-p before top-k and top-p; here it is the last cut.")
    return changed


def _kept_here(setup: Setup) -> list[str]:
    """Precisions that vLLM does not make of a folder's weights, or is not told."""
    precision = setup.precision
    if precision not in _KNOWN or precision == "nf4" or precision in _DTYPES:
        return chosen_here(setup, "vLLM")
    return [f"vLLM does not hold weights in {precision} as this program does: it is left out."]
