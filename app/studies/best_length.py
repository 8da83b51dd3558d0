"""The draft length that pays best on this machine, chosen anew each round."""

from __future__ import annotations

from app.run.cost import PassCosts
from app.run.events import DraftLimit
from app.theory.costs import StepCosts, best_draft_length

_PRIOR_TESTS = 4
"""How many tests the acceptance that is believed at first counts as."""


class BestLength:
    """Weighs the acceptance so far against what passes cost: γ of the largest speed-up, 0 if none
    is above 1 (`app.theory.costs`).

    Without guesses nothing is learnt, so now and then one is tried.
    """

    def __init__(self, costs: PassCosts, *, longest: int, prior: float, look_again: int) -> None:
        passes = {width: cost for width, cost in costs.seconds.items() if width <= longest + 1}
        self._costs = StepCosts(passes, draft_step=costs.draft_step or 0.0)
        self._longest = longest
        self._kept = prior * _PRIOR_TESTS
        self._tested = float(_PRIOR_TESTS)
        self._look_again = look_again
        self._without = 0

    @property
    def acceptance(self) -> float:
        """α̂ so far: kept of the guesses that were tested, and what was believed at first."""
        return self._kept / self._tested

    def choose(self, round_: int) -> tuple[int, DraftLimit]:
        """The best length at this acceptance."""
        best = best_draft_length(self.acceptance, self._costs).draft_length
        self._without = 0 if best else self._without + 1
        if self._without > self._look_again:
            self._without, best = 0, min(1, self._longest)
        return best, "draft length" if best == self._longest else "policy"

    def learn(self, drafted: int, accepted: int) -> None:
        """Takes in a round: a draft that was not kept whole has one guess more that was tested."""
        self._kept += accepted
        self._tested += accepted + (accepted < drafted)
