"""A set-up for llama.cpp's `llama-server`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from app.elsewhere.setup import PLACE, Setup, Written, eagle
from app.run.methods import METHODS
from app.run.rules import RULES
from app.run.settings import RunSettings

RELEASE = "commit 0c1e57098"
"""The llama.cpp that llama-cpp-python 0.3.36 carries, in whose `common/arg.cpp` the flags stand."""

_Part = tuple[list[str], list[str]]
"""Flags, and what is not the same there."""


def llama_cpp(setup: Setup) -> Written:
    """The command, with the sampling parameters that requests take unless they say otherwise."""
    settings = setup.settings
    label = METHODS[settings.method].label
    if settings.method != "nothing" and settings.method not in _METHODS:
        return Written("", [f"llama.cpp has no counterpart of the method {label}."])
    if settings.method in _HEADS and eagle(setup.draft) != "eagle3":
        said = (
            f"llama.cpp has no counterpart of the method {label} with {setup.draft!r}: it reads "
            "published EAGLE-3 heads only."
        )
        return Written("", [said])
    flags, changed = _speculation(setup)
    words = ["llama-server", "-m", _gguf(setup.target), *flags, *_sampling(settings)]
    notes = [
        "llama.cpp reads GGUF files, in their own precision: take one of the model, or convert it "
        "with convert_hf_to_gguf.py.",
        *_held_here(setup, flags),
        *changed,
        *_rule(settings)[1],
        *_sampled_otherwise(settings),
    ]
    return Written(shlex.join(words), notes)


def _held_here(setup: Setup, flags: list[str]) -> list[str]:
    """The precisions that the files should be near, as far as they are known."""
    target, draft = setup.precision, setup.draft_precision if "-md" in flags else ""
    named = [
        f"{role} is held in {held}" for role, held in (("target", target), ("draft", draft)) if held
    ]
    said = [f"Here the {' and the '.join(named)}: choose files near that."] if named else []
    if draft and draft != target and setup.target == setup.draft:
        said.append("-m and -md stand for two files of the same model.")
    return said


def _gguf(model: str) -> str:
    """The file that stands for a model."""
    return f"{PLACE}{model.rsplit('/', 1)[-1]}.gguf"


def _speculation(setup: Setup) -> _Part:
    settings = setup.settings
    if settings.method == "nothing" or not settings.draft_length:
        return [], []
    flags, changed = _METHODS[settings.method](setup)
    return [*flags, *_rule(settings)[0]], [*changed, *_lengths(settings)]


def _ngram(setup: Setup) -> _Part:
    settings = setup.settings
    options = METHODS[settings.method].filled(settings.method_options)
    size, taken = options["shortest"], options.get("match", "last")
    flags = [
        *("--spec-type", "ngram-simple"),
        *("--spec-ngram-simple-size-n", str(size)),
        *("--spec-ngram-simple-size-m", str(settings.draft_length)),
    ]
    changed = [
        f"ngram-simple compares exactly {size} tokens, the shortest match, and takes the last "
        f"place; it guesses {settings.draft_length} tokens or none."
    ]
    if taken != "last":
        changed.append(f"The {taken} place of a match is not taken there.")
    return flags, changed


def _draft_model(setup: Setup) -> _Part:
    flags = [
        *("-md", _gguf(setup.draft)),
        *("--spec-type", "draft-simple"),
        *("--spec-draft-n-max", str(setup.settings.draft_length)),
    ]
    changed = "llama.cpp's draft takes its likeliest token; it never draws."
    return flags, [changed] if _draws(setup.settings) else []


def _head(setup: Setup) -> _Part:
    length = str(setup.settings.draft_length)
    flags = ["-md", _gguf(setup.draft), "--spec-type", "draft-eagle3", "--spec-draft-n-max", length]
    return flags, [_LIKELIEST] if _draws(setup.settings) else []


def _ngram_else_head(setup: Setup) -> _Part:
    (ngram, changed), (head, more) = _ngram(setup), _head(setup)
    types = ("--spec-type", "ngram-simple,draft-eagle3")
    flags = [
        flag for flag in (*ngram, *head) if flag not in (*types, "ngram-simple", "draft-eagle3")
    ]
    return [*types, *flags], [*changed, *more]


def _mtp(setup: Setup) -> _Part:
    length = str(setup.settings.draft_length)
    flags = ["--spec-type", "draft-mtp", "--spec-draft-n-max", length]
    return flags, [_LIKELIEST] if _draws(setup.settings) else []


_LIKELIEST = "llama.cpp's guesses are the likeliest tokens."


def _draws(settings: RunSettings) -> bool:
    """Whether guesses are drawn here, and not the likeliest tokens anyway."""
    options = METHODS[settings.method].filled(settings.method_options)
    return not settings.sampling.greedy and options.get("draft_sampling", "target") != "argmax"


_METHODS: Mapping[str, Callable[[Setup], _Part]] = {
    "ngram": _ngram,
    "draft-model": _draft_model,
    "mtp": _mtp,
    "head": _head,
    "ngram-else-head": _ngram_else_head,
}
"""The methods that llama.cpp has too, and its flags for them."""
_HEADS = ("head", "ngram-else-head")


def _lengths(settings: RunSettings) -> list[str]:
    """What of the choice of draft lengths is not there."""
    if settings.draft_length_policy == "fixed":
        return []
    near = ""
    if settings.draft_length_policy == "confidence":
        near = " Its nearest is --spec-draft-p-min, which drops the unlikely guess untested."
    return [f"The draft length policy {settings.draft_length_policy} is left out.{near}"]


def _rule(settings: RunSettings) -> _Part:
    """The rule: llama.cpp draws the target's own token and keeps guesses that are the same."""
    name, rule = settings.rule, RULES[settings.rule]
    if settings.method == "nothing" or name in ("greedy", "sample-match"):
        return [], []
    options = rule.filled(settings.rule_options)
    if name == "synthetic":
        rates = str(options["rates"]).replace(" ", "")
        if rates:
            return ["--spec-synth-rates", rates], []
        return ["--spec-synth-len", f"{options['length']:g}"], []
    if settings.sampling.greedy and rule.lossless:
        return [], []
    law = "the same law, fewer guesses kept" if rule.lossless else "lossless, unlike here"
    return [], [
        f"llama.cpp has no counterpart of the rule {name}: it draws the target's own token and "
        f"keeps a guess that is the same (sample-match here): {law}."
    ]


