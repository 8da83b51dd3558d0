"""The flags that several commands have, each declared once; a command's own stand in its file."""

from __future__ import annotations

from typing import Annotated

import typer

from app.run.draft_lengths import LENGTH_POLICIES
from app.run.rules import RULES
from app.run.settings import PassKind, Precision

Pair = Annotated[str | None, typer.Option(help="A pair; else the default one.")]

MethodOption = Annotated[
    list[str] | None, typer.Option(help="An option of the method, name=value; may repeat.")
]

Policy = Annotated[
    str | None,
    typer.Option(
        help="What chooses each loop's draft length, the draft length being the most: "
        f"{', '.join(LENGTH_POLICIES)}. Else the pair's own."
    ),
]

PolicyOption = Annotated[
    list[str] | None,
    typer.Option(help="An option of the draft length policy, name=value; may repeat."),
]

RuleName = Annotated[
    str | None,
    typer.Option(help=f"Which guesses are kept: {', '.join(RULES)}. Else the pair's own."),
]

RuleOption = Annotated[
    list[str] | None, typer.Option(help="An option of the rule, name=value; may repeat.")
]

SpeculativeConfig = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help="Method, draft length and rule in the words of vLLM's flag of this name, instead of "
        "by flags of their own.",
    ),
]

Temperature = Annotated[float, typer.Option(help="0 takes the likeliest token.")]

TopP = Annotated[float, typer.Option(help="Keep the likeliest up to p; 1 keeps all.")]

Seed = Annotated[int, typer.Option(help="The seed of every draw.")]

DraftPrecision = Annotated[
    Precision | None, typer.Option(help="The draft model's; else the pair's own.")
]

Device = Annotated[str | None, typer.Option(help="Else the best one here.")]

DraftDevice = Annotated[
    str | None, typer.Option(help="The draft model's; else the pair's own, or the target's.")
]

AllowOffload = Annotated[
    bool,
    typer.Option(
        "--allow-offload",
        help="Let weights that a card has no room for stay in the machine's memory: slow, and the "
        "figures are not the card's.",
    ),
]

Passes = Annotated[
    PassKind,
    typer.Option(
        help="auto: as captured graphs on a card, where they answer as eager passes do; eager; "
        "fixed: in the shapes of graphs, on any device."
    ),
]

Repeats = Annotated[int, typer.Option(help="How often each lane runs.")]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
