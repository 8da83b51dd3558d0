"""A set-up for `generate` of transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.elsewhere.setup import Setup, Written, chosen_here, place_notes
from app.run.methods import METHODS
from app.run.rules import RULES
from app.run.settings import RunSettings

RELEASE = "5.24.0"
"""The release that the arguments were read in."""

_Part = tuple[dict[str, Any], list[str]]
"""Arguments of `generate`, and what is not the same there."""

_DTYPES = {"fp32": "torch.float32", "bf16": "torch.bfloat16", "fp16": "torch.float16"}
_ASSISTANT = "assistant"
_HELD = (
    "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type={!r}, "
    "bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16)"
)


class Name(str):
    """A word of the program that is not in quotes there."""

    def __repr__(self) -> str:
        return str(self)


def transformers_generate(setup: Setup) -> Written:
    """A short program."""
    settings = setup.settings
    if settings.method != "nothing" and settings.method not in _METHODS:
        label = METHODS[settings.method].label
        return Written("", [f"transformers has no counterpart of the method {label}."])
    arguments, changed = generate_arguments(setup)
    text = _program(setup, arguments)
    return Written(text, [*changed, *_elsewise(settings), *_kept_here(setup), *place_notes(setup)])


def generate_arguments(setup: Setup) -> _Part:
    """The arguments of `generate` but for the ids, and what is not the same there."""
    settings = setup.settings
    arguments: dict[str, Any] = {"max_new_tokens": settings.max_new_tokens}
    changed: list[str] = []
    if settings.method != "nothing" and settings.draft_length:
        for found, told in (_METHODS[settings.method](setup), _rule(settings)):
            arguments |= found
            changed += told
    return arguments | _sampling(settings), changed


def _ngram(setup: Setup) -> _Part:
    settings = setup.settings
    options = METHODS[settings.method].filled(settings.method_options)
    arguments = {
        "prompt_lookup_num_tokens": settings.draft_length,
        "max_matching_ngram_size": options["longest"],
    }
    changed = []
    if options["shortest"] != 1:
        changed.append(
            f"transformers looks up a match of a single token too, not {options['shortest']} at "
            "least."
        )
    if options.get("match", "last") != "first":
        taken = options.get("match", "last")
        changed.append(f"transformers takes the first place of a match, not the {taken}.")
    if settings.draft_length_policy != "fixed":
        changed.append(f"The draft length policy {settings.draft_length_policy} is left out.")
    return arguments, changed


def _draft_model(setup: Setup) -> _Part:
    settings = setup.settings
    options = METHODS[settings.method].filled(settings.method_options)
    arguments, changed = _lengths(settings)
    if not settings.sampling.greedy and options.get("draft_sampling", "target") != "target":
        changed.append("The assistant draws by the settings of the target there.")
    return {"assistant_model": Name(_ASSISTANT), **arguments}, changed


def _tli(setup: Setup) -> _Part:
    arguments, changed = _draft_model(setup)
    if setup.settings.sampling.greedy:
        changed.append("Without drawing transformers re-tokenises the guesses (slem here).")
    return {**arguments, **_TOKENIZERS}, changed


def _slem(setup: Setup) -> _Part:
    arguments, changed = _draft_model(setup)
    if not setup.settings.sampling.greedy:
        changed.append("Where it draws transformers takes the tokens of both (tli here).")
    return {**arguments, **_TOKENIZERS}, changed


def _early_exit(setup: Setup) -> _Part:
    settings = setup.settings
    options = METHODS[settings.method].filled(settings.method_options)
    arguments, changed = _lengths(settings)
    layers = options["exit_layer"] or Name("max(1, model.config.num_hidden_layers // 3)")
    told = "The layers that guess keep a cache of their own there."
    if not settings.sampling.greedy and options.get("draft_sampling", "target") != "target":
        changed = [*changed, "The layers that guess draw by the settings of the target there."]
    return {"assistant_early_exit": layers, **arguments}, [*changed, told]


def _mtp(setup: Setup) -> _Part:
    settings = setup.settings
    options = METHODS[settings.method].filled(settings.method_options)
    arguments, changed = _lengths(settings)
    if not settings.sampling.greedy and options["draft_sampling"] != "target":
        changed = [*changed, "The modules draw by the settings of the target there."]
    return {"use_mtp": True, **arguments}, changed


_TOKENIZERS = {"tokenizer": Name("tokenizer"), "assistant_tokenizer": Name("assistant_tokenizer")}
_METHODS: Mapping[str, Callable[[Setup], _Part]] = {
    "ngram": _ngram,
    "draft-model": _draft_model,
    "tli": _tli,
    "slem": _slem,
    "early-exit": _early_exit,
    "mtp": _mtp,
}
"""The methods that transformers has too, and its arguments for them."""


def _lengths(settings: RunSettings) -> _Part:
    """How many tokens an assistant guesses."""
    policy, options = settings.draft_length_policy, settings.draft_length_options
    arguments: dict[str, Any] = {
        "num_assistant_tokens": settings.draft_length,
        "num_assistant_tokens_schedule": "constant",
        "assistant_confidence_threshold": 0.0,
    }
    if policy == "heuristic":
        start = options.get("start", 4)
        arguments |= {
            "num_assistant_tokens": start,
            "num_assistant_tokens_schedule": "heuristic_transient",
        }
        return arguments, [f"Drafts may grow past {settings.draft_length} tokens there."]
    if policy == "confidence":
        arguments["assistant_confidence_threshold"] = options.get("threshold", 0.4)
        return arguments, ["With scikit-learn installed, transformers moves the threshold itself."]
    told = [] if policy == "fixed" else [f"The draft length policy {policy} is left out."]
    return arguments, told


def _rule(settings: RunSettings) -> _Part:
    """The rule: exact for assistants of the same vocabulary, else the target's own draws."""
    name, rule = settings.rule, RULES[settings.rule]
    assisted = settings.method in ("draft-model", "tli", "early-exit", "mtp")
    matching = settings.method in ("ngram", "slem")
    if name == "ensemble" and settings.method == "draft-model":
        weight = rule.filled(settings.rule_options)["weight"]
        if weight != 1.0:
            return {"assistant_ensemble_weight": weight}, []
    same = (assisted and name == "exact") or (matching and name in ("exact", "sample-match"))
    if same or (settings.sampling.greedy and rule.lossless):
        return {}, []
    law = "the law of the text is the same" if rule.lossless else "lossless, unlike here"
    return {}, [
        f"transformers has no counterpart of the rule {name}: it decides by its own; {law}."
    ]


