"""The commands of the terminal and their flags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from app import __version__
from app.cli.asked import (
    bench_ways,
    check_unicode,
    chosen_lengths,
    chosen_method,
    chosen_pair,
    chosen_rule,
    options_of,
    own_options,
    prompt_text,
)
from app.cli.auditing import run_audit
from app.cli.benching import run_bench_study
from app.cli.catalogued import catalogue as load_catalogue
from app.cli.elsewhere import show_recipes
from app.cli.kept_texts import texts
from app.cli.model_commands import models
from app.cli.random_benching import check_beside, one_length, run_random_bench
from app.cli.running import check_reports, run_study
from app.cli.screen import remarks, results, say
from app.cli.tables import show_verdict
from app.cli.token_stream import TokenStream, replay
from app.cli.training import run_train
from app.cli.vllm_words import say_once, told_by_vllm
from app.elsewhere.programs import PROGRAMS
from app.library.prompts import limit_per_category as limit_to
from app.library.prompts import read_prompts, shipped_prompts
from app.library.random_shapes import RANDOM_SHAPES
from app.reports import read_record, write_report
from app.reports.schema import record_schema
from app.reports.told_elsewhere import told_elsewhere
from app.run.auditing import DRAFT_LENGTH as AUDITED_LENGTH
from app.run.auditing import RUNS, TOP_K, Audit
from app.run.draft_lengths import LENGTH_POLICIES
from app.run.methods import METHODS, Method
from app.run.problems import Problem
from app.run.random_bench import RandomBench
from app.run.rules import RULES
from app.run.settings import Detail, PassKind, Precision, RunSettings, Sampling
from app.run.teaching import DISK_GIB, VOCABULARY, WRITING_SHARE, Teach
from app.selftest.selftest import run_selftest

_Policy = Annotated[
    str | None,
    typer.Option(
        help="What chooses each round's draft length, the draft length being the most: "
        f"{', '.join(LENGTH_POLICIES)}. Else the pair's own."
    ),
]
_PolicyOption = Annotated[
    list[str] | None,
    typer.Option(help="An option of the draft length policy, name=value; may repeat."),
]
_Preset = Annotated[
    str | None,
    typer.Option(
        help="Another program's defaults for the method: "
        f"{', '.join(sorted({one.name for way in METHODS.values() for one in way.presets}))}. "
        "What is given besides wins over it."
    ),
]
_Rule = Annotated[
    str | None,
    typer.Option(help=f"Which guesses are kept: {', '.join(RULES)}. Else the pair's own."),
]
_RuleOption = Annotated[
    list[str] | None, typer.Option(help="An option of the rule, name=value; may repeat.")
]
_SpeculativeConfig = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help="Method, draft length and rule in the words of vLLM's flag of this name, instead of "
        "by flags of their own.",
    ),
]

terminal = typer.Typer(
    help="Foretoken: see speculative decoding at work, beside a measured baseline.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
OFFLOAD_HELP = (
    "Let weights that a card has no room for stay in the machine's memory: slow, and the figures "
    "are not the card's."
)

PASSES_HELP = (
    "auto: as captured graphs on a card, where they answer as eager passes do; eager; fixed: in "
    "the shapes of graphs, on any device."
)

terminal.add_typer(models, name="models")
terminal.command()(texts)


def _version(asked: bool) -> None:
    if asked:
        say(results(), f"foretoken {__version__}")
        raise typer.Exit


@terminal.callback()
def foretoken(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Tell the version.")
    ] = False,
) -> None:
    """Foretoken: see speculative decoding at work, beside a measured baseline."""


@terminal.command()
def run(
    *,
    prompt: Annotated[str | None, typer.Option(help="The prompt.")] = None,
    prompt_file: Annotated[
        Path | None, typer.Option(help="A UTF-8 file with the prompt; - reads standard input.")
    ] = None,
    system: Annotated[str, typer.Option(help="The system prompt.")] = "",
    raw: Annotated[bool, typer.Option("--raw", help="Without the chat template.")] = False,
    pair: Annotated[
        str | None, typer.Option(help="A pair of `foretoken models`; else the default one.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help=f"How to guess: {', '.join(METHODS)}. Else the pair's own.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the method, name=value; may repeat.")
    ] = None,
    method_preset: _Preset = None,
    draft_length: Annotated[
        int | None, typer.Option(help="Most tokens guessed in a round; else the pair's own.")
    ] = None,
    draft_length_policy: _Policy = None,
    draft_length_option: _PolicyOption = None,
    rule: _Rule = None,
    rule_option: _RuleOption = None,
    speculative_config: _SpeculativeConfig = None,
    max_new_tokens: Annotated[int, typer.Option(help="Most tokens of the text.")] = 256,
    stop: Annotated[
        list[str] | None, typer.Option(help="A string that ends the text; may repeat.")
    ] = None,
    ignore_end_of_text: Annotated[
        bool, typer.Option("--ignore-end-of-text", help="Go on behind an end-of-text token.")
    ] = False,
    context_length: Annotated[
        int | None, typer.Option(help="Most tokens of prompt and text; else the models' limit.")
    ] = None,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token.")] = 0.0,
    top_k: Annotated[int, typer.Option(help="Keep the k likeliest tokens; 0 keeps all.")] = 0,
    top_p: Annotated[float, typer.Option(help="Keep the likeliest up to p; 1 keeps all.")] = 1.0,
    min_p: Annotated[
        float, typer.Option(help="Keep tokens this likely beside the likeliest; 0 keeps all.")
    ] = 0.0,
    repetition_penalty: Annotated[float, typer.Option(help="1 is off.")] = 1.0,
    presence_penalty: Annotated[float, typer.Option(help="0 is off.")] = 0.0,
    seed: Annotated[int, typer.Option(help="The seed of every draw.")] = 0,
    precision: Annotated[
        Precision | None, typer.Option(help="The target's; else fp32 on a CPU, nf4 on a card.")
    ] = None,
    draft_precision: Annotated[
        Precision | None, typer.Option(help="The draft model's; else the pair's own.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="For example cpu, cuda:0, mps; else the best one here.")
    ] = None,
    draft_device: Annotated[
        str | None, typer.Option(help="The draft model's; else the pair's own, or the target's.")
    ] = None,
    allow_offload: Annotated[bool, typer.Option("--allow-offload", help=OFFLOAD_HELP)] = False,
    passes: Annotated[PassKind, typer.Option(help=PASSES_HELP)] = "auto",
    repeats: Annotated[int, typer.Option(help="How often each lane runs.")] = 1,
    no_baseline: Annotated[
        bool, typer.Option("--no-baseline", help="Without the lane to compare with.")
    ] = False,
    detail: Annotated[Detail, typer.Option(help="full keeps the likeliest tokens too.")] = "light",
    show_rejected: Annotated[
        bool, typer.Option("--show-rejected", help="Show the guesses thrown away, struck through.")
    ] = False,
    use_elsewhere: Annotated[
        bool,
        typer.Option(
            "--use-elsewhere", help=f"Tell the same set-up for {', '.join(PROGRAMS)} too."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout instead of the text.")
    ] = False,
    report: Annotated[
        list[Path] | None,
        typer.Option(help="Write a report: .json, .csv, .md or .html; may repeat; replaces it."),
    ] = None,
) -> None:
    """Write a text with speculative decoding, then without, and compare."""
    lengths = (draft_length, draft_length_policy, draft_length_option)
    say_once(speculative_config, method, option, method_preset, *lengths, rule, rule_option)
    text = prompt_text(prompt, prompt_file)
    check_unicode([text, system, *(stop or [])])
    catalogue = load_catalogue()
    entry = chosen_pair(catalogue, pair)
    way, options, length = chosen_method(
        entry, method, option, preset=method_preset, draft_length=draft_length
    )
    rule, rule_options = chosen_rule(entry, rule, rule_option)
    policy, policy_options = chosen_lengths(entry, draft_length_policy, draft_length_option)
    settings = RunSettings(
        pair=entry.name,
        prompt=text,
        system=system,
        raw=raw,
        method=way,
        method_options=options,
        draft_length=length,
        draft_length_policy=policy,
        draft_length_options=policy_options,
        rule=rule,
        rule_options=rule_options,
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
    if speculative_config is not None:
        settings = told_by_vllm(settings, speculative_config, catalogue, pair=pair)
    settings.check()
    check_reports(report or [])
    code = run_study(
        settings,
        catalogue,
        reports=report or [],
        as_json=as_json,
        show_rejected=show_rejected,
        use_elsewhere=use_elsewhere,
    )
    raise typer.Exit(code)


@terminal.command()
def bench(
    context: typer.Context,
    *,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts: .jsonl, .csv or text; else the shipped ones.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column of a CSV file.")] = None,
    pair: Annotated[str | None, typer.Option(help="A pair; else the default one.")] = None,
    methods: Annotated[
        str | None, typer.Option(help="Methods, separated by commas; else the pair's own.")
    ] = None,
    draft_lengths: Annotated[
        str | None, typer.Option(help="Draft lengths, separated by commas; else the pair's own.")
    ] = None,
    draft_length_policy: _Policy = None,
    draft_length_option: _PolicyOption = None,
    rule: _Rule = None,
    rule_option: _RuleOption = None,
    speculative_config: _SpeculativeConfig = None,
    limit_per_category: Annotated[
        int | None, typer.Option(help="Only the first so many prompts of each category.")
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(help="Most tokens of each text.")] = 128,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token.")] = 0.0,
    top_p: Annotated[float, typer.Option(help="Keep the likeliest up to p; 1 keeps all.")] = 1.0,
    seed: Annotated[int, typer.Option(help="The seed of every draw.")] = 0,
    precision: Annotated[
        Precision | None, typer.Option(help="Else fp32 on a CPU, nf4 on a card.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Else the best one here.")] = None,
    draft_device: Annotated[
        str | None, typer.Option(help="The draft model's; else the pair's own, or the target's.")
    ] = None,
    allow_offload: Annotated[bool, typer.Option("--allow-offload", help=OFFLOAD_HELP)] = False,
    passes: Annotated[PassKind, typer.Option(help=PASSES_HELP)] = "auto",
    repeats: Annotated[int, typer.Option(help="How often each lane runs.")] = 3,
    random_model: Annotated[
        str | None,
        typer.Option(
            help="Instead of a pair: random weights in this shape, made on the device: "
            f"{', '.join(RANDOM_SHAPES)}. Measures passes, the loop and its limit; --draft-lengths "
            "then takes one length."
        ),
    ] = None,
    random_draft: Annotated[
        str | None,
        typer.Option(help="The shape of their draft, or none; else the next smaller one."),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="The chance with which their guesses are kept: simulated.")
    ] = 0.75,
    resume: Annotated[
        Path | None, typer.Option(help="A file of finished runs: go on from it, and add to it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            help="Write a report: .json, .csv, .md or .html (of random weights .json or .md); may "
            "repeat; replaces it."
        ),
    ] = None,
) -> None:
    """Measure methods and draft lengths over a set of prompts, each beside its baseline."""
    check_beside(context)
    if random_model is not None:
        asked = RandomBench(
            random_model,
            draft=random_draft,
            precision=precision,
            device=device,
            passes=passes,
            acceptance=alpha,
            draft_length=one_length(draft_lengths),
            tokens=max_new_tokens,
            repeats=repeats,
            seed=seed,
        )
        raise typer.Exit(run_random_bench(asked, as_json=as_json, reports=report or []))
    lengths = (draft_lengths, draft_length_policy, draft_length_option)
    say_once(speculative_config, methods, *lengths, rule, rule_option)
    catalogue = load_catalogue()
    entry = chosen_pair(catalogue, pair)
    chosen = read_prompts(prompts, column=column) if prompts else shipped_prompts()
    if limit_per_category is not None:
        chosen = limit_to(chosen, limit_per_category)
    rule, rule_options = chosen_rule(entry, rule, rule_option)
    policy, policy_options = chosen_lengths(entry, draft_length_policy, draft_length_option)
    settings = RunSettings(
        pair=entry.name,
        prompt="",
        method=entry.method,
        method_options=entry.method_options,
        draft_length_policy=policy,
        draft_length_options=policy_options,
        rule=rule,
        rule_options=rule_options,
        sampling=Sampling(temperature=temperature, top_p=top_p, seed=seed),
        max_new_tokens=max_new_tokens,
        precision=precision,
        device=device,
        draft_device=draft_device,
        allow_offload=allow_offload,
        passes=passes,
        repetitions=repeats,
    )
    if speculative_config is None:
        ways = bench_ways(entry, methods, draft_lengths)
    else:
        settings = told_by_vllm(settings, speculative_config, catalogue, pair=pair)
        ways = [(settings.method, settings.draft_length)]
    settings.check()
    check_reports(report or [])
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


@terminal.command()
def audit(
    *,
    prompt: Annotated[str, typer.Option(help="The prompt that every text follows.")] = (
        "one two three, one two three, one two"
    ),
    raw: Annotated[bool, typer.Option(help="Without the chat template.")] = True,
    pair: Annotated[str | None, typer.Option(help="A pair; else the default one.")] = None,
    method: Annotated[str | None, typer.Option(help="Else the pair's own.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the method, name=value; may repeat.")
    ] = None,
    draft_length_policy: _Policy = None,
    draft_length_option: _PolicyOption = None,
    rule: _Rule = None,
    rule_option: _RuleOption = None,
    draft_length: Annotated[
        int, typer.Option(help="Most tokens guessed in a round; a text is two longer.")
    ] = AUDITED_LENGTH,
    temperature: Annotated[float, typer.Option(help="Above 0.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="Keep the k likeliest tokens.")] = TOP_K,
    top_p: Annotated[float, typer.Option(help="Keep the likeliest up to p; 1 keeps all.")] = 1.0,
    seed: Annotated[int, typer.Option(help="The seed of the first text.")] = 0,
    precision: Annotated[Precision | None, typer.Option(help="Else this machine's own.")] = None,
    draft_precision: Annotated[
        Precision | None, typer.Option(help="The draft model's; else the pair's own.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Else the best one here.")] = None,
    runs: Annotated[int, typer.Option(help="How many texts are drawn.")] = RUNS,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check by drawing that speculation keeps the target's law; exit code 0 if it does."""
    check_unicode([prompt])
    catalogue = load_catalogue()
    entry = chosen_pair(catalogue, pair)
    way = Method.named(method or entry.method)
    rule, rule_options = chosen_rule(entry, rule, rule_option)
    policy, policy_options = chosen_lengths(entry, draft_length_policy, draft_length_option)
    settings = RunSettings(
        pair=entry.name,
        prompt=prompt,
        raw=raw,
        method=way.name,
        method_options=options_of(way, option, own=own_options(entry, way)),
        draft_length=draft_length,
        draft_length_policy=policy,
        draft_length_options=policy_options,
        rule=rule,
        rule_options=rule_options,
        sampling=Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed),
        max_new_tokens=draft_length + 2,
        ignore_end_of_text=True,
        precision=precision,
        draft_precision=draft_precision,
        device=device,
        baseline=False,
    )
    raise typer.Exit(run_audit(Audit(settings, runs), catalogue, as_json=as_json))


