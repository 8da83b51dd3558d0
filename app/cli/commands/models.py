"""The commands below `models`: what is on offer, what is on this machine, and what it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from app import files
from app.cli import flags
from app.cli.catalogued import catalogue, models_named
from app.cli.comparison_table import show_comparison
from app.cli.hub_login import login, logout
from app.cli.interrupt import STOPPED, Interrupt
from app.cli.memory_bar import show_fit
from app.cli.model_tables import (
    show_check,
    show_hashes,
    show_kept,
    show_places,
    show_scan,
)
from app.cli.overview_table import show_overview
from app.cli.progress_line import ProgressLine
from app.cli.screen import remarks, results, say
from app.library.catalogue import Catalogue
from app.library.checking import Check, check_named
from app.library.comparing import compare_named
from app.library.compatibility_report import CompatibilityReport
from app.library.entries import HubSource
from app.library.fitting import fit as fit_plan
from app.library.hash_check import check_hashes, files_of
from app.library.kept import kept_of
from app.library.kept import remove as remove_kept
from app.library.memory_plan import Wish, plan_of, sizes_of
from app.library.overview import overview
from app.library.scan import scan as scan_machine
from app.library.sources import fetch as fetch_model
from app.library.sources import look
from app.run.problems import Cancelled, Problem
from app.run.settings import Precision
from app.run.sizes import bytes_in_words

models = typer.Typer(help="What is on offer, and what of it is on this machine.")
models.command()(login)
models.command()(logout)


@models.callback(invoke_without_command=True)
def list_models(context: typer.Context) -> None:
    """List the pairs and models of the catalogue, and what is on this machine."""
    if context.invoked_subcommand is None:
        found = catalogue()
        show_overview(results(), overview(found), files.user_catalogue())
        show_kept(results(), found)


@models.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A model, or a pair for all its models.")],
) -> None:
    """Fetch and convert what a run needs, so that it starts at once."""
    wanted = models_named(catalogue(), name)
    with Interrupt() as interrupt, ProgressLine(remarks()) as progress:
        for entry in wanted:
            try:
                folder = fetch_model(entry, progress.show, pause=interrupt.pause)
            except Cancelled:
                progress.close()
                if not isinstance(entry.source, HubSource):
                    raise
                again = f"`foretoken models fetch {name}` goes on from there."
                say(remarks(), f"Paused. What has come of {entry.name} stays: {again}")
                raise typer.Exit(STOPPED) from None
            progress.close()
            say(results(), f"{entry.name}: {folder}")


@models.command()
def scan(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Further folders to look through.")
    ] = None,
    as_json: flags.AsJson = False,
) -> None:
    """Find models on this machine: Hugging Face, LM Studio, llama.cpp, Ollama, your folders."""
    with Interrupt() as interrupt:
        found = scan_machine(folders or [], catalogue(), pause=interrupt.pause)
    if as_json:
        say(results(), json.dumps(msgspec.to_builtins(found, enc_hook=str), indent=2))
    else:
        show_scan(results(), found, files.user_catalogue())


@models.command()
def check(
    name: Annotated[
        str, typer.Argument(help="A pair, a model, or the folder or file of one.", metavar="NAME")
    ],
    hashes: Annotated[
        bool, typer.Option("--hash", help="Read all files too, and compare with the Hub's hashes.")
    ] = False,
) -> None:
    """Check a model, or a pair and each of its models, without loading; exit code 0 if all fit."""
    offered = catalogue()
    found = check_named(offered, name)
    show_check(results(), found)
    whole = not hashes or _hashes_right(offered, found)
    raise typer.Exit(0 if found.usable and whole else 1)


def _hashes_right(offered: Catalogue, found: Check) -> bool:
    """Whether no file of the models is another than the Hub has; tells of each model."""
    right = True
    places = files_of(offered, found)
    with Interrupt() as interrupt, ProgressLine(remarks()) as progress:
        for name, place in places.items():
            hashes = check_hashes(place, report=progress.show, pause=interrupt.pause)
            progress.close()
            show_hashes(results(), name, hashes)
            right = right and not hashes.wrong
    return right


@models.command()
def compare(
    target: Annotated[str, typer.Argument(help="A model, or the folder of one.")],
    draft: Annotated[str, typer.Argument(help="What is to guess for it, named as the target.")],
    load: Annotated[
        bool, typer.Option("--load", help="Load both, and tell what the proofs at load find.")
    ] = False,
    precision: Annotated[
        Precision | None, typer.Option(help="With --load: in what; by default as a run would.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="With --load: onto what; cpu, cuda, cuda:1 or mps.")
    ] = None,
    as_json: flags.AsJson = False,
) -> None:
    """Compare two models: ids, special tokens, templates, context; exit code 0 if they fit."""
    found = compare_named(catalogue(), target, draft)
    if load:
        found = _proved(found, precision, device)
    if as_json:
        say(results(), json.dumps(msgspec.to_builtins(found, enc_hook=str), indent=2))
    else:
        show_comparison(results(), found)
    raise typer.Exit(0 if found.fits else 1)


def _proved(
    found: CompatibilityReport, precision: Precision | None, device: str | None
) -> CompatibilityReport:
    """The report with what loading finds of its two models."""
    from app.models.load_proofs import with_load_proofs  # torch takes seconds

    with Interrupt() as interrupt, ProgressLine(remarks()) as progress:
        return with_load_proofs(
            found,
            precision=precision,
            device=device,
            report=progress.show,
            pause=interrupt.pause,
        )


@models.command()
def fit(
    pair: Annotated[str, typer.Argument(help="A pair of the catalogue.")],
    context: Annotated[int, typer.Option(min=1, help="Tokens of prompt and text together.")] = 4096,
    precision: Annotated[Precision | None, typer.Option(help="The target's.")] = None,
    draft_precision: Annotated[Precision | None, typer.Option(help="The draft model's.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")] = None,
    draft_device: flags.DraftDevice = None,
    method: Annotated[str | None, typer.Option(help="How to guess; else the pair's own.")] = None,
) -> None:
    """Tell whether a pair fits into the memory that is free now; exit code 0 if it does."""
    from app.models.devices import device_memory  # torch takes seconds
    from app.studies.workbench import Workbench

    devices = device_memory()
    wish = Wish(
        tokens=context,
        precision=precision,
        draft_precision=draft_precision,
        device=device,
        draft_device=draft_device,
        method=method,
        at_once=False,
    )
    refused = Workbench(catalogue()).refusals()
    plan = plan_of(sizes_of(catalogue(), pair), wish, devices, refused=refused)
    found = fit_plan(plan, devices, refused=refused)
    show_fit(results(), found)
    raise typer.Exit(1 if found.verdict == "does not fit" else 0)


@models.command()
def path(
    name: Annotated[str | None, typer.Argument(help="A model, or a pair for all its models.")] = (
        None
    ),
) -> None:
    """Tell where things lie: settings, models, history; or where the files of a model are."""
    if name is None:
        show_places(results())
        return
    wanted = models_named(catalogue(), name)
    for entry in wanted:
        folder = look(entry)
        if folder is None:
            raise Problem(
                f"{entry.name} is not ready on this machine.",
                f"Run `foretoken models fetch {entry.name}`.",
            )
        say(results(), str(folder) if len(wanted) == 1 else f"{entry.name}: {folder}")


@models.command()
def remove(
    name: Annotated[str, typer.Argument(help="A model; also one that is no longer offered.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Remove what Foretoken has made or fetched for a model; nothing that is yours."""
    found = catalogue()
    pair = next((pair for pair in found.pairs if pair.name == name), None)
    if pair is not None and all(model.name != name for model in found.models):
        raise Problem(
            f"{name} is a pair; models are removed one by one.",
            f"Its models: {', '.join(pair.models)}.",
        )
    kept = kept_of(found, name)
    for said in kept.left:
        say(remarks(), f"Left as it is: {said}")
    if not kept.paths:
        say(results(), f"Foretoken keeps nothing of {name} on this disk.")
        return
    size = bytes_in_words(kept.size)
    for gone in kept.paths:
        say(remarks(), f"To be removed: {gone}")
    if kept.caution:
        say(remarks(), kept.caution)
    if not yes and not typer.confirm(f"Remove {size}?", err=True):
        say(results(), "Nothing was removed.")
        return
    remove_kept(kept)
    say(results(), f"Removed {size}.")
