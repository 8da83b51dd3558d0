"""What chooses the draft lengths of a lane: one line a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.decoding.draft_length import DraftLength, Fixed, Heuristic
from app.decoding.draft_stop import ConfidenceStop, DraftStop, EntropyStop
from app.run.cost import PassCosts
from app.run.draft_lengths import LengthPolicy
from app.run.settings import OptionValue, RunSettings
from app.studies.best_length import BestLength

Options = Mapping[str, OptionValue]


def make_draft_length(settings: RunSettings, costs: PassCosts | None) -> DraftLength:
    """The lengths of a lane's rounds. The policy `best` needs the costs of passes."""
    policy = LengthPolicy.named(settings.draft_length_policy)
    make = _LENGTHS.get(policy.name, _fixed)
    return make(policy.filled(settings.draft_length_options), settings.draft_length, costs)


def make_draft_stop(settings: RunSettings) -> DraftStop | None:
    """What ends this run's drafts before their limit, if anything does."""
    policy = LengthPolicy.named(settings.draft_length_policy)
    make = _STOPS.get(policy.name)
    return make(policy.filled(settings.draft_length_options)) if make else None


def _fixed(options: Options, longest: int, costs: PassCosts | None) -> DraftLength:
    return Fixed(longest)


def _heuristic(options: Options, longest: int, costs: PassCosts | None) -> DraftLength:
    return Heuristic(start=int(options["start"]), longest=longest)


def _best(options: Options, longest: int, costs: PassCosts | None) -> DraftLength:
    if costs is None:
        return Fixed(longest)
    return BestLength(
        costs,
        longest=longest,
        prior=float(options["prior"]),
        look_again=int(options["look_again"]),
    )


_LENGTHS: dict[str, Callable[[Options, int, PassCosts | None], DraftLength]] = {
    "heuristic": _heuristic,
    "best": _best,
}
_STOPS: dict[str, Callable[[Options], DraftStop]] = {
    "confidence": lambda options: ConfidenceStop(float(options["threshold"])),
    "entropy": lambda options: EntropyStop(float(options["factor"]), float(options["threshold"])),
}
