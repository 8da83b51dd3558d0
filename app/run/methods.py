"""The methods on offer and the options that each declares, for form, command line and reports."""

from __future__ import annotations

from typing import Literal

from app.run.options import Offer, Option, named

Drafter = Literal["nothing", "model", "head", "early-exit"]
"""What of a pair a method asks for guesses: nothing, its draft model, its draft head, or the first
layers of the target itself, which every pair has."""


class Method(Offer, frozen=True):
    """A way of guessing, as it is offered."""

    drafter: Drafter = "nothing"
    """What the pair has to have for it."""

    @staticmethod
    def named(name: str) -> Method:
        """The method of this name; Problem if there is none."""
        return named(name, METHODS, "method")


_MATCH = (
    Option("shortest", "Shortest match", "Tokens that must match, at least.", 2, 1, 32),
    Option("longest", "Longest match", "Tokens that are compared, at most.", 5, 1, 32),
)

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
            "Guesses that the text goes on as it did the last time the same tokens were seen.",
            options=_MATCH,
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
            "head",
            "Draft head",
            "One layer guesses from what the target has just computed.",
            drafter="head",
            options=_DRAWING,
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
        ),
    )
}
