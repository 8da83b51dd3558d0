"""A history in a folder of its own, and runs to put into it."""

import pytest
from recorded import run_record

from app.history import History


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "history.sqlite"


@pytest.fixture
def history(path):
    with History(path) as opened:
        yield opened


@pytest.fixture
def make():
    """Makes the record of a run with this id and these settings."""

    def made(run, *, started="2026-01-02T03:04:05+01:00", **settings):
        record = run_record(**settings)
        record.run, record.started = run, started
        return record

    return made
