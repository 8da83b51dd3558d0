"""An audit from the window: asked for, watched, stopped, and told of."""

from __future__ import annotations

import pytest

from app.engine.protocol import JobCancelled, JobProblem, Run, Stop
from app.run.auditing import Audit, Audited, audit_words, auditable
from app.run.events import Progress
from app.run.preparation import Prepare


def audited(wanted: Audit, **changes) -> Audited:
    found = {
        "asked": wanted.runs, "runs": wanted.runs, "lossless": True, "drafted": 900,
        "accepted": 400, "texts": 256, "tv": 0.05, "bound": 0.2, "impossible": 0, "edge": 0,
        "statistic": 80.0, "cells": 79, "chance": 0.4, "smallest_seen": 0.1,
    }  # fmt: skip
    return Audited(settings=wanted.settings, **{**found, **changes})


@pytest.fixture
def wanted(window, client) -> Audit:
    """The audit that the window has asked for."""
    window.action["audit"].trigger()
    assert isinstance(client.sent[-1], Audit)
    return client.sent[-1]


def test_it_takes_the_settings_of_the_form_as_far_as_they_can_be_audited(window, wanted):
    assert wanted.settings == auditable(window.page.settings())
    assert wanted.settings.sampling.top_k == 4


def test_progress_is_shown_and_the_answer_is_news(window, play, wanted):
    play(Progress("auditing", 250, 1000, "texts"))
    assert window.page.progress.isVisible()
    assert window.page.progress._text.text() == "Auditing: 250 of 1000 texts"
    assert "Auditing" in window.bar.state.text()
    for name in ("run", "audit", "open"):
        assert not window.action[name].isEnabled()
    found = audited(wanted)
    play(found)
    assert not window.page.progress.isVisible()
    assert window.page.notice.text.text() == audit_words(found)
    assert "within chance" in window.page.notice.text.text()
    assert window.page.notice.property("kind") == "news"
    assert window.action["run"].isEnabled()


@pytest.mark.parametrize("changes", [{"chance": 1e-9}, {"tv": 0.5}, {"impossible": 3}])
def test_a_law_that_is_not_kept_is_trouble(window, play, wanted, changes):
    play(audited(wanted, **changes))
    assert "NOT the target's law" in window.page.notice.text.text()
    assert window.page.notice.property("kind") == "trouble"


def test_an_audit_without_a_guess_is_no_good_news(window, play, wanted):
    play(audited(wanted, drafted=0, accepted=0))
    assert "nothing was guessed" in window.page.notice.text.text()
    assert window.page.notice.property("kind") == "trouble"


def test_it_can_be_stopped_and_says_how_far_it_came(window, client, play, wanted):
    play(Progress("auditing", 250, 1000, "texts"))
    window.page.progress.cancel.click()
    assert isinstance(client.sent[-1], Stop)
    play(audited(wanted, runs=251))
    assert "251 texts of the 1,000 asked for" in window.page.notice.text.text()


@pytest.mark.parametrize("answer", [JobCancelled(), JobProblem("No.", "Do otherwise.")])
def test_an_audit_that_does_not_begin_leaves_the_window_free(window, client, play, wanted, answer):
    play(answer)
    assert window.action["audit"].isEnabled()
    window.run()
    assert isinstance(client.sent[-1], Run)


def test_another_pair_chosen_meanwhile_is_made_ready_after_it(window, client, play, wanted):
    window.page.form.choose_pair("embedded-nf4-draft")
    assert client.sent[-1] == wanted
    play(audited(wanted))
    assert client.sent[-1] == Prepare("embedded-nf4-draft")


def test_settings_that_cannot_be_audited_are_refused(window, client, monkeypatch):
    monkeypatch.setattr(window.page.form.rows["draft_length"].field, "get", lambda: -1)
    sent = len(client.sent)
    window.action["audit"].trigger()
    assert len(client.sent) == sent
    assert window.page.notice.isVisible()