def _sampling(settings: RunSettings) -> dict[str, Any]:
    """Sampling: transformers' order of penalties, temperature and cuts is the one here."""
    sampling = settings.sampling
    arguments: dict[str, Any] = {"do_sample": not sampling.greedy}
    if not sampling.greedy:
        arguments |= {"temperature": sampling.temperature, "top_k": sampling.top_k}
        arguments |= {"top_p": sampling.top_p}
        arguments |= {"min_p": sampling.min_p} if sampling.min_p else {}
    if sampling.repetition_penalty != 1.0:
        arguments["repetition_penalty"] = sampling.repetition_penalty
    if settings.stop_strings:
        arguments |= {"stop_strings": list(settings.stop_strings), "tokenizer": Name("tokenizer")}
    return arguments


def _elsewise(settings: RunSettings) -> list[str]:
    """What is not there, or otherwise, of settings that have nothing to do with guesses."""
    changed = []
    if not settings.sampling.greedy:
        changed.append("The same seed draws another text: torch's own random stream is used.")
    if settings.sampling.presence_penalty:
        changed.append("transformers has no presence penalty: it is left out.")
    if settings.ignore_end_of_text:
        changed.append("The text ends at an end-of-text token there.")
    return changed


def _kept_here(setup: Setup) -> list[str]:
    """Precisions that transformers does not make of a folder's weights, or is not told."""
    if "int8" in (setup.precision, setup.draft_precision):
        return ["transformers does not hold weights in int8 as this program does: it is left out."]
    return chosen_here(setup, "transformers")


def _held(precision: str) -> str:
    """The arguments that say how weights are held; what is not quantised is in bf16."""
    if precision in ("nf4", "fp4"):
        return f", dtype=torch.bfloat16, quantization_config={_HELD.format(precision)}"
    if precision == "llm-int8":
        quantised = "BitsAndBytesConfig(load_in_8bit=True)"
        return f", dtype=torch.bfloat16, quantization_config={quantised}"
    return f", dtype={_DTYPES[precision]}" if precision in _DTYPES else ""


def _program(setup: Setup, arguments: Mapping[str, Any]) -> str:
    """The whole of it; the prompt is left open."""
    settings = setup.settings
    target, draft = setup.target, setup.draft
    held = f", device_map='auto'{_held(setup.precision)}"
    lines = [
        f"tokenizer = AutoTokenizer.from_pretrained({target!r})",
        f"model = AutoModelForCausalLM.from_pretrained({target!r}{held})",
    ]
    if "assistant_model" in arguments:
        held = f", device_map='auto'{_held(setup.draft_precision)}"
        lines.append(f"assistant = AutoModelForCausalLM.from_pretrained({draft!r}{held})")
    if "assistant_tokenizer" in arguments:
        lines.append(f"assistant_tokenizer = AutoTokenizer.from_pretrained({draft!r})")
    lines += _reading(settings)
    if not settings.sampling.greedy:
        lines.append(f"set_seed({settings.sampling.seed % 2**32})")
    lines += ["output = model.generate(", "    **inputs,"]
    lines += [f"    {name}={value!r}," for name, value in arguments.items()]
    lines += [")", "print(tokenizer.decode(output[0, inputs['input_ids'].shape[1]:]))"]
    return "\n".join([*_imports("\n".join(lines)), "", *lines])


_IMPORTED = ("AutoModelForCausalLM", "AutoTokenizer", "BitsAndBytesConfig", "set_seed")


def _imports(text: str) -> list[str]:
    """The lines that a program has to begin with."""
    torch = ["import torch"] if "torch." in text else []
    return [*torch, f"from transformers import {', '.join(n for n in _IMPORTED if n in text)}"]


def _reading(settings: RunSettings) -> list[str]:
    """How the prompt becomes ids."""
    if settings.raw:
        return ["inputs = tokenizer('YOUR PROMPT', return_tensors='pt').to(model.device)"]
    said = [{"role": "system", "content": settings.system}] if settings.system else []
    said += [{"role": "user", "content": "YOUR PROMPT"}]
    return [
        f"messages = {said!r}",
        "inputs = tokenizer.apply_chat_template(",
        "    messages, add_generation_prompt=True, return_dict=True, return_tensors='pt'",
        ").to(model.device)",
    ]
