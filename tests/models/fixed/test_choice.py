"""Which way passes take: as asked for, where it is proved; else eagerly, with the reason."""

import gc
import weakref

import pytest
import torch
import transformers

from app.decoding.proposers.pickings import DraftPicking
from app.models.fixed import choice, room
from app.models.fixed.choice import choose_passes
from app.models.fixed.passes import Passes
from app.models.fixed.reader import FixedReader
from app.models.fixed.room import Rooms
from app.models.session import Session
from app.run.problems import Cancelled
from app.run.settings import Sampling
from tapes import Tape, Tapes
from tiny_kinds import STATEFUL, write_kind
from toys import tiny_llama, wrapped


class Refusing(Tape):
    """A card on which nothing can be recorded."""

    def record(self, run):
        raise RuntimeError("operation not permitted when stream is capturing\nmore of it")


class Dead(Tape):
    """A card whose graphs do nothing."""

    def record(self, run):
        super().record(run)
        return lambda: None


class Full(Tape):
    """A card without memory for more than two graphs."""

    def record(self, run):
        if self.recorded == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().record(run)


@pytest.fixture
def card(monkeypatch):
    """Makes the CPU a device whose passes this kind of tape records."""

    def of(kind=Tape) -> Tapes:
        tapes = Tapes(kind)
        monkeypatch.setattr(choice, "recorder_for", lambda device: tapes)
        return tapes

    return of


def test_a_cpu_is_eager_unless_it_is_asked_for_fixed_shapes():
    model = tiny_llama()
    assert model.passes.said == "eager"
    choose_passes(model, "auto")
    assert (model.passes.said, model.passes.reader(model)) == ("eager", model)
    choose_passes(model, "fixed")
    assert model.passes.said == "fixed shapes"
    assert isinstance(model.passes.reader(model), FixedReader)
    choose_passes(model, "eager")
    assert model.passes.said == "eager"


def test_what_was_proved_is_not_proved_again(card):
    tapes, model = card(), tiny_llama()
    choose_passes(model, "auto")
    assert model.passes.said == "captured graphs"
    proved, passes = tapes.recorded, model.passes
    assert proved >= 4
    choose_passes(model, "auto")
    assert (tapes.recorded, model.passes) == (proved, passes)


def test_no_graph_outlives_its_session(card):
    card()
    model = tiny_llama()
    choose_passes(model, "auto")
    session = model.open(64)
    session.prepare(5)
    room = weakref.ref(session._cache.room)
    keys = weakref.ref(session._cache.room.memory.layers[0].keys)
    gc.disable()
    try:
        del session
        assert room() is None
        assert keys() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (
            Refusing,
            "its passes cannot be captured (operation not permitted when stream is capturing)",
        ),
        (Dead, "fixed shapes are read otherwise"),
        (Full, "no memory for its graphs"),
    ],
)
def test_a_card_that_cannot_replay_is_told_of(card, kind, reason):
    card(kind)
    model = tiny_llama()
    choose_passes(model, "auto")
    assert model.passes.said.startswith(f"eager: {reason}")
    assert model.open(8)._model is model


@pytest.mark.parametrize("layers", [None, (), (0, 1)])
@pytest.mark.parametrize("part", ["logits", "features"])
def test_a_longer_text_and_every_kind_of_features_are_tried_on_a_card(
    card, monkeypatch, layers, part
):
    right = room.fixed_pass

    def wrong(*given, keys, layers: tuple[int, ...] | None, whole: bool):
        found = right(*given, keys=keys, layers=layers, whole=whole)
        spoilt = getattr(found, part)
        if keys <= 256 or layers != at or spoilt is None:
            return found
        return found._replace(**{part: -spoilt})

    at = layers
    monkeypatch.setattr(room, "fixed_pass", wrong)
    card()
    model = tiny_llama()
    choose_passes(model, "auto")
    if layers is None and part == "features":
        assert model.passes.said == "captured graphs"
    else:
        assert model.passes.said.startswith("eager: fixed shapes are read otherwise")


def test_a_model_of_a_short_context_is_tried_behind_short_texts_only(card):
    card()
    model = tiny_llama(max_position_embeddings=128)
    choose_passes(model, "auto")
    assert model.passes.said == "captured graphs"


@pytest.mark.parametrize("kind", STATEFUL)
def test_a_state_that_is_no_cache_is_read_eagerly(card, kind, tmp_path):
    tapes = card()
    folder = write_kind(tmp_path / kind, kind)
    model = wrapped(transformers.AutoModelForCausalLM.from_pretrained(folder).eval())
    for wanted in ("auto", "fixed"):
        choose_passes(model, wanted)
        assert model.passes.said.startswith("eager: ")
    assert tapes.recorded == 0


def test_what_no_graph_can_hold_is_not_tried(card):
    tapes, model = card(), tiny_llama()
    model.precision = "llm-int8"
    choose_passes(model, "auto")
    assert model.passes.said == "eager: LLM.int8 decides on the host, which no graph can hold"
    assert tapes.made == []
    choose_passes(model, "fixed")
    assert model.passes.said == "fixed shapes"


def test_angles_that_depend_on_the_texts_length_are_decided_on_the_host(card):
    card()
    scaling = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10_000.0}
    model = tiny_llama(rope_parameters=scaling)
    choose_passes(model, "auto")
    assert model.passes.said.startswith("eager: its passes cannot be captured")


def test_experts_that_are_sent_rows_by_the_host_are_read_eagerly(card, tmp_path):
    card()
    folder = write_kind(tmp_path / "mixtral", "mixtral")
    model = wrapped(
        transformers.AutoModelForCausalLM.from_pretrained(
            folder, experts_implementation="eager"
        ).eval()
    )
    choose_passes(model, "auto")
    assert model.passes.said.startswith("eager: its passes cannot be captured")


