"""A run that is shown says what it was made with, once the form asks for something else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scripted_engine import run_of, stopped

from app.gui.changed_since import changed_since
from app.run.settings import RunSettings, Sampling

ASKED = RunSettings(pair="embedded", prompt="Hi", method="head", draft_length=4)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, ""),
        ({"order": "interleaved", "detail": "full"}, ""),  # the form does not ask for them
        ({"sampling": Sampling(seed=7, top_k=3)}, ""),  # nothing is drawn
        (
            {"method": "ngram"},
            "Of the run with embedded, draft head, 4 guesses; settings have changed since.",
        ),
        (
            {"sampling": Sampling(temperature=1.0)},
            "Of the run with embedded, draft head, 4 guesses; settings have changed since.",
        ),
        (
            {"prompt": "Hello"},
            "Of the run with embedded, draft head, 4 guesses; the prompt has changed since.",
        ),
        (
            {"prompt": "Hello", "max_new_tokens": 7},
            "Of the run with embedded, draft head, 4 guesses; settings have changed since.",
        ),
    ],
)
def test_what_has_changed(changes, sentence):
    assert changed_since(ASKED, replace(ASKED, **changes)) == sentence


def test_an_option_left_out_is_its_default():
    drawing = {"draft_sampling": "target", "draft_temperature": 1.0}
    one = replace(ASKED, method="draft-model")
    assert changed_since(one, replace(one, method_options=drawing)) == ""
    other = {**drawing, "draft_temperature": 0.5}
    assert changed_since(one, replace(one, method_options=other)) != ""


def test_plain_decoding_minds_nothing_of_speculation():
    plain = replace(ASKED, method="nothing", draft_length=0, baseline=False)
    assert changed_since(plain, replace(plain, draft_length=5, baseline=True)) == ""
    words = "Of the run with embedded, plain decoding; settings have changed since."
    assert changed_since(plain, ASKED) == words


def sent(client) -> dict:
    settings = client.sent[-1].settings
    return {name: getattr(settings, name) for name in settings.__struct_fields__}


def test_the_line_comes_with_a_change_and_goes_with_its_undoing_and_the_next_run(
    window, client, play
):
    origin, form = window.page.verdict.origin, window.page.form
    form.rows["draft_length"].field.put(5)
    assert not origin.isVisible()  # there is no run
    window.run()
    play(*run_of(**sent(client)))
    assert not origin.isVisible()
    form.rows["draft_length"].field.put(6)
    assert origin.isVisible()
    assert origin.text().startswith("Of the run with embedded, ")
    assert origin.text().endswith(", 5 guesses; settings have changed since.")
    form.rows["draft_length"].field.put(5)
    assert not origin.isVisible()
    window.page.prompt.prompt.setPlainText("Another")
    assert "prompt has changed" in origin.text()
    form.choose_pair("embedded-nf4-draft")
    assert "settings have changed" in origin.text()
    client.ready()
    play()
    window.run()
    play(*run_of(run="next", **sent(client)))
    assert not origin.isVisible()


def test_a_cancelled_run_says_so_by_its_verdict_which_is_not_green(window, client, play):
    line = window.page.verdict.line
    window.run()
    asked = sent(client)
    play(*stopped(run_of(**asked), after=90))
    tokens = window.page.lanes[0].footer.text().split(" tokens")[1].split()[-1]
    assert tokens.isdigit()
    assert line.ending.isVisible()
    assert line.ending.text() == f"Cancelled after {tokens} tokens"
    assert line.sentence.text().startswith("Pays")
    assert line.sentence.property("tone") != "good"
    window.run()
    play(*run_of(run="next", **asked))
    assert not line.ending.isVisible()
    assert line.sentence.property("tone") == "good"
