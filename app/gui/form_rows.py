"""The rows of the form as tables: name, title, help, and how the field is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, get_args

from app.gui.choice import Choice
from app.gui.fields import Field, Flag
from app.gui.lines_field import Lines
from app.gui.numbers import HIGHEST, Number, WholeNumber
from app.run.draft_lengths import LENGTH_POLICIES
from app.run.rules import RULES
from app.run.settings import RUN_LIMITS, SAMPLING_LIMITS, PassKind, Precision


class RowSpec(NamedTuple):
    """A row of the form."""

    name: str
    title: str
    help: str
    make: Callable[[], Field]
    wide: bool = False
    """Its field takes the whole width, below a heading."""


def _whole(name: str, value: int, *, nothing: str = "") -> WholeNumber:
    """A field within the limits of a setting, as far as a field can hold them; of one that may be
    left open, `nothing` stands for that.
    """
    limit = LIMITS[name]
    low, high = max(int(limit.low), -HIGHEST), min(int(limit.high), HIGHEST)
    return WholeNumber(min(low, value), high, value=value, nothing=nothing)


def _number(name: str, value: float, *, nothing: str = "") -> Number:
    """A field within the limits of a setting."""
    limit = LIMITS[name]
    return Number(limit.low, limit.high, value=value, nothing=nothing, low_open=limit.low_open)


LIMITS = {**RUN_LIMITS, **SAMPLING_LIMITS}
"""What the numbers of the form may be: the limits of the settings themselves."""

PRECISIONS = (("Default", None), *((name.upper(), name) for name in get_args(Precision)))
"""What the weights of target and draft model can be held in."""

PASS_KINDS: tuple[tuple[str, PassKind], ...] = (
    ("Captured graphs", "auto"),
    ("Eager", "eager"),
    ("Fixed shapes", "fixed"),
)
"""How passes are computed on a card."""

RULE_OFFERS = tuple(
    (rule.label if rule.lossless else f"{rule.label} (LOSSY)", rule.name)
    for rule in RULES.values()
    if rule.name != "greedy"
)
"""The rules on offer. At temperature 0 the exact rule is the greedy one."""

PAIR_ROWS = (
    RowSpec(
        "precision",
        "Precision",
        "How the target's weights are held. The default is nf4 on a graphics card, and fp32 "
        "on a CPU: bf16 is faster there, but a near tie can flip a token.",
        lambda: Choice(PRECISIONS),
    ),
    RowSpec(
        "draft_precision",
        "Draft's precision",
        "How the draft model's weights are held. The default is the pair's own, or else the "
        "target's where this model's device can take it.",
        lambda: Choice(PRECISIONS),
    ),
    RowSpec(
        "device",
        "Device",
        "Where the target is loaded; a head and n-grams work beside it.",
        lambda: Choice([("The best here", None)]),
    ),
    RowSpec(
        "draft_device",
        "Draft model on",
        "A draft model may be on another device than its target: its guesses cross once a loop. "
        "The default is what the pair says, or else the target's device.",
        lambda: Choice([("The pair's own", None)]),
    ),
    RowSpec(
        "allow_offload",
        "Offload",
        "Keep weights that the card has no room for in the machine's memory. That is slow, and "
        "the figures are not the card's.",
        lambda: Flag(False),
    ),
    RowSpec(
        "passes",
        "Passes",
        "Captured as graphs, a pass is given to the card at once, where it answers as an eager one "
        "does. Eager is how the library runs it, kernel by kernel; fixed shapes are those of "
        "graphs, without any. What was used stands with the models in the report.",
        lambda: Choice(PASS_KINDS),
    ),
)
"""What the models are loaded with."""

LOADING = tuple(row.name for row in PAIR_ROWS)
"""The settings that may ask for other models than are loaded."""

METHOD_ROWS = (
    RowSpec(
        "draft_length",
        "Draft length γ",
        "The most tokens that are guessed in one loop; 0 means no speculation.",
        lambda: _whole("draft_length", 4),
    ),
    RowSpec(
        "draft_length_policy",
        "Chosen by",
        "What chooses each loop's draft length; γ is the most.",
        lambda: Choice((one.label, one.name) for one in LENGTH_POLICIES.values()),
    ),
    RowSpec(
        "rule",
        "Rule",
        "What decides which guesses are kept.",
        lambda: Choice(RULE_OFFERS),
        wide=True,
    ),
)
"""What every method has."""

SAMPLING_ROWS = (
    RowSpec(
        "temperature",
        "Temperature",
        "0 takes the likeliest token; higher values draw more freely.",
        lambda: _number("temperature", 0.0, nothing="0 (greedy)"),
    ),
    RowSpec(
        "top_k",
        "Top-k",
        "Keep the k likeliest tokens.",
        lambda: _whole("top_k", 0, nothing="all"),
    ),
    RowSpec(
        "top_p",
        "Top-p",
        "Keep the fewest tokens whose probability reaches p; 1 keeps all.",
        lambda: _number("top_p", 1.0),
    ),
    RowSpec(
        "min_p",
        "Min-p",
        "Keep tokens at least this share as likely as the likeliest.",
        lambda: _number("min_p", 0.0, nothing="all"),
    ),
    RowSpec(
        "seed",
        "Seed",
        "The same seed gives the same draws.",
        lambda: _whole("seed", 0),
    ),
    RowSpec(
        "max_new_tokens",
        "Max new tokens",
        "Where the text ends, if it does not end by itself.",
        lambda: _whole("max_new_tokens", 256),
    ),
)
"""How tokens are drawn."""

MORE_ROWS = (
    RowSpec(
        "context_length",
        "Context",
        "The most tokens that prompt and text may be together.",
        lambda: _whole("context_length", 0, nothing="the model's own"),
    ),
    RowSpec(
        "repetitions",
        "Repeats",
        "How often both lanes are run; several give a spread.",
        lambda: _whole("repetitions", 1),
    ),
    RowSpec(
        "repetition_penalty",
        "Repetition penalty",
        "Makes tokens less likely that were seen before; 1 is off.",
        lambda: _number("repetition_penalty", 1.0),
    ),
    RowSpec(
        "presence_penalty",
        "Presence penalty",
        "Taken from the logits of tokens in the text so far; 0 is off.",
        lambda: _number("presence_penalty", 0.0),
    ),
    RowSpec(
        "stop_strings",
        "Stop strings",
        "The text ends before the first of these. One a line; \\n is a line end, \\t a tab.",
        lambda: Lines(placeholder="one a line", lines=2),
    ),
    RowSpec(
        "ignore_end_of_text",
        "Past end of text",
        "Go on when the model has ended its text, up to the most new tokens.",
        lambda: Flag(False),
    ),
)
"""What is seldom changed."""
