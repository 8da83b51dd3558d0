"""Settings that a method, a rule or a choice of draft lengths declares, and their checking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from app.run.problems import Problem
from app.run.settings import OptionValue

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


class Option(msgspec.Struct, frozen=True):
    """A setting of one thing on offer."""

    name: str
    label: str
    help: str
    default: int | float | bool | str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    """The words that it may be; none for any text, or for another type."""

    def checked(self, value: OptionValue) -> OptionValue:
        """The value, if it has the default's type and lies within the bounds; else Problem."""
        kind = type(self.default)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if fits and isinstance(value, (int, float)):
            fits = (self.low is None or value >= self.low) and (
                self.high is None or value <= self.high
            )
        if fits and self.choices:
            fits = value in self.choices
        if not fits:
            raise Problem(f"{self.label} is {value!r}; it has to be {self._bounds}.", self.help)
        return value

    @property
    def _bounds(self) -> str:
        """What it may be, in words."""
        if self.choices:
            return f"one of: {', '.join(self.choices)}"
        bounds = f" from {self.low:g} to {self.high:g}" if self.low is not None else ""
        return f"{_KINDS[type(self.default)]}{bounds}"


class Preset(msgspec.Struct, frozen=True):
    """Values that belong together, by a name: another program's defaults."""

    name: str
    label: str
    options: dict[str, OptionValue]
    draft_length: int | None = None
    """None where the other program has no default for it."""


class Offer(msgspec.Struct, frozen=True):
    """A thing to choose by its name, with the options that it declares."""

    name: str
    label: str
    summary: str
    options: tuple[Option, ...] = ()
    presets: tuple[Preset, ...] = ()

    def preset(self, name: str) -> Preset:
        """The preset of this name; Problem if it has none such."""
        known = {preset.name: preset for preset in self.presets}
        if not known:
            remedy = "Leave it out, or choose another method."
            raise Problem(f"{self.label} has no presets.", remedy)
        return named(name, known, f"preset of {self.label}")

    def filled(self, given: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
        """Every option's value: the given ones, checked, and the defaults of the others."""
        known = {option.name: option for option in self.options}
        unknown = sorted(set(given) - set(known))
        if unknown:
            offer = f"It has: {', '.join(known)}." if known else "It has none."
            what = f"{type(self).__name__} {self.name!r}"
            raise Problem(f"{what} has no option {unknown[0]!r}.", offer)
        return {
            name: option.checked(given[name]) if name in given else option.default
            for name, option in known.items()
        }

    def words(self, given: Mapping[str, OptionValue]) -> str:
        """Its label and the options that apply, the defaults of those not given among them."""
        labels = {option.name: option.label.lower() for option in self.options}
        values = {option.name: option.default for option in self.options} | dict(given)
        return ", ".join(
            [self.label, *(f"{labels.get(name, name)} {value}" for name, value in values.items())]
        )


_Named = TypeVar("_Named", bound="Offer | Preset")


def named(name: str, offers: Mapping[str, _Named], what: str) -> _Named:
    """The offer of this name; `what` it is goes into the Problem if there is none."""
    if name not in offers:
        raise Problem(f"There is no {what} {name!r}.", f"Choose one of: {', '.join(offers)}.")
    return offers[name]
