"""A workbench without models in the place of the real one, and a command line to call."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from recorded import run_events

from app.cli import main


class FakeWorkbench:
    """Plays recorded events, and does at a chosen one what a test asks for."""

    events = None
    before = staticmethod(lambda report, pause: None)
    at = staticmethod(lambda index, pause: None)
    settings = None
    audited = None
    answer = None

    def __init__(self, catalogue):
        self.catalogue = catalogue

    def audit(self, wanted, *, report, pause):
        type(self).audited = wanted
        type(self).before(report, pause)
        return type(self).answer(wanted)

    def run(self, run, settings, *, emit, report, pause):
        type(self).settings = settings
        type(self).before(report, pause)
        events = type(self).events or run_events(
            pair=settings.pair, stop_strings=settings.stop_strings
        )
        for index, event in enumerate(events):
            self.at(index, pause)
            emit(event)


@pytest.fixture
def workbench(monkeypatch):
    """The class that runs instead of the real workbench."""

    class Workbench(FakeWorkbench):
        pass

    module = ModuleType("app.studies.workbench")
    module.Workbench = Workbench
    monkeypatch.setitem(sys.modules, "app.studies.workbench", module)
    return Workbench


@pytest.fixture
def call(capfd, monkeypatch, tmp_path):
    """Calls the command line and tells the exit code and both streams."""
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")

    def called(*arguments):
        code = main(list(arguments))
        out, err = capfd.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return called
