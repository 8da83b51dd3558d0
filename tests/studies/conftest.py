"""The embedded pairs, as a person has them, on a workbench."""

import pytest

from app import files
from app.library.catalogue import load_catalogue
from app.run.preparation import preparation
from app.run.record import RunRecord
from app.run.settings import RunSettings
from app.selftest.runs import tiny_run
from app.selftest.tiny_models import write_tiny_pair
from app.studies.workbench import Workbench


def tiny_settings(**changes):
    """Settings of a run of the tiny pair, or of the tiny model that the method needs."""
    pair = tiny_run(changes.get("method", "ngram")).pair
    fixed = {"pair": pair, "raw": True, "precision": "fp32", "draft_precision": "fp32"}
    return RunSettings(**{"prompt": "one two, one two, one", **fixed, **changes})


@pytest.fixture(scope="session")
def tiny():
    """Makes settings of a run of the tiny pair."""
    return tiny_settings


@pytest.fixture(scope="session")
def catalogue():
    """The catalogue that ships."""
    return load_catalogue([files.shipped_catalogue()])


@pytest.fixture(scope="session")
def tiny_bench(tmp_path_factory):
    """A workbench with the self-test's pair of tiny models, in fp32."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORETOKEN_HOME", str(tmp_path_factory.mktemp("tiny")))
        bench = Workbench(load_catalogue([write_tiny_pair()]))
        bench.loaded(preparation(tiny_settings()), report=lambda _: None, pause=lambda: None)
        yield bench


@pytest.fixture
def run_tiny(tiny_bench, tiny):
    """Runs settings of the tiny pair, and returns the record."""

    def run(**changes) -> RunRecord:
        events = []
        settings = tiny(max_new_tokens=24, ignore_end_of_text=True, **changes)
        tiny_bench.run("r", settings, emit=events.append, report=lambda _: None, pause=lambda: None)
        record = RunRecord.begin(events[0])
        for event in events:
            record.apply(event)
        return record

    return run


@pytest.fixture(scope="session")
def workbench(catalogue):
    """One workbench for all tests, so that each pair is loaded once."""
    return Workbench(catalogue)


@pytest.fixture(scope="session")
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
