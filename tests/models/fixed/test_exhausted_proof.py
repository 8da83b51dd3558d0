"""Memory that is exhausted while passes are proved leaves a model eager for now, and is given back;
a model that cannot even be read eagerly is not loaded.
"""

import gc
import weakref

import pytest
import torch
from cards import plant

import tapes
from app.models.fixed import choice, proof, room
from app.models.fixed.choice import choose_passes
from app.models.fixed.memory import PlacedLayer
from app.models.fixed.reader import FixedReader
from app.models.language_model import LanguageModel
from app.run.problems import DoesNotFit
from toys import tiny_llama

STAGES = {
    "memory is opened": (PlacedLayer, "lazy_initialization", 1),
    "a text is read eagerly": (LanguageModel, "answer", 2),
    "a pass is tried": (room, "fixed_pass", 1),
    "a pass is recorded": (tapes.Tape, "record", 3),
    "a pass is told of": (room.PassRows, "load", 12),  # behind the nine that are recorded
    "a pass is replayed": (tapes, "_leave", 1),
    "rows are compared": (proof, "share_apart", 2),
    "a longer text is read eagerly": (LanguageModel, "answer_with_features", 1),
    "a pass behind a longer text is recorded": (tapes.Tape, "record", 10),
}


def exhausted(*args, **told):
    raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.fixture
def card(monkeypatch):
    """Makes the CPU a device whose passes tapes record."""
    monkeypatch.setattr(choice, "recorder_for", lambda device: tapes.Tapes())


@pytest.fixture
def rooms(monkeypatch):
    """The rooms that are still there, which no collection has to be waited for."""
    made, new_room = [], FixedReader._new_room

    def noted(reader, capacity):
        found = new_room(reader, capacity)
        made.append(weakref.ref(found))
        return found

    monkeypatch.setattr(FixedReader, "_new_room", noted)
    gc.collect()
    gc.disable()
    yield lambda: [one for one in made if one() is not None]
    gc.enable()
    assert made


@pytest.mark.parametrize("stage", STAGES)
def test_a_model_stays_eager_until_it_is_chosen_again(card, rooms, monkeypatch, stage):
    model = tiny_llama()
    owner, name, at = STAGES[stage]
    with monkeypatch.context() as patch:
        plant(patch, owner, name, exhausted, at=at)
        choose_passes(model, "auto")
    assert model.passes.said == "eager: no memory for its graphs"
    assert model.passes.undecided
    assert rooms() == []
    assert model.open(8)._model is model
    choose_passes(model, "auto")
    assert model.passes.said == "captured graphs"
    assert not model.passes.undecided


def test_fixed_shapes_that_are_not_recorded_are_given_up_for_now_too(rooms, monkeypatch):
    model = tiny_llama()
    with monkeypatch.context() as patch:
        plant(patch, room, "fixed_pass", exhausted, at=4)
        choose_passes(model, "fixed")
    assert model.passes.said == "eager: no memory for fixed shapes"
    assert rooms() == []
    choose_passes(model, "fixed")
    assert model.passes.said == "fixed shapes"


def test_a_model_that_cannot_be_read_eagerly_does_not_fit(card, rooms, monkeypatch):
    model = tiny_llama()
    with monkeypatch.context() as patch:
        patch.setattr(LanguageModel, "answer", exhausted)
        with pytest.raises(DoesNotFit, match="memory is exhausted"):
            choose_passes(model, "auto")
    assert (model.passes.said, model.passes.asked) == ("eager", None)
    assert rooms() == []
    choose_passes(model, "auto")
    assert model.passes.said == "captured graphs"
