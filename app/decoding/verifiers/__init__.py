"""The rules that decide which guesses are kept: one file each, one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.decoding.contracts import Verifier
from app.decoding.verifiers.block import BlockVerification
from app.decoding.verifiers.coupled import Coupled
from app.decoding.verifiers.ensemble import Ensemble
from app.decoding.verifiers.exact import Exact
from app.decoding.verifiers.fly import Fly
from app.decoding.verifiers.greedy import Greedy
from app.decoding.verifiers.lenience import Lenience
from app.decoding.verifiers.sample_match import SampleMatch
from app.decoding.verifiers.synthetic import Synthetic
from app.decoding.verifiers.typical import Typical
from app.run.problems import Problem
from app.run.rules import Rule, rates_of
from app.run.settings import LONGEST_DRAFT, OptionValue, Sampling

Options = Mapping[str, OptionValue]


def _fly(options: Options) -> Verifier:
    window = int(options["window"])
    return Fly(
        window=window,
        followers=window - (options["reading"] == "paper"),
        entropy=float(options["entropy"]),
    )


_MAKERS: dict[str, Callable[[Options], Verifier]] = {
    "exact": lambda options: Exact(),
    "block": lambda options: BlockVerification(),
    "coupled": lambda options: Coupled(),
    "sample-match": lambda options: SampleMatch(),
    "greedy": lambda options: Greedy(),
    "lenience": lambda options: Lenience(float(options["lenience"])),
    "ensemble": lambda options: Ensemble(float(options["weight"])),
    "typical": lambda options: Typical(float(options["threshold"]), float(options["delta"])),
    "fly": _fly,
    "synthetic": lambda options: Synthetic(
        rates_of(str(options["rates"]), float(options["length"]))
    ),
}


def make_verifier(
    name: str,
    sampling: Sampling,
    options: Options | None = None,
    *,
    draft_length: int = LONGEST_DRAFT,
) -> Verifier:
    """The rule of this name for drafts of at most this length; options that are not given take
    their defaults. At temperature 0 most rules are the greedy one.
    """
    rule = Rule.named(name)
    filled = rule.fitted(rule.filled(options or {}), draft_length)
    if name == Greedy.name and not sampling.greedy:
        raise Problem(
            f"The greedy rule draws nothing, but the temperature is {sampling.temperature:g}.",
            "Set the temperature to 0, or choose the exact rule.",
        )
    greedy = sampling.greedy and rule.greedy_at_zero
    return Greedy() if greedy else _MAKERS[name](filled)
