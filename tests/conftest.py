"""What every test shares: no screen, no network, and a guard against packaging's one trap."""

import os
import socket

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
    # Tests that run at once share the processors; torch would take all of them for each.
    os.environ.setdefault("OMP_NUM_THREADS", str(max((os.cpu_count() or 1) // workers, 1)))


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
