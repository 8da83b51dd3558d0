"""`run`: one prompt, with speculation and without, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli import flags
from app.cli.asked import (
    check_unicode,
    chosen_pair,
    prompt_text,
    with_lengths,
    with_method,
    with_rule,
)
from app.cli.catalogued import catalogue as load_catalogue
from app.cli.running import run_study
from app.cli.vllm_words import say_once, told_by_vllm
from app.elsewhere.programs import PROGRAMS
from app.run.methods import METHODS
from app.run.problems import empty_prompt
from app.run.settings import Detail, Precision, RunSettings, Sampling

_PRESETS = sorted({preset.name for method in METHODS.values() for preset in method.presets})

_Prompt = Annotated[str | None, typer.Option(help="The prompt.")]
_PromptFile = Annotated[
    Path | None, typer.Option(help="A UTF-8 file with the prompt; - reads standard input.")
]
_System = Annotated[str, typer.Option(help="The system prompt.")]
_Raw = Annotated[bool, typer.Option("--raw", help="Without the chat template.")]
_Pair = Annotated[
    str | None, typer.Option(help="A pair of `foretoken models`; else the default one.")
]
_Method = Annotated[
    str | None, typer.Option(help=f"How to guess: {', '.join(METHODS)}. Else the pair's own.")
]
_MethodPreset = Annotated[
    str | None,
    typer.Option(
        help=f"Another program's defaults for the method: {', '.join(_PRESETS)}. What is given "
        "besides wins over it."
    ),
]
_DraftLength = Annotated[
    int | None, typer.Option(help="Most tokens guessed in a loop; else the pair's own.")
]
_MaxNewTokens = Annotated[int, typer.Option(help="Most tokens of the text.")]
_Stop = Annotated[list[str] | None, typer.Option(help="A string that ends the text; may repeat.")]
_IgnoreEndOfText = Annotated[
    bool, typer.Option("--ignore-end-of-text", help="Go on behind an end-of-text token.")
]
_ContextLength = Annotated[
    int | None, typer.Option(help="Most tokens of prompt and text; else the models' limit.")
]
_TopK = Annotated[int, typer.Option(help="Keep the k likeliest tokens; 0 keeps all.")]
_MinP = Annotated[
    float, typer.Option(help="Keep tokens this likely beside the likeliest; 0 keeps all.")
]
_RepetitionPenalty = Annotated[float, typer.Option(help="1 is off.")]
_PresencePenalty = Annotated[float, typer.Option(help="0 is off.")]
_Precision = Annotated[
    Precision | None, typer.Option(help="The target's; else fp32 on a CPU, nf4 on a card.")
]
_Device = Annotated[
    str | None, typer.Option(help="For example cpu, cuda:0, mps; else the best one here.")
]
_NoBaseline = Annotated[
    bool, typer.Option("--no-baseline", help="Without the lane to compare with.")
]
_Detail = Annotated[Detail, typer.Option(help="full keeps the likeliest tokens too.")]
_ShowRejected = Annotated[
    bool, typer.Option("--show-rejected", help="Show the guesses thrown away, struck through.")
]
_UseElsewhere = Annotated[
    bool,
    typer.Option("--use-elsewhere", help=f"Tell the same set-up for {', '.join(PROGRAMS)} too."),
]
_AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout instead of the text.")
]
_Report = Annotated[
    list[Path] | None,
    typer.Option(help="Write a report: .json, .csv, .md or .html; may repeat; replaces it."),
]


def run(
    *,
    prompt: _Prompt = None,
    prompt_file: _PromptFile = None,
    system: _System = "",
    raw: _Raw = False,
    pair: _Pair = None,
    method: _Method = None,
    option: flags.MethodOption = None,
    method_preset: _MethodPreset = None,
    draft_length: _DraftLength = None,
    draft_length_policy: flags.Policy = None,
    draft_length_option: flags.PolicyOption = None,
    rule: flags.RuleName = None,
    rule_option: flags.RuleOption = None,
    speculative_config: flags.SpeculativeConfig = None,
    max_new_tokens: _MaxNewTokens = 256,
    stop: _Stop = None,
    ignore_end_of_text: _IgnoreEndOfText = False,
    context_length: _ContextLength = None,
    temperature: flags.Temperature = 0.0,
    top_k: _TopK = 0,
    top_p: flags.TopP = 1.0,
    min_p: _MinP = 0.0,
    repetition_penalty: _RepetitionPenalty = 1.0,
    presence_penalty: _PresencePenalty = 0.0,
    seed: flags.Seed = 0,
    precision: _Precision = None,
    draft_precision: flags.DraftPrecision = None,
    device: _Device = None,
    draft_device: flags.DraftDevice = None,
    allow_offload: flags.AllowOffload = False,
    passes: flags.Passes = "auto",
    repeats: flags.Repeats = 1,
    no_baseline: _NoBaseline = False,
    detail: _Detail = "light",
    show_rejected: _ShowRejected = False,
    use_elsewhere: _UseElsewhere = False,
    as_json: _AsJson = False,
    report: _Report = None,
) -> None:
    """Write a text with speculative decoding, then without, and compare."""
    lengths = (draft_length, draft_length_policy, draft_length_option)
    say_once(speculative_config, method, option, method_preset, *lengths, rule, rule_option)
    text = prompt_text(prompt, prompt_file)
    if not (raw or text.strip()):
        raise empty_prompt()
    check_unicode([text, system, *(stop or [])])
    catalogue = load_catalogue()
    entry = chosen_pair(catalogue, pair)
    settings = RunSettings(
        pair=entry.name,
        prompt=text,
        system=system,
        raw=raw,
        sampling=Sampling(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            presence_penalty=presence_penalty,
            seed=seed,
        ),
        max_new_tokens=max_new_tokens,
        stop_strings=tuple(stop or ()),
        ignore_end_of_text=ignore_end_of_text,
        precision=precision,
        draft_precision=draft_precision,
        device=device,
        draft_device=draft_device,
        allow_offload=allow_offload,
        passes=passes,
        context_length=context_length,
        baseline=not no_baseline,
        repetitions=repeats,
        detail=detail,
    )
    settings = with_method(
        settings, entry, method, option, preset=method_preset, draft_length=draft_length
    )
    settings = with_rule(settings, entry, rule, rule_option)
    settings = with_lengths(settings, entry, draft_length_policy, draft_length_option)
    if speculative_config is not None:
        settings = told_by_vllm(settings, speculative_config, catalogue, pair=pair)
    code = run_study(
        settings,
        catalogue,
        reports=report or [],
        as_json=as_json,
        show_rejected=show_rejected,
        use_elsewhere=use_elsewhere,
    )
    raise typer.Exit(code)
