"""How long lessons go on, and how large their steps are meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

WARM_UP = 50
"""Steps in which the learning rate rises."""
FALL = 0.4
"""The last part of the lessons, in which the learning rate falls to nothing."""


@dataclass(frozen=True, slots=True)
class Span:
    """How long a head learns: so many seconds, or so many steps."""

    seconds: float | None = None
    steps: int | None = None

    def share(self, seconds: float, steps: int) -> float:
        """The part that is over: 1 at its end."""
        parts = [1.0] if self.seconds == 0 or self.steps == 0 else []
        if self.seconds:
            parts.append(seconds / self.seconds)
        if self.steps:
            parts.append(steps / self.steps)
        return max(parts, default=0.0)


def learning_rate(peak: float, *, step: int, share: float, fall: float, end: float) -> float:
    """The rate at this step; it falls from the share `fall` to the share `end`."""
    left = 1.0 if share <= fall else max(end - share, 0.0) / max(end - fall, 1e-9)
    return peak * min(1.0, (step + 1) / WARM_UP) * left
