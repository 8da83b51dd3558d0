"""The rules on offer that decide which guesses are kept, and the options that each declares."""

from __future__ import annotations

from app.run.options import Offer, named
from app.run.settings import RunSettings


class Rule(Offer, frozen=True, kw_only=True):
    """A way of deciding, as it is offered."""

    lossless: bool
    """Whether the text keeps the target's law."""
    same_text: bool = False
    """Whether a seed gives the same text with any guesses, also where tokens are drawn."""
    greedy_at_zero: bool = True
    """Whether it is the greedy rule at temperature 0."""

    @staticmethod
    def named(name: str) -> Rule:
        """The rule of this name; Problem if there is none."""
        return named(name, RULES, "rule")


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "exact",
            "Exact (speculative sampling)",
            "Keeps a guess with chance min(1, p/q), token by token, and draws what is left over.",
            lossless=True,
        ),
        Rule(
            "block",
            "Block verification",
            "Decides the guesses of a draft together: as exact, and keeps a little more of them.",
            lossless=True,
        ),
        Rule(
            "coupled",
            "Coupled (same text for a seed)",
            "Target and draft draw with the same noise: a seed gives one text, whoever guesses.",
            lossless=True,
            same_text=True,
        ),
        Rule(
            "sample-match",
            "Sample and match",
            "Draws the target's own tokens, and keeps the guesses that are the same.",
            lossless=True,
        ),
        Rule(
            "greedy",
            "Greedy",
            "Keeps a guess if it is the target's likeliest token; for temperature 0 only.",
            lossless=True,
        ),
    )
}
"""Every rule by its name, the lossless ones first."""


def is_lossy(settings: RunSettings) -> bool:
    """Whether the rule of these settings changes the law of the text. One that this version does
    not know is not called lossy; without guesses no rule is.
    """
    rule = RULES.get(settings.rule, RULES["exact"])
    greedy = rule.greedy_at_zero and settings.sampling.greedy
    return not (rule.lossless or greedy or settings.method == "nothing")


def same_text_due(settings: RunSettings) -> bool:
    """Whether both lanes have to write the same tokens: nothing is drawn, or from shared noise."""
    rule = RULES.get(settings.rule, RULES["exact"])
    return not is_lossy(settings) and (settings.sampling.greedy or rule.same_text)
