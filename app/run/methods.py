"""The methods on offer and the options that each declares, for form, command line and reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from app.run.problems import Problem
from app.run.settings import OptionValue

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


Drafter = Literal["nothing", "model", "head"]
"""What of a pair a method asks for guesses: nothing, its draft model, or its draft head."""


class Option(msgspec.Struct, frozen=True):
    """A setting that a method declares."""

    name: str
    label: str
    help: str
    default: int | float | bool | str
    low: float | None = None
    high: float | None = None

    def checked(self, value: OptionValue) -> OptionValue:
        """The value, if it has the default's type and lies within the bounds; else Problem."""
        kind = type(self.default)
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if fits and isinstance(value, (int, float)):
            fits = (self.low is None or value >= self.low) and (
                self.high is None or value <= self.high
            )
        if not fits:
            bounds = f" from {self.low:g} to {self.high:g}" if self.low is not None else ""
            raise Problem(
                f"{self.label} is {value!r}; it has to be {_KINDS[kind]}{bounds}.", self.help
            )
        return value


class Method(msgspec.Struct, frozen=True):
    """A way of guessing, as it is offered."""

    name: str
    label: str
    summary: str
    drafter: Drafter = "nothing"
    """What the pair has to have for it."""
    options: tuple[Option, ...] = ()

    @staticmethod
    def named(name: str) -> Method:
        """The method of this name; Problem if there is none."""
        if name not in METHODS:
            raise Problem(f"There is no method {name!r}.", f"Choose one of: {', '.join(METHODS)}.")
        return METHODS[name]

    def filled(self, given: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
        """Every option's value: the given ones, checked, and the defaults of the others."""
        known = {option.name: option for option in self.options}
        unknown = sorted(set(given) - set(known))
        if unknown:
            offer = f"It has: {', '.join(known)}." if known else "It has none."
            raise Problem(f"Method {self.name!r} has no option {unknown[0]!r}.", offer)
        return {
            name: option.checked(given[name]) if name in given else option.default
            for name, option in known.items()
        }


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
    )
}