def test_a_proof_that_is_stopped_leaves_the_model_as_it_was(card):
    card()
    model = tiny_llama()

    def stop() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        choose_passes(model, "auto", ask=stop)
    assert model.passes.said == "eager"
    assert model.passes.asked is None


def test_lacking_memory_is_tried_again_in_the_next_run():
    tapes = Tapes(Full)
    model = tiny_llama()
    passes = Passes("graphs", recorder=tapes)
    with passes.kept():
        session = Session(FixedReader(model, passes), 64)
        session.prepare(5)
        assert passes.said == "eager: no memory for its graphs"
        logits = session.read([1, 2, 3], rows=1).logits
        assert torch.equal(logits, model.open(64).read([1, 2, 3], rows=1).logits)
    assert passes.said == "captured graphs"


def test_what_others_had_taken_memory_from_is_proved_again(card, monkeypatch):
    card(Full)
    model = tiny_llama()
    choose_passes(model, "auto")
    assert model.passes.said == "eager: no memory for its graphs"
    card(Tape)
    choose_passes(model, "auto")
    assert model.passes.said == "captured graphs"


def test_rooms_that_no_one_is_in_go_where_memory_is_short():
    tapes, model = Tapes(Full), tiny_llama()
    passes = Passes("graphs", recorder=tapes)
    with passes.kept():
        first, second = (Session(FixedReader(model, passes), 64) for _ in range(2))
        first.prepare(1)
        free = weakref.ref(first._cache.room)
        del first
        assert free() is not None
        second.prepare(5)
        assert passes.mode == "eager"
        assert free() is None


def test_rooms_that_are_left_after_memory_was_short_go_too():
    passes = Passes("graphs", recorder=Tapes())
    model = tiny_llama()
    with passes.kept():
        session = Session(FixedReader(model, passes), 64)
        session.prepare(1)
        room = weakref.ref(session._cache.room)
        passes.fall_back("no memory", for_now=True)
        del session
        assert room() is None
        with passes.kept():
            assert passes.said == "captured graphs"  # what was lacking is tried again
            session = Session(FixedReader(model, passes), 64)
            room = weakref.ref(session._cache.room)
            del session
            assert room() is not None
    assert room() is None


def test_a_room_that_let_go_of_its_recordings_serves_no_other_session():
    tapes, model = Tapes(Full), tiny_llama()
    passes = Passes("graphs", recorder=tapes)
    with passes.kept():
        session = Session(FixedReader(model, passes), 64)
        session.prepare(5)  # the third graph finds no memory
        forgotten = session._cache.room
        assert forgotten.is_forgotten
    with passes.kept():  # what was lacking is tried again, while that session is still open
        before = tapes.replayed
        session.read([1, 2, 3], rows=1)
        session.read([1, 2, 3, 4], rows=1)
        assert tapes.replayed == before
        assert not forgotten.holds(forgotten.shape(1, 4, None))
        del session
        other = Session(FixedReader(model, passes), 64)
        assert other._cache.room is not forgotten
        other.prepare(1)
        other.read([1, 2, 3], rows=1)
        other.read([1, 2, 3, 4], rows=1)
        assert tapes.replayed > before


def test_rooms_beside_the_models_own_go_with_them():
    passes, beside = Passes("graphs", recorder=Tapes()), Rooms()
    passes.beside(beside)
    with passes.kept(), beside.kept():
        session = Session(FixedReader(tiny_llama(), passes), 64)
        beside._take_back(session._cache.room)
        assert len(beside._free) == 1
        passes.fall_back("no memory", for_now=True)
        assert beside._free == []


@pytest.mark.parametrize(("full", "again"), [(True, True), (False, False)])
def test_a_chain_that_lacked_memory_is_tried_again_in_the_next_session(full, again):
    class Short(Tape):
        fails = False

        def record(self, run):
            if Short.fails:
                raise torch.OutOfMemoryError if full else RuntimeError("not permitted")
            return super().record(run)

    def prepare():
        session = Session(FixedReader(model, passes), 64)
        session.prepare(2)
        Short.fails = len(said) == 0
        session.prepare_chain([3], how, behind=0, advance=lambda done, total: None)
        Short.fails = False
        said.append("chains one by one" in passes.said)

    model, passes, said = tiny_llama(), Passes("graphs", recorder=Tapes(Short)), []
    how = DraftPicking(Sampling(), model.width, model.width)
    with passes.kept():
        prepare()
        with passes.kept():
            prepare()
    assert said == [True, not again]


def test_what_was_lacking_outside_of_runs_is_tried_again_in_the_next():
    passes = Passes("graphs", recorder=Tapes())
    passes.fall_back("no memory", for_now=True)
    passes.note("chains one by one")
    assert passes.said == "eager: no memory"
    with passes.kept():
        assert passes.said == "captured graphs"


def test_a_pass_that_was_not_recorded_beforehand_is_read_eagerly():
    tapes = Tapes()
    passes = Passes("graphs", recorder=tapes)
    model = tiny_llama()
    session, eager = Session(FixedReader(model, passes), 400), model.open(400)
    text = [3 * place % 64 for place in range(250)]
    session.prepare(2, behind=300)  # of more than 256 keys only
    for one in (session, eager):
        one.read(text, rows=1)
        one.read([*text, 5], rows=1)
    assert (tapes.recorded, tapes.replayed) == (2, 0)
    assert session.held == eager.held == 251
    grown = [*text, *range(20)]
    mine, theirs = (one.read(grown, rows=16).logits for one in (session, eager))
    mine, theirs = (one.read([*grown, 7], rows=1).logits for one in (session, eager))
    assert tapes.replayed == 1
    assert torch.allclose(mine, theirs, atol=2e-3)
