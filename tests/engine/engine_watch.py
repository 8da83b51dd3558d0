"""Listening to an engine, and looking for what one has left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psutil

from app.engine.client import EngineClient
from app.engine.protocol import Message

PATIENCE = 60.0
"""Seconds after which something has failed; nothing is expected to take nearly as long."""


FAKE = "fake_bench:FakeBench"


def wait_for(condition: Callable[[], bool]) -> None:
    """Asks again and again until the answer is yes."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)


class Listening:
    """A client, and all that it has returned so far."""

    def __init__(self, client: EngineClient) -> None:
        self.client = client
        self.heard: list[Message] = []

    def until(self, wanted: type[Message], *, more: int = 1) -> list[Message]:
        """Drains until so many more messages of a kind have come; all that came with them."""
        start = len(self.heard)

        def heard_enough() -> bool:
            self.heard += self.client.drain()
            return sum(isinstance(found, wanted) for found in self.heard[start:]) >= more

        wait_for(heard_enough)
        return self.heard[start:]


class Strays:
    """What an engine could leave behind in this process."""

    @staticmethod
    def threads() -> list[str]:
        return [found.name for found in threading.enumerate() if found.name.startswith("engine ")]

    @staticmethod
    def processes() -> list[psutil.Process]:
        """The children, but for the one that Python's multiprocessing keeps for itself."""
        children = psutil.Process().children()
        return [child for child in children if not _is_tracker(child)]


def _is_tracker(process: psutil.Process) -> bool:
    try:
        return any("resource_tracker" in part for part in process.cmdline())
    except (psutil.ZombieProcess, psutil.NoSuchProcess):
        return False
