"""Which failures of the Hub are worth another attempt, and how long to wait for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError is re-exported
    HfHubHTTPError,
    HTTPError,
)
from huggingface_hub.utils import (  # type: ignore[attr-defined]  # re-exported
    parse_ratelimit_headers,
)

from app.library.hub_traffic import Traffic
from app.run.problems import Problem

ATTEMPTS = 5
"""In a row, without a byte that came in between."""
LONGEST_WAIT = 300.0
"""Seconds that the Hub may ask for; for a longer wait nobody sits in front of a screen."""
_Answer = TypeVar("_Answer")
_BUSY = (408, 429, 500, 502, 503, 504)


class Patience:
    """Waits between the attempts at one thing; each wait is told, and ends when it is cancelled."""

    first_wait = 1.0
    """Seconds before the second attempt; each further wait is twice as long."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._failed = 0

    def came_on(self) -> None:
        """Forgets the failures: something came."""
        self._failed = 0

    def wait_after(self, error: HTTPError) -> None:
        """Waits until it is worth another attempt. Raises the error if it is not, and Problem
        if the Hub asks for too long a wait.
        """
        self._failed += 1
        if not _is_passing(error) or self._failed >= ATTEMPTS:
            raise error
        asked = _asked_wait(error)
        if asked is not None and asked > LONGEST_WAIT:
            raise Problem(
                f"The Hub takes no further requests for {asked / 60:.0f} minutes.",
                "Fetch the model again then: it goes on where it stopped. With a token "
                "(`foretoken models login`) the Hub takes more requests.",
            ) from error
        seconds = self.first_wait * 2 ** (self._failed - 1) if asked is None else asked
        self._traffic.wait(seconds, f"{_why(error)}; the next attempt comes after {seconds:.0f} s")


def patiently(call: Callable[[], _Answer], traffic: Traffic) -> _Answer:
    """The answer to a call that a busy Hub may refuse at first.

    A hub that cannot be reached at all is not waited for: most often there is no network.
    """
    patience = Patience(traffic)
    while True:
        try:
            return call()
        except HfHubHTTPError as error:
            patience.wait_after(error)


def status_of(error: Exception) -> int | None:
    """The status that the Hub has answered with, if it has answered."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def _is_passing(error: HTTPError) -> bool:
    """Whether the same request may succeed a little later."""
    status = status_of(error)
    return status is None or status in _BUSY


def _asked_wait(error: HTTPError) -> float | None:
    """The seconds that the Hub asks to wait, if it does."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    limit = parse_ratelimit_headers(headers)
    if limit is not None and limit.remaining == 0 and status_of(error) == 429:
        return float(limit.reset_in_seconds)
    said = str(headers.get("Retry-After", "")).strip()
    return float(said) if said.isdigit() and len(said) < 9 else None


def _why(error: HTTPError) -> str:
    status = status_of(error)
    if status is None:
        return "The connection was cut"
    return "The Hub asks for patience" if status == 429 else f"The Hub is busy (status {status})"
