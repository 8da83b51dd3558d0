"""The methods on offer and the options that each declares, for form, command line and reports."""

from __future__ import annotations

from typing import Literal

import msgspec

from app.run.options import Offer, Option, Preset, named
from app.run.settings import RunSettings

Drafter = Literal["nothing", "model", "head", "mtp", "early-exit"]
"""What of a pair a method asks for guesses: nothing, its draft model, its draft head, the target's
own modules for multi-token prediction, or the first layers of the target, which every pair has."""


class Method(Offer, frozen=True):
    """A way of guessing, as it is offered."""

    drafter: Drafter = "nothing"
    """What the pair has to have for it."""
    remembers: bool = False
    """Whether it copies from texts of earlier runs too, and its own are kept for that: it has the
    options `cached` and `keep`.
    """
    any_vocabulary: bool = False
    """Whether its draft model may read another vocabulary than the target."""
    branches: bool = False
    """Whether its guesses are a tree, with several at each place."""
    several_a_pass: bool = False
    """Whether a pass of its draft model may yield several guesses."""

    @staticmethod
    def named(name: str) -> Method:
        """The method of this name; Problem if there is none."""
        return named(name, METHODS, "method")


_MATCH = (
    Option("shortest", "Shortest match", "Tokens that must match, at least.", 2, 1, 32),
    Option("longest", "Longest match", "Tokens that are compared, at most.", 5, 1, 32),
    Option(
        "match",
        "Match taken",
        "Of several places of the longest match: the last, the first, or the last one that went on "
        "as most of them do.",
        "last",
        choices=("last", "first", "most-frequent"),
    ),
)

_LOOKUPS = (
    Preset("vllm", "vLLM's defaults", {"shortest": 5, "longest": 5, "match": "first"}),
    Preset(
        "transformers",
        "transformers' defaults",
        {"shortest": 1, "longest": 2, "match": "first"},
        draft_length=10,
    ),
)
"""How others look n-grams up, where nothing is asked of them: vLLM's `ngram` (prompt_lookup_min and
_max), and `prompt_lookup_num_tokens` of transformers' generate()."""

_DRAWING = (
    Option(
        "draft_sampling",
        "Draft draws by",
        "target: the run's own sampling settings; own: a temperature of its own, no token cut; "
        "argmax: it takes its likeliest token. Each is exact; how many guesses are kept differs.",
        "target",
        choices=("target", "own", "argmax"),
    ),
    Option(
        "draft_temperature",
        "Draft's temperature",
        "Where the draft draws by a temperature of its own.",
        1.0,
        0.01,
        10.0,
    ),
)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("nothing", "None (plain decoding)", "The target writes alone, a token a pass."),
        Method(
            "ngram",
            "N-gram",
            "Guesses that the text goes on as it did when the same tokens were seen before.",
            options=_MATCH,
            presets=_LOOKUPS,
        ),
        Method(
            "suffix",
            "Suffix decoding",
            "Guesses what mostly followed the last tokens, here and in what earlier runs wrote.",
            options=(
                Option("depth", "Depth", "Tokens of a match and its guesses together.", 24, 2, 64),
                Option(
                    "factor",
                    "Guesses per match",
                    "The longer the match, the more is guessed: so many guesses for each token of "
                    "it, at most.",
                    1.0,
                    0.0,
                    16.0,
                ),
                Option(
                    "offset", "Guesses besides", "Added to those by the match.", 0.0, -16.0, 64.0
                ),
                Option(
                    "least_probability",
                    "Least probability",
                    "The share of a match's places that go on in the same way, below which nothing "
                    "more is guessed.",
                    0.1,
                    0.0,
                    1.0,
                ),
                Option(
                    "cached",
                    "Earlier texts",
                    "Texts of earlier runs with this target that are copied from: so many are "
                    "kept, the newest. 0 copies from none, and keeps none.",
                    1000,
                    0,
                    10_000,
                ),
                Option(
                    "keep",
                    "Keep the text",
                    "Later runs may copy from this run's text. A private run's is never kept.",
                    True,
                ),
            ),
            presets=(
                Preset(
                    "vllm",
                    "vLLM's defaults",
                    {
                        "depth": 24,
                        "factor": 1.0,
                        "offset": 0.0,
                        "least_probability": 0.1,
                        "cached": 10_000,
                    },
                    draft_length=24,
                ),
            ),
            remembers=True,
        ),
        Method(
            "draft-model",
            "Draft model",
            "A smaller model guesses, token by token.",
            drafter="model",
            options=_DRAWING,
        ),
        Method(
            "cascade",
            "Draft model, helped by n-grams",
            "A smaller model guesses; copies of the text guess for it, and it keeps those that it "
            "would have drawn. Its guesses are the same, its passes fewer.",
            drafter="model",
            several_a_pass=True,
            options=(*_DRAWING, *_MATCH),
        ),
        Method(
            "early-exit",
            "Early exit",
            "The target's own first layers guess, its output layer right behind them. Pays with "
            "models that were trained for it.",
            drafter="early-exit",
            options=(
                Option(
                    "exit_layer",
                    "Layers that guess",
                    "The first so many of the target's layers. 0 takes a third of them.",
                    0,
                    0,
                    1000,
                ),
                *_DRAWING,
            ),
        ),
        Method(
            "tli",
            "Draft of another vocabulary (TLI)",
            "A model guesses within the tokens that the target's vocabulary has too "
            "(token-level intersection).",
            drafter="model",
            options=_DRAWING,
            any_vocabulary=True,
        ),
        Method(
            "slem",
            "Draft of any vocabulary (SLEM)",
            "A model writes freely, and the target's tokenizer cuts that text into guesses "
            "(string-level exact match).",
            drafter="model",
            options=_DRAWING,
            any_vocabulary=True,
        ),
        Method(
            "head",
            "Draft head",
            "One layer guesses from what the target has just computed.",
            drafter="head",
            options=_DRAWING,
        ),
        Method(
            "head-tree",
            "Draft head, tree (EAGLE-2)",
            "The head guesses several tokens at each place, where it is surest; the draft length "
            "is how many of them may follow each other.",
            drafter="head",
            branches=True,
            options=(
                Option(
                    "nodes",
                    "Guesses in all",
                    "Of a whole tree: the target reads them all in one pass. EAGLE-2's own is 60, "
                    "for a graphics card; on a CPU each costs time.",
                    8,
                    1,
                    256,
                ),
                Option(
                    "breadth",
                    "Breadth",
                    "How many guesses of a level are followed, and how many may follow each. "
                    "EAGLE-2's own is 10.",
                    3,
                    1,
                    32,
                ),
            ),
        ),
        Method(
            "ngram-else-head",
            "N-gram, else head",
            "Copies where the text repeats itself; elsewhere the draft head guesses.",
            drafter="head",
            options=(
                *_MATCH,
                Option(
                    "head_length",
                    "Head's draft length",
                    "Tokens that the head guesses, at most: each costs a step of it, while a copy "
                    "costs nothing. 0 takes the draft length.",
                    2,
                    0,
                    64,
                ),
            ),
            presets=_LOOKUPS,
        ),
        Method(
            "mtp",
            "Multi-token prediction",
            "The modules that the target was trained with guess further tokens ahead.",
            drafter="mtp",
            options=_DRAWING,
        ),
    )
}


def unkept(settings: RunSettings) -> RunSettings:
    """The same settings, with nothing kept of the text for later runs to copy from."""
    if not Method.named(settings.method).remembers:
        return settings
    options = {**settings.method_options, "keep": False}
    return msgspec.structs.replace(settings, method_options=options)
