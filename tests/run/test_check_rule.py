"""What is asked of a rule is refused before any model is loaded, and defaults always work."""

import pytest

from app.run.draft_lengths import check_lengths
from app.run.problems import Problem
from app.run.rules import RULES, check_rule
from app.run.settings import LONGEST_DRAFT, RunSettings, Sampling


def settings(rule, *, draft_length=4, **options):
    """Settings with the draft length that a run has by default."""
    drawn = Sampling(temperature=0.0 if rule == "greedy" else 0.7)
    return RunSettings(
        "pair", "prompt", rule=rule, sampling=drawn, draft_length=draft_length, rule_options=options
    )


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_works_as_it_is_offered(rule):
    check_rule(settings(rule))


@pytest.mark.parametrize(("draft_length", "window"), [(2, 1), (4, 3), (7, 6), (8, 6), (64, 6)])
def test_flys_window_fits_into_the_drafts_unless_it_is_given(draft_length, window):
    check_rule(settings("fly", draft_length=draft_length))
    fly = RULES["fly"]
    assert fly.fitted(fly.filled({}), draft_length)["window"] == window
    assert fly.fitted({"window": 5}, draft_length)["window"] == 5


@pytest.mark.parametrize(("draft_length", "options"), [(4, {"window": 4}), (1, {})])
def test_drafts_that_are_no_longer_than_flys_window_are_refused(draft_length, options):
    with pytest.raises(Problem, match=r"needs drafts longer than \d tokens, its window"):
        check_rule(settings("fly", draft_length=draft_length, **options))


def test_the_longest_draft_has_room_for_the_longest_window():
    check_rule(settings("fly", draft_length=LONGEST_DRAFT, window=LONGEST_DRAFT - 1))


@pytest.mark.parametrize("rates", ["0.5, 0.6", "1.1", "a half"])
def test_rates_that_are_none_are_refused_before_anything_is_loaded(rates):
    with pytest.raises(Problem, match="no acceptance rates"):
        check_rule(settings("synthetic", rates=rates))
    check_rule(settings("synthetic", rates="0.6, 0.5"))


def test_a_policy_that_counts_passes_is_refused_where_one_yields_several_guesses():
    def asked(method):
        return RunSettings("pair", "prompt", method=method, draft_length_policy="best")

    check_lengths(asked("draft-model"))
    with pytest.raises(Problem, match="may yield several") as refused:
        check_lengths(asked("cascade"))
    assert "fixed, heuristic" in refused.value.remedy
