"""Times one round: whose seconds were they, the draft's, the target's, the rule's?"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import torch

from app.decoding.clock import Clock
from app.decoding.contracts import Answer, Asking, Chain, Draft, Read, Request, WholeTree
from app.models.session import Reading
from app.run.events import Phases


class RoundWatch:
    """Times the phases of one round, and passes on its requests."""

    def __init__(self, clock: Clock, device: torch.device, draft_clock: Clock) -> None:
        """`device` is the target's: drafts are taken there. `draft_clock` times the passes of what
        makes them, on whatever device.
        """
        self._clock = clock
        self._device = device
        self._draft_clock = draft_clock
        self.start = clock.now()
        self.passes = 0
        self.drafted = 0
        """Guesses of the draft; while it is made, the passes that have made some of it."""
        self._marks = [clock.mark()]
        self._draft_spans: list[tuple[Any, Any, bool]] = []

    def propose(self, asking: Asking) -> Generator[Request, Answer, Draft]:
        """Lets the proposer work, timing its model's passes."""
        answer: Answer | None = None
        while True:
            try:
                request = asking.send(answer)  # None starts it
            except StopIteration as done:
                draft: Draft = done.value
                self.drafted = len(draft)
                draft.move(self._device)
                self._marks.append(self._clock.mark())
                return draft
            start = self._draft_clock.mark()
            answer = yield request
            if isinstance(request, Read):
                self._draft_spans.append((start, self._draft_clock.mark(), request.prompt))
                self.passes += 1
                self.drafted += request.block is not None
            if isinstance(request, (Chain, WholeTree)) and answer is not None:
                passes = request.count if isinstance(request, Chain) else request.levels
                self._draft_spans.append((start, self._draft_clock.mark(), False))
                self.passes += passes
                self.drafted += passes

    def verify(self, read: Read) -> Generator[Request, Reading, Reading]:
        """The target's pass."""
        self._marks.append(self._clock.mark())
        reading = yield read
        self._marks.append(self._clock.mark())
        self.passes += 1
        return reading

    def decided(self) -> None:
        """The verdict is on the host."""
        self._marks.append(self._clock.mark())

    def phases(self) -> Phases:
        """Where the seconds went, once the tokens are fixed."""
        total = self._clock.now() - self.start
        seconds = self._clock.seconds
        begin, proposed, reading, read, decided = self._marks
        drafting = self._draft_clock.seconds
        calls = [(drafting(a, b), prompt) for a, b, prompt in self._draft_spans]
        prompt = math.fsum(spent for spent, is_prompt in calls if is_prompt)
        draft = max(seconds(begin, proposed) - prompt, 0.0)
        verify, decide = seconds(reading, read), seconds(read, decided)
        return Phases(
            draft_prompt=prompt,
            draft=draft,
            verify=verify,
            decide=decide,
            rest=max(total - prompt - draft - verify - decide, 0.0),
            draft_calls=math.fsum(spent for spent, _ in calls),
        )
