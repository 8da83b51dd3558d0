"""Synthetic acceptance: guesses are kept at given rates, whatever they are.

For measuring a system as if a draft were this good (vLLM's `rejection_sample_method: synthetic`);
the text is nobody's. A guess at place i is kept with r_i / r_(i-1), r_i being the wanted share of
drafts that keep at least i guesses.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict
from app.decoding.verifiers.lossy import lossy_verdict
from app.models.machine import on_device
from app.run.problems import Problem


class Synthetic:
    """A lossy rule: `rates` r_1, r_2, … never rise; behind the last of them nothing is kept."""

    name = "synthetic"

    def __init__(self, rates: Sequence[float]) -> None:
        before = [1.0, *rates]
        self._chances = [
            now / last if last > 0 else 0.0 for last, now in zip(before, rates, strict=False)
        ]

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Decides by `draws.accept`, left to right, and draws the next token as the exact rule."""
        missing = [0.0] * max(len(draft) - len(self._chances), 0)
        values = [*self._chances, *missing][: len(draft)]
        chance = on_device(values, draws.accept.dtype, rows.logits.device)
        return lossy_verdict(draft, rows, draws, chance=chance)


def rates_of(written: str, length: float) -> list[float]:
    """The rates as written, with commas between them; for none, those of a mean acceptance length.

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
