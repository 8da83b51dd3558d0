"""Turns of a conversation: what is carried over, that it is told, and that it changes nothing."""

from itertools import pairwise

import msgspec
import pytest
import torch
from talking import bench, pair, talked

from app.models.fixed.passes import Passes
from app.models.session import Session
from app.run.events import At, LaneStarted
from app.run.record import RunRecord
from app.run.settings import Message, RunSettings, Sampling
from app.studies.conversation import Conversation, Room
from tapes import Tape, Tapes

TURNS = ("Count: 1 2 3", "And on?", "And then?")


def shared(one, other):
    """The common start of two texts of ids, by definition."""
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


@pytest.mark.parametrize(
    "method", ["ngram", "suffix", "draft-model", "head", "head-tree", "ngram-else-head"]
)
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_carried_session_writes_what_a_fresh_one_writes(method, temperature):
    settings = RunSettings(
        pair="toy",
        prompt="",
        method=method,
        method_options={"cached": 0} if method == "suffix" else {},
        max_new_tokens=12,
        repetitions=2,
        sampling=Sampling(temperature=temperature, seed=3),
    )
    carried = talked(TURNS, settings, conversation=Conversation(TURNS))
    fresh = talked(TURNS, settings, conversation=None)
    assert len(carried) == len(fresh) == 3
    for one, other in zip(carried, fresh, strict=True):
        assert one.prompt_ids == other.prompt_ids
        for lane in ("speculative", "baseline"):
            texts = [[each.token_ids for each in run.repetitions(lane)] for run in (one, other)]
            assert texts[0] == texts[1]
            assert all(each.prompt_reused == 0 for each in other.repetitions(lane))


def test_what_is_reused_is_what_both_texts_begin_with():
    settings = RunSettings(pair="toy", prompt="", max_new_tokens=12, repetitions=2)
    records = talked(TURNS, settings, conversation=Conversation(TURNS))
    for lane in ("speculative", "baseline"):
        assert [one.prompt_reused for one in records[0].repetitions(lane)] == [0, 0]
    for before, after in pairwise(records):
        for lane in ("speculative", "baseline"):
            last = before.repetitions(lane)[-1]
            # The last token of a text was never read, nor what is behind an accepted end of it.
            read = [*before.prompt_ids, *last.token_ids[:-1]]
            expected = shared(read, after.prompt_ids)
            assert expected > len(before.prompt_ids) - 1
            assert {one.prompt_reused for one in after.repetitions(lane)} == {expected}


def test_turns_are_told_and_read_their_past():
    records = talked(TURNS, RunSettings(pair="toy", prompt="", max_new_tokens=6))
    for turn, record in enumerate(records):
        assert {at.turn for at in record.order} == {turn}
        assert record.settings.turn == turn
        assert record.settings.prompt == TURNS[turn]
    said = [message.text for message in records[2].settings.earlier]
    first = records[0].repetitions("speculative")[0].text
    assert said[:3] == [TURNS[0], first, TURNS[1]]


def test_only_what_is_new_is_read():
    loaded, widths = pair(), []
    inner = loaded.target.model.inner
    inner.register_forward_pre_hook(
        lambda module, args, kwargs: widths.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    settings = RunSettings(
        pair="toy", prompt="", max_new_tokens=4, baseline=False, method="nothing"
    )
    conversation = Conversation(TURNS[:2])
    records = talked(TURNS[:2], settings, conversation=conversation, on=bench(loaded))
    new = len(records[1].prompt_ids) - records[1].repetitions("speculative")[0].prompt_reused
    assert new in widths
    assert len(records[1].prompt_ids) not in widths


def test_a_session_that_is_too_small_is_opened_anew():
    loaded, conversation = pair().target, Conversation(("a", "b"))
    ids = tuple(range(10))

    def opened(turn, room):
        at = At("r", "baseline", turn=turn)
        return conversation.session(
            at, "target", loaded.model.open, rewinds=True, ids=ids, room=room
        )

    first = opened(0, Room(12, 20))
    first.read(list(ids), rows=1)
    again = opened(1, Room(20, 20))
    assert again is first
    assert again.held == 9  # the last one says what follows it, and is read again
    assert opened(2, Room(21, 21)) is not first


def test_a_model_that_cannot_take_tokens_back_carries_nothing():
    on = bench(pair(rewinds=False))
    settings = RunSettings(pair="toy", prompt="", max_new_tokens=4)
    records = talked(TURNS[:2], settings, conversation=Conversation(TURNS[:2]), on=on)
    assert {one.prompt_reused for lane in records[1].lanes for one in lane.repetitions} == {0}


def test_another_text_is_compared_from_its_start():
    model = pair().target.model
    session, fresh = Session(model, 64), Session(model, 64)
    session.read([1, 2, 3, 4, 5, 6], rows=1)
    assert session.unread([1, 2, 9, 4, 5, 6, 7]) == 5
    assert session.held == 2
    text = [1, 2, 9, 4, 5, 6, 7]
    assert torch.allclose(
        session.read(text, rows=1).logits, fresh.read(text, rows=1).logits, atol=1e-5
    )


def test_an_older_event_has_reused_nothing():
    old = msgspec.json.decode(b'{"type":"LaneStarted","at":{"run":"r","lane":"baseline"}}',
                              type=LaneStarted)  # fmt: skip
    assert old.prompt_reused == 0


def test_a_message_is_what_one_side_said():
    assert msgspec.json.decode(b'{"role":"user","text":"a"}', type=Message) == Message("user", "a")
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"role":"judge","text":"a"}', type=Message)


class Short(Tape):
    """Records while there is memory."""

    full = False

    def record(self, run):
        if Short.full:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().record(run)


@pytest.mark.parametrize("short", [0, 1])
def test_turns_after_one_that_lacked_memory_are_all_replayed(monkeypatch, short):
    tapes, loaded = Tapes(Short), pair()
    for model in loaded.models:
        model.passes = Passes("graphs", recorder=tapes)
    on, conversation = bench(loaded), Conversation(TURNS)
    earlier, said, replayed = (), [], []
    for number, turn in enumerate(TURNS):
        monkeypatch.setattr(Short, "full", number == short)
        settings = RunSettings(
            "toy", turn, method="ngram", max_new_tokens=12, earlier=earlier,
            draft_length=2 if number == 0 else 5,
        )  # fmt: skip
        events, before = [], tapes.replayed
        on.run("r", settings, emit=events.append, report=lambda _: None, pause=lambda: None,
               conversation=conversation, costing=False)  # fmt: skip
        record = RunRecord.begin(events[0])
        for event in events:
            record.apply(event)
        assert texts_of(record) == texts_of(record, "baseline")
        said.append(record.target.passes)
        replayed.append(tapes.replayed - before)
        reads = [kept.session.model for kept in conversation._kept.values()]
        ways = {type(model) for model in reads}
        assert len(ways) == 1  # both lanes read alike
        reply = record.repetitions("speculative")[0].text
        earlier = (*earlier, Message("user", turn), Message("assistant", reply))
    eager = [way.startswith("eager") for way in said]
    assert eager == [number == short for number in range(3)]
    # One row a token of the baseline, and a pass a loop: each turn that can replays them all.
    assert all(count >= 12 for count, way in zip(replayed, eager, strict=True) if not way)
    rooms = [kept.session._cache.room for kept in conversation._kept.values()]
    assert not any(room.is_forgotten for room in rooms)


def texts_of(record, lane="speculative"):
    return [one.token_ids for one in record.repetitions(lane)]
