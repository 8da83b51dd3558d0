"""What a loaded pair says of itself, with and without the use of its draft model."""

from dataclasses import replace
from types import SimpleNamespace

from app.models.pair import LoadedPair
from app.models.proofs import Proof
from app.run.preparation import Prepare


def model(*, rewinds):
    return SimpleNamespace(
        rewinding=Proof(rewinds, "tried"),
        rows=Proof(True, "tried"),
        folder=SimpleNamespace(suggested_sampling=None),
        notes=("tiny: it has a note.",),
    )


def pair(*, target=True, draft=True):
    wanted, warnings = Prepare("p"), ("fp32 is asked for.",)
    models = model(rewinds=target), model(rewinds=draft)
    return LoadedPair(wanted, *models, None, warnings, ("No speed-up is possible.",))


def test_a_draft_model_that_is_not_used_refuses_nothing():
    # Its n-grams are the target's own text: what the draft model cannot do does not matter.
    lame = pair(draft=False)
    assert lame.refusal("nothing") == ""
    assert "draft model" in lame.refusal("model")


def test_a_target_that_cannot_be_rewound_refuses_every_method():
    lame = pair(target=False)
    assert lame.refusal("nothing") == lame.refusal("model") != ""


def test_notes_about_the_draft_model_belong_to_runs_that_use_it():
    assert pair().notes("nothing") == ("fp32 is asked for.", "tiny: it has a note.")
    assert pair().notes("model") == (
        "No speed-up is possible.",
        "fp32 is asked for.",
        "tiny: it has a note.",
        "tiny: it has a note.",
    )
    assert len(pair(draft=False).notes("model")) == 5


def test_a_run_is_told_of_what_guesses_in_it_alone():
    # A pair may have both: a slow draft model says nothing of a run whose head guesses.
    both = replace(pair(), head_warnings=("The head was made for other weights.",))
    assert both.notes("head")[0] == "The head was made for other weights."
    assert both.notes("model")[0] == "No speed-up is possible."
    for drafter in ("head", "model"):
        assert len({*both.notes(drafter)} & {*both.draft_warnings, *both.head_warnings}) == 1
