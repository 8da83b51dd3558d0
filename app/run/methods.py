"""The methods on offer and the options that each declares, for form, command line and reports."""

from __future__ import annotations

from typing import Literal

from app.run.options import Offer, Option, named

Drafter = Literal["nothing", "model", "head"]
"""What of a pair a method asks for guesses: nothing, its draft model, or its draft head."""


class Method(Offer, frozen=True):
    """A way of guessing, as it is offered."""

    drafter: Drafter = "nothing"
    """What the pair has to have for it."""
    branches: bool = False
    """Whether its guesses are a tree, with several at each place."""

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
        ),
    )
}
