"""`bench`: methods and draft lengths over a set of prompts, or over random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli import flags
from app.cli.asked import chosen_pair, with_lengths, with_rule
from app.cli.bench_asked import bench_prompts, bench_ways
from app.cli.benching import run_bench_study
from app.cli.catalogued import catalogue as load_catalogue
from app.cli.random_benching import check_beside, one_length, run_random_bench
from app.cli.vllm_words import say_once, told_by_vllm
from app.library.random_shapes import RANDOM_SHAPES
from app.run.random_bench import RandomBench
from app.run.settings import Precision, RunSettings, Sampling

_Prompts = Annotated[
    Path | None, typer.Option(help="Prompts: .jsonl, .csv or text; else the shipped ones.")
]
_Column = Annotated[str | None, typer.Option(help="The column of a CSV file.")]
_Methods = Annotated[
    str | None, typer.Option(help="Methods, separated by commas; else the pair's own.")
]
_DraftLengths = Annotated[
    str | None, typer.Option(help="Draft lengths, separated by commas; else the pair's own.")
]
_LimitPerCategory = Annotated[
    int | None, typer.Option(help="Only the first so many prompts of each category.")
]
_MaxNewTokens = Annotated[int, typer.Option(help="Most tokens of each text.")]
_Precision = Annotated[Precision | None, typer.Option(help="Else fp32 on a CPU, nf4 on a card.")]
_RandomModel = Annotated[
    str | None,
    typer.Option(
        help="Instead of a pair: random weights in this shape, made on the device: "
        f"{', '.join(RANDOM_SHAPES)}. Measures passes, the loop and its limit; --draft-lengths "
        "then takes one length."
    ),
]
_RandomDraft = Annotated[
    str | None,
    typer.Option(help="The shape of their draft, or none; else the next smaller one."),
]
_PromptTokens = Annotated[
    int,
    typer.Option(help="Tokens before their texts; passes are timed behind as many, at least 256."),
]
_Alpha = Annotated[
    float, typer.Option(help="The chance with which their guesses are kept: simulated.")
]
_Resume = Annotated[
    Path | None, typer.Option(help="A file of finished runs: go on from it, and add to it.")
]
_Report = Annotated[
    list[Path] | None,
    typer.Option(
        help="Write a report: .json, .csv, .md or .html (of random weights .json or .md); may "
        "repeat; replaces it."
    ),
]


def bench(
    context: typer.Context,
    *,
    prompts: _Prompts = None,
    column: _Column = None,
    pair: flags.Pair = None,
    methods: _Methods = None,
    draft_lengths: _DraftLengths = None,
    draft_length_policy: flags.Policy = None,
    draft_length_option: flags.PolicyOption = None,
    rule: flags.RuleName = None,
    rule_option: flags.RuleOption = None,
    speculative_config: flags.SpeculativeConfig = None,
    limit_per_category: _LimitPerCategory = None,
    max_new_tokens: _MaxNewTokens = 128,
    temperature: flags.Temperature = 0.0,
    top_p: flags.TopP = 1.0,
    seed: flags.Seed = 0,
    precision: _Precision = None,
    device: flags.Device = None,
    draft_device: flags.DraftDevice = None,
    allow_offload: flags.AllowOffload = False,
    passes: flags.Passes = "auto",
    repeats: flags.Repeats = 3,
    random_model: _RandomModel = None,
    random_draft: _RandomDraft = None,
    prompt_tokens: _PromptTokens = 64,
    alpha: _Alpha = 0.75,
    resume: _Resume = None,
    as_json: flags.AsJson = False,
    report: _Report = None,
) -> None:
    """Measure methods and draft lengths over a set of prompts, each beside its baseline."""
    check_beside(context)
    if random_model is not None:
        wanted = RandomBench(
            random_model,
            draft=random_draft,
            precision=precision,
            device=device,
            passes=passes,
            acceptance=alpha,
            draft_length=one_length(draft_lengths),
            prompt=prompt_tokens,
            tokens=max_new_tokens,
            repeats=repeats,
            seed=seed,
        )
        raise typer.Exit(run_random_bench(wanted, as_json=as_json, reports=report or []))
    lengths = (draft_lengths, draft_length_policy, draft_length_option)
    say_once(speculative_config, methods, *lengths, rule, rule_option)
    catalogue = load_catalogue()
    entry = chosen_pair(catalogue, pair)
    chosen = bench_prompts(prompts, column=column, limit=limit_per_category)
    settings = RunSettings(
        pair=entry.name,
        prompt="",
        method=entry.method,
        method_options=entry.method_options,
        sampling=Sampling(temperature=temperature, top_p=top_p, seed=seed),
        max_new_tokens=max_new_tokens,
        precision=precision,
        device=device,
        draft_device=draft_device,
        allow_offload=allow_offload,
        passes=passes,
        repetitions=repeats,
    )
    settings = with_rule(settings, entry, rule, rule_option)
    settings = with_lengths(settings, entry, draft_length_policy, draft_length_option)
    if speculative_config is None:
        ways = bench_ways(entry, methods, draft_lengths)
    else:
        settings = told_by_vllm(settings, speculative_config, catalogue, pair=pair)
        ways = [(settings.method, settings.draft_length)]
    code = run_bench_study(
        catalogue,
        chosen.prompts,
        ways,
        settings=settings,
        keep=resume,
        as_json=as_json,
        reports=report or [],
    )
    raise typer.Exit(code)