@terminal.command()
def train(
    *,
    target: Annotated[str, typer.Option(help="A pair, a model, or the folder of a model.")],
    out: Annotated[
        Path, typer.Option(help="A folder for texts, checkpoint and head; goes on with its own.")
    ],
    minutes: Annotated[float, typer.Option(help="Time in all, what was spent before included.")],
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts: .jsonl, .csv or text; else composed ones.")
    ] = None,
    draft_vocab: Annotated[
        int, typer.Option(help="How many tokens the head can guess.")
    ] = VOCABULARY,
    writing_share: Annotated[
        float, typer.Option(help="The part of the time in which the target writes texts.")
    ] = WRITING_SHARE,
    seed: Annotated[int, typer.Option(help="The seed of prompts, texts and lessons.")] = 0,
    disk_gib: Annotated[float, typer.Option(help="Most room for the texts.")] = DISK_GIB,
    device: Annotated[str | None, typer.Option(help="Else the best one here.")] = None,
    precision: Annotated[
        Precision | None, typer.Option(help="The target's; else bf16 on a CPU that computes in it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Teach a draft head to guess ahead of a target, from texts that the target writes."""
    wanted = Teach(
        target=target,
        out=str(out),
        minutes=minutes,
        prompts=str(prompts or ""),
        draft_vocabulary=draft_vocab,
        writing_share=writing_share,
        seed=seed,
        disk_gib=disk_gib,
        device=device,
        precision=precision,
    )
    raise typer.Exit(run_train(load_catalogue(), wanted, as_json=as_json))


@terminal.command()
def report(
    file: Annotated[Path | None, typer.Argument(help="A JSON report.")] = None,
    to: Annotated[
        list[Path] | None, typer.Option(help="Write it as .json, .csv, .md or .html; may repeat.")
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the layout of the JSON report, field by field.")
    ] = False,
) -> None:
    """Show a JSON report, or write it in another format."""
    if schema:
        say(results(), json.dumps(record_schema(), indent=2))
        return
    if file is None:
        raise typer.BadParameter("name a JSON report, or --schema")
    record = read_record(file)
    check_reports(to or [])
    for path in to or []:
        for written in write_report(record, path, overwrite=True):
            say(remarks(), f"Written: {written}")
    if not to:
        stream = TokenStream(results(), may_be_cut=True)
        for lane in record.lanes:
            for event in (one for each in lane.repetitions[:1] for one in replay(each)):
                stream.show(event)
        show_verdict(results(), record)


@terminal.command()
def elsewhere(
    file: Annotated[Path, typer.Argument(help="A JSON report of a run, or of a bench.")],
    program: Annotated[
        str | None, typer.Option(help=f"Only for one of: {', '.join(PROGRAMS)}.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> None:
    """Write the set-up of a run, or of a bench's best way, for other programs, and tell what is not
    the same there.
    """
    known = {name.lower(): name for name in PROGRAMS}
    if program is not None and program.lower() not in known:
        said = f"There are no words for the program {program!r}."
        raise Problem(said, f"Choose one of: {', '.join(PROGRAMS)}.")
    wanted = PROGRAMS if program is None else [known[program.lower()]]
    found = [one for one in told_elsewhere(file) if one.program in wanted]
    if as_json:
        say(results(), json.dumps(msgspec.to_builtins(found)))
    else:
        show_recipes(results(), found)


@terminal.command()
def selftest(
    *,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Run the embedded pair too, if it is here.")
    ] = False,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Instead, prove the checks of the figures by planted faults."),
    ] = False,
) -> None:
    """Try every part of the program on this machine, one line a check; nothing is downloaded."""
    passed = run_selftest(lambda line: say(results(), line), embedded=embedded, deep=deep)
    raise typer.Exit(0 if passed else 1)
