"""`train`: a draft head is taught to guess ahead of a target."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli import flags
from app.cli.catalogued import catalogue
from app.cli.training import run_train
from app.run.settings import Precision
from app.run.teaching import DISK_GIB, VOCABULARY, WRITING_SHARE, Teach


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
    device: flags.Device = None,
    precision: Annotated[
        Precision | None, typer.Option(help="The target's; else bf16 on a CPU that computes in it.")
    ] = None,
    as_json: flags.AsJson = False,
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
    raise typer.Exit(run_train(catalogue(), wanted, as_json=as_json))
