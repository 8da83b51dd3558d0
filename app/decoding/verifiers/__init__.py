"""The rules that decide which guesses are kept: one file each, one line here."""

from __future__ import annotations

from app.decoding.contracts import Verifier
from app.decoding.verifiers.exact import Exact
from app.decoding.verifiers.greedy import Greedy
from app.run.problems import Problem
from app.run.settings import Sampling

VERIFIERS: dict[str, type[Verifier]] = {rule.name: rule for rule in (Exact, Greedy)}


def make_verifier(name: str, sampling: Sampling) -> Verifier:
    """The rule of this name. At temperature 0 the exact rule is the greedy one."""
    if name not in VERIFIERS:
        raise Problem(f"There is no rule {name!r}.", f"Choose one of: {', '.join(VERIFIERS)}.")
    if name == Greedy.name and not sampling.greedy:
        raise Problem(
            f"The greedy rule draws nothing, but the temperature is {sampling.temperature:g}.",
            "Set the temperature to 0, or choose the exact rule.",
        )
    return Greedy() if sampling.greedy else VERIFIERS[name]()
