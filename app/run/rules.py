"""The rules on offer that decide which guesses are kept, and the options that each declares."""

from __future__ import annotations

from collections.abc import Mapping

from app.run.methods import Method
from app.run.options import Offer, Option, named
from app.run.problems import Problem
from app.run.settings import OptionValue, RunSettings

FLY_WINDOW = 6
"""FLy's own window. Source: arXiv 2511.22972."""


class Rule(Offer, frozen=True, kw_only=True):
    """A way of deciding, as it is offered."""

    lossless: bool
    """Whether the text keeps the target's law."""
    same_text: bool = False
    """Whether a seed gives the same text with any guesses, also where tokens are drawn."""
    greedy_at_zero: bool = True
    """Whether it is the greedy rule at temperature 0."""
    branches: bool = False
    """Whether it decides guesses that branch, also where tokens are drawn."""
    longer_than: str = ""
    """The option that drafts have to be longer than, or it keeps nothing more than exact; 0 is
    FLy's own window, or what the drafts have room for.
    """

    @staticmethod
    def named(name: str) -> Rule:
        """The rule of this name; Problem if there is none."""
        return named(name, RULES, "rule")

    def fitted(
        self, options: Mapping[str, OptionValue], draft_length: int
    ) -> dict[str, OptionValue]:
        """These options, with a window that is left open fitted into drafts of this length."""
        fitted = dict(options)
        if self.longer_than and not fitted.get(self.longer_than):
            fitted[self.longer_than] = max(min(FLY_WINDOW, draft_length - 1), 1)
        return fitted


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "exact",
            "Exact (speculative sampling)",
            "Keeps a guess with chance min(1, p/q), token by token, and draws what is left over.",
            lossless=True,
            branches=True,
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
            branches=True,
            same_text=True,
        ),
        Rule(
            "sample-match",
            "Sample and match",
            "Draws the target's own tokens, and keeps the guesses that are the same.",
            lossless=True,
            branches=True,
        ),
        Rule(
            "greedy",
            "Greedy",
            "Keeps a guess if it is the target's likeliest token; for temperature 0 only.",
            lossless=True,
            branches=True,
        ),
        Rule(
            "lenience",
            "Lenience",
            "Keeps a guess with chance min(1, p/(l·q)): a token may come up to 1/l times as often.",
            options=(
                Option(
                    "lenience",
                    "Lenience l",
                    "1 is the exact rule; smaller values keep more guesses.",
                    0.5,
                    0.01,
                    1.0,
                ),
            ),
            lossless=False,
            greedy_at_zero=False,
        ),
        Rule(
            "typical",
            "Typical acceptance",
            "Keeps a guess that the target finds likely enough: p > min(ε, δ·exp(-entropy)).",
            options=(
                Option("threshold", "Threshold ε", "The most that p has to reach.", 0.09, 0.0, 1.0),
                Option(
                    "delta", "Factor δ", "Of exp(-entropy), which p has to reach.", 0.3, 0.0, 1.0
                ),
            ),
            lossless=False,
        ),
        Rule(
            "ensemble",
            "Static ensemble",
            "The text follows a mixture of target and draft: w·p + (1 - w)·q.",
            options=(
                Option("weight", "Target's weight w", "1 is the exact rule.", 0.8, 0.01, 1.0),
            ),
            lossless=False,
            greedy_at_zero=False,
        ),
        Rule(
            "fly",
            "FLy (deferred rejection)",
            "Keeps a rejected guess if the target is unsure and the guesses behind it agree.",
            options=(
                Option(
                    "window",
                    "Window",
                    "Guesses that have to agree; drafts have to be longer than it. 0 takes 6, or "
                    "fewer where the draft length asks for it.",
                    0,
                    0,
                    63,
                ),
                Option(
                    "reading",
                    "Window counts",
                    "vllm: the guesses behind the rejected one; paper: that one too, so that one "
                    "fewer has to agree.",
                    "vllm",
                    choices=("vllm", "paper"),
                ),
                Option(
                    "entropy",
                    "Least entropy",
                    "Of the target's three likeliest tokens, in nats.",
                    0.3,
                    0.0,
                    2.0,
                ),
            ),
            lossless=False,
            greedy_at_zero=False,
            longer_than="window",
        ),
        Rule(
            "synthetic",
            "Synthetic acceptance",
            "Keeps guesses at given rates, to measure a system; the text is nobody's.",
            options=(
                Option(
                    "length",
                    "Acceptance length",
                    "Mean tokens a loop, the target's own included; at most draft length + 1.",
                    2.0,
                    1.0,
                    65.0,
                ),
                Option(
                    "rates",
                    "Acceptance rates",
                    "Instead of a length: the share of drafts that keep at least 1, 2, … guesses, "
                    "with commas between: 0.8, 0.6, 0.4.",
                    "",
                ),
            ),
            lossless=False,
            greedy_at_zero=False,
        ),
    )
}
"""Every rule by its name, the lossless ones first."""


def check_rule(settings: RunSettings) -> None:
    """Raises Problem for a rule that there is not, or that cannot work in this run."""
    rule = Rule.named(settings.rule)
    options = rule.fitted(rule.filled(settings.rule_options), settings.draft_length)
    least = int(options.get(rule.longer_than, -1))
    if settings.method != "nothing" and settings.draft_length <= least:
        raise Problem(
            f"{rule.label} needs drafts longer than {least} tokens, its {rule.longer_than}, and "
            f"the draft length is {settings.draft_length}.",
            f"Raise the draft length, or lower the {rule.longer_than}.",
        )
    _check_branches(rule, settings)
    if rule.name == "synthetic":
        rates_of(str(options["rates"]), float(options["length"]))


def _check_branches(rule: Rule, settings: RunSettings) -> None:
    """Raises Problem for guesses that branch, if the rule cannot decide them."""
    method = Method.named(settings.method)
    greedy = rule.greedy_at_zero and settings.sampling.greedy
    if method.branches and not (rule.branches or greedy):
        works = ", ".join(other.name for other in RULES.values() if other.branches)
        raise Problem(
            f"{rule.label} decides guesses that follow each other, and those of "
            f"{method.label!r} branch.",
            f"Choose a rule that can: {works}; or another method.",
        )


def rates_of(written: str, length: float) -> list[float]:
    """Rates of acceptance as written, with commas between them; for none, those of a mean
    acceptance length.

    The length counts the target's own token. It is reached with the least spread, as in vLLM: so
    many guesses are always kept, the next one now and then. Raises Problem.
    """
    if not written.strip():
        return [min(max(length - place, 0.0), 1.0) for place in range(1, int(length) + 2)]
    try:
        rates = [float(part) for part in written.split(",")]
    except ValueError:
        rates = []
    pairs = zip([1.0, *rates], rates, strict=False)
    if not rates or not all(0.0 <= now <= last for last, now in pairs):
        raise Problem(
            f"{written!r} are no acceptance rates.",
            "Give numbers from 0 to 1 that never rise, with commas between them: 0.8, 0.6, 0.4.",
        )
    return rates


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
