"""A client with an engine that needs no models, and a check that nothing of it is left."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

# The tests and the engines they start find what stands beside them by name: a spawned process is
# given this process's sys.path.
sys.path.append(str(Path(__file__).parent))

from engine_watch import FAKE, Listening, Strays

from app.engine.client import EngineClient
from app.run.preparation import EngineReady


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[EngineClient]:
    """A client that is closed, and checked to have left nothing, behind the test."""
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path / "дом"))
    before = Strays.processes()
    made = EngineClient(FAKE)
    yield made
    made.close()
    assert made.drain() == []
    assert not made.alive
    assert Strays.threads() == []
    assert Strays.processes() == before


@pytest.fixture
def engine(client: EngineClient) -> Listening:
    """The client, with something that listens to it."""
    return Listening(client)


@pytest.fixture
def child(engine: Listening) -> psutil.Process:
    """The process of an engine that is ready."""
    engine.client.start()
    engine.until(EngineReady)
    (process,) = Strays.processes()
    return process
