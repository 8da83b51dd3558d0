"""The embedded pairs, as a person has them, on a workbench."""

import pytest

from app import files
from app.library.catalogue import load_catalogue
from app.run.record import RunRecord
from app.studies.workbench import Workbench


@pytest.fixture(scope="session")
def catalogue():
    """The catalogue that ships."""
    return load_catalogue([files.shipped_catalogue()])


@pytest.fixture(scope="session")
def workbench(catalogue):
    """One workbench for all tests, so that each pair is loaded once."""
    return Workbench(catalogue)


@pytest.fixture
def run_here(workbench):
    """Runs settings in this process, and returns the record."""

    def run_settings(settings, pause=lambda: None):
        events = []
        workbench.run(
            "run", settings, emit=events.append, report=lambda progress: None, pause=pause
        )
        record = RunRecord.begin(events[0])
        for event in events:
            record.apply(event)
        return record

    return run_settings
