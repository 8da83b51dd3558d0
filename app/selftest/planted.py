"""A check is proved: it passes as things are, and fails once its fault has been planted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import ModuleType

from app.run.problems import Problem


@dataclass(frozen=True)
class Finding:
    """What a look has found."""

    holds: bool
    told: str
    """The numbers, as a clause."""


def proved(look: Callable[[], Finding], name: str, fault: AbstractContextManager[None]) -> str:
    """What was found without the fault and with it.

    Raises Problem if the check fails as things are, or does not see the fault.
    """
    clean = look()
    if not clean.holds:
        raise Problem(f"{clean.told}.", "Try again while the machine does nothing else.")
    with fault:
        spoilt = look()
    if spoilt.holds:
        raise Problem(f"The check is blind to {name}: {spoilt.told}.", "")
    return f"{clean.told}; with {name} {spoilt.told}, which is seen"


@contextmanager
def planted(owner: type | ModuleType, name: str, fault: Callable[..., object]) -> Iterator[None]:
    """Puts a fault in the place of a method, or of what a module calls, for a while; it is handed
    what it replaces.
    """
    sound = getattr(owner, name)

    def spoilt(*given: object, **named: object) -> object:
        return fault(sound, *given, **named)

    setattr(owner, name, spoilt)
    try:
        yield
    finally:
        setattr(owner, name, sound)
