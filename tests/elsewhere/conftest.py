"""Set-ups to write for other programs."""

import pytest

from app.elsewhere.setup import Setup
from app.run.settings import RunSettings, Sampling


@pytest.fixture
def setup_with():
    """Makes a set-up: fields of the settings, and `sampling` by its fields."""

    def made(*, sampling=None, **fields):
        settings = RunSettings("pair", "Hello", sampling=Sampling(**sampling or {}), **fields)
        held = settings.precision or ""
        return Setup(settings, "org/Big", "org/Small", held, settings.draft_precision or held)

    return made
