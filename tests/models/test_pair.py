"""What a loaded pair says of itself, with and without the use of its draft model."""

from dataclasses import replace
from types import SimpleNamespace

from app.models.pair import LoadedPair
from app.models.proofs import Proof
from app.run.methods import Method
from app.run.preparation import Prepare

NGRAM, DRAFT, HEAD = map(Method.named, ("ngram", "draft-model", "head"))
TREE = Method.named("head-tree")


def model(*, rewinds, branches=True):
    return SimpleNamespace(
        trees=Proof(branches, "it reads no trees"),
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
    assert lame.refusal(NGRAM) == ""
    assert "draft model" in lame.refusal(DRAFT)


def test_a_target_that_cannot_be_rewound_refuses_every_method():
    lame = pair(target=False)
    assert lame.refusal(NGRAM) == lame.refusal(DRAFT) != ""


def test_notes_about_the_draft_model_belong_to_runs_that_use_it():
    assert pair().notes(NGRAM) == ("fp32 is asked for.", "tiny: it has a note.")
    assert pair().notes(DRAFT) == (
        "No speed-up is possible.",
        "fp32 is asked for.",
        "tiny: it has a note.",
        "tiny: it has a note.",
    )
    assert len(pair(draft=False).notes(DRAFT)) == 5


def test_a_run_is_told_of_what_guesses_in_it_alone():
    # A pair may have both: a slow draft model says nothing of a run whose head guesses.
    both = replace(pair(), head_warnings=("The head was made for other weights.",))
    assert both.notes(HEAD)[0] == "The head was made for other weights."
    assert both.notes(DRAFT)[0] == "No speed-up is possible."
    for method in (HEAD, DRAFT):
        assert len({*both.notes(method)} & {*both.draft_warnings, *both.head_warnings}) == 1


def test_a_target_that_cannot_read_trees_refuses_only_the_methods_that_guess_them():
    lame = replace(pair(), target=model(rewinds=True, branches=False))
    assert lame.refusal(HEAD) == ""
    assert lame.refusal(TREE) == "Speculation is off: it reads no trees."
    assert lame.refusal(TREE) in lame.notes(TREE)
    assert pair().refusal(TREE) == ""
