"""`audit`: whether speculation keeps the target's law, tried by drawing."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli import flags
from app.cli.asked import check_unicode, chosen_pair, with_lengths, with_method, with_rule
from app.cli.auditing import run_audit
from app.cli.catalogued import catalogue as load_catalogue
from app.run.auditing import DRAFT_LENGTH, RUNS, TOP_K, Audit
from app.run.settings import Precision, RunSettings, Sampling

_PROMPT = "one two three, one two three, one two"


def audit(
    *,
    prompt: Annotated[str, typer.Option(help="The prompt that every text follows.")] = _PROMPT,
    raw: Annotated[bool, typer.Option(help="Without the chat template.")] = True,
    pair: flags.Pair = None,
    method: Annotated[str | None, typer.Option(help="Else the pair's own.")] = None,
    option: flags.MethodOption = None,
    draft_length_policy: flags.Policy = None,
    draft_length_option: flags.PolicyOption = None,
    rule: flags.RuleName = None,
    rule_option: flags.RuleOption = None,
    draft_length: Annotated[
        int, typer.Option(help="Most tokens guessed in a loop; a text is two longer.")
    ] = DRAFT_LENGTH,
    temperature: Annotated[float, typer.Option(help="Above 0.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="Keep the k likeliest tokens.")] = TOP_K,
    top_p: flags.TopP = 1.0,
    seed: Annotated[int, typer.Option(help="The seed of the first text.")] = 0,
    precision: Annotated[Precision | None, typer.Option(help="Else this machine's own.")] = None,
    draft_precision: flags.DraftPrecision = None,
    device: flags.Device = None,
    runs: Annotated[int, typer.Option(help="How many texts are drawn.")] = RUNS,
    as_json: flags.AsJson = False,
) -> None:
    """Check by drawing that speculation keeps the target's law; exit code 0 if it does."""
    check_unicode([prompt])
    catalogue = load_catalogue()
    entry = chosen_pair(catalogue, pair)
    settings = RunSettings(
        pair=entry.name,
        prompt=prompt,
        raw=raw,
        sampling=Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed),
        max_new_tokens=draft_length + 2,
        ignore_end_of_text=True,
        precision=precision,
        draft_precision=draft_precision,
        device=device,
        baseline=False,
    )
    settings = with_method(settings, entry, method, option, draft_length=draft_length)
    settings = with_rule(settings, entry, rule, rule_option)
    settings = with_lengths(settings, entry, draft_length_policy, draft_length_option)
    raise typer.Exit(run_audit(Audit(settings, runs), catalogue, as_json=as_json))