def _sampling(settings: RunSettings) -> list[str]:
    """Sampling as it is here: penalties, temperature, top-k, top-p, min-p."""
    sampling = settings.sampling
    flags = ["--temp", f"{sampling.temperature:g}", "-n", str(settings.max_new_tokens)]
    if not sampling.greedy:
        flags += ["--top-k", str(sampling.top_k), "--top-p", f"{sampling.top_p:g}"]
        flags += ["--min-p", f"{sampling.min_p:g}", "--seed", str(sampling.seed)]
    if sampling.penalised:
        flags += ["--repeat-penalty", f"{sampling.repetition_penalty:g}"]
        flags += ["--presence-penalty", f"{sampling.presence_penalty:g}"]
    if sampling.penalised or not sampling.greedy:
        flags += ["--samplers", "penalties;temperature;top_k;top_p;min_p"]
    if settings.ignore_end_of_text:
        flags += ["--ignore-eos"]
    if settings.context_length is not None:
        flags += ["-c", str(settings.context_length)]
    return flags


def _sampled_otherwise(settings: RunSettings) -> list[str]:
    """What the sampling flags do otherwise there."""
    sampling, changed = settings.sampling, []
    if not sampling.greedy:
        changed.append(
            "The same seed draws another text: llama.cpp has a random stream of its own."
        )
    if sampling.penalised:
        changed.append(
            "Penalties reach 64 tokens back there unless --repeat-last-n says more; presence "
            "counts the prompt too."
        )
    if settings.stop_strings:
        changed.append('Stop strings go with each request ("stop").')
    return changed
