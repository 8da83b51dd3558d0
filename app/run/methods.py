"""The methods on offer and the options that each declares, for form, command line and reports."""

from __future__ import annotations

from typing import Literal

from app.run.options import Offer, Option, named

Drafter = Literal["nothing", "model", "head", "mtp"]
"""What of a pair a method asks for guesses: nothing, its draft model, its draft head, or the
target's own modules for multi-token prediction."""


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
        ),
        Method(
            "head",
            "Draft head",
            "One layer guesses from what the target has just computed.",
            drafter="head",
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
        Method(
            "mtp",
            "Multi-token prediction",
            "The modules that the target was trained with guess further tokens ahead.",
            drafter="mtp",
        ),
    )
}
