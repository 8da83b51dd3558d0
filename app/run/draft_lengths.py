"""The ways on offer to choose how many tokens a round guesses, and the options of each."""

from __future__ import annotations

from app.run.methods import Method
from app.run.options import Offer, Option, named
from app.run.problems import Problem
from app.run.settings import RunSettings


class LengthPolicy(Offer, frozen=True):
    """A way to choose the draft length; the run's own draft length is the most of any."""

    branches: bool = False
    """Whether it can be had for guesses that branch: it neither looks at one guess at a time, nor
    reckons with one more row of a pass for each.
    """

    counts_passes: bool = False
    """Whether it reckons with one pass of the draft for each guess."""

    @staticmethod
    def named(name: str) -> LengthPolicy:
        """The policy of this name; Problem if there is none."""
        return named(name, LENGTH_POLICIES, "draft length policy")


LENGTH_POLICIES: dict[str, LengthPolicy] = {
    policy.name: policy
    for policy in (
        LengthPolicy("fixed", "Fixed", "Every loop guesses up to the draft length.", branches=True),
        LengthPolicy(
            "heuristic",
            "Heuristic (+2 / -1)",
            "Two tokens more after a draft that was kept whole, one fewer after any other.",
            options=(Option("start", "First draft length", "Of the first loop.", 4, 1, 64),),
            branches=True,
        ),
        LengthPolicy(
            "confidence",
            "Stop when unsure",
            "Ends a draft behind the first guess that the draft itself finds unlikely; that guess "
            "is tested too. Of drafts that a model or a head makes.",
            options=(
                Option(
                    "threshold",
                    "Least probability",
                    "The draft's own, of its guess.",
                    0.4,
                    0.0,
                    1.0,
                ),
            ),
        ),
        LengthPolicy(
            "entropy",
            "Stop at high entropy",
            "Ends a draft before a guess is drawn where 1 - √(λ·entropy of the draft's law), a "
            "bound below the chance to be kept, is small. Of drafts that a model or a head makes.",
            options=(
                Option("factor", "Factor λ", "Of the entropy, which is in nats.", 0.2, 0.0, 10.0),
                Option("threshold", "Least bound", "Below it the draft ends.", 0.4, 0.0, 1.0),
            ),
        ),
        LengthPolicy(
            "best",
            "Best for this machine",
            "Each loop from the acceptance so far and the measured cost of passes, down to no "
            "guesses where they do not pay. Measures the costs first, if none are kept.",
            options=(
                Option(
                    "prior",
                    "First acceptance",
                    "What is believed of α before guesses were tested; it counts as four tests.",
                    0.7,
                    0.0,
                    1.0,
                ),
                Option(
                    "look_again",
                    "Look again after",
                    "Loops without guesses, after which one guess is tried.",
                    16,
                    1,
                    10_000,
                ),
            ),
            counts_passes=True,
        ),
    )
}
"""Every policy by its name."""


def check_lengths(settings: RunSettings) -> None:
    """Raises Problem for a policy that there is not, for options that it does not have, or where it
    does not go with the method.
    """
    policy = LengthPolicy.named(settings.draft_length_policy)
    policy.filled(settings.draft_length_options)
    method = Method.named(settings.method)
    if method.branches and not policy.branches:
        works = ", ".join(other.name for other in LENGTH_POLICIES.values() if other.branches)
        raise Problem(
            f"{policy.label!r} is for guesses that follow each other, and those of "
            f"{method.label!r} branch.",
            f"Choose one of: {works}; or another method.",
        )
    if policy.counts_passes and method.several_a_pass:
        works = ", ".join(one.name for one in LENGTH_POLICIES.values() if not one.counts_passes)
        raise Problem(
            f"{policy.label!r} reckons with a pass of the draft for each guess, and one of "
            f"{method.label!r} may yield several.",
            f"Choose one of: {works}; or another method.",
        )
