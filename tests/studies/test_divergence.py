"""Near ties are not faults, and faults are not near ties."""

import msgspec
import pytest
import torch
from recorded import started

from app.decoding.contracts import Draft
from app.models.block import Block
from app.run.events import At, LaneStarted
from app.run.figures import agreement
from app.run.record import RunRecord
from app.studies.divergence import find_divergence
from toys import Guesses, ScriptedLM, make_lane, next_is, run, sessions


class WidthDependent(ScriptedLM):
    """A24: two ids nearly tie at one token, and which is ahead depends on the width."""

    def forward(self, ids, cache, rows, tree=None):
        logits = super().forward(ids, cache, rows, tree)
        first = len(cache.ids) - rows
        for row in range(rows):
            if first + row + 1 == 8:
                logits[row, 40], logits[row, 41] = 20.0, 20.0 + (5e-4 if len(ids) > 1 else -5e-4)
        return logits


def counting(prefix):
    return (prefix[-1] + 1) % 60


def record_of(fast, slow, prompt):
    record = RunRecord.begin(msgspec.structs.replace(started(), prompt_ids=tuple(prompt)))
    for lane, repetition in (("speculative", fast), ("baseline", slow)):
        record.apply(LaneStarted(At(record.run, lane)))
        found = record.repetitions(lane)[0]
        for name in repetition.__struct_fields__:
            if name != "at":
                setattr(found, name, getattr(repetition, name))
    return record


def lanes(model, reader=None):
    prompt = [10]
    right = Guesses(lambda text, r: [text[-1] + 1 + i for i in range(4)])
    fast = run(make_lane(prompt, proposer=right, max_new_tokens=12), (reader or sessions)(model))
    slow = run(make_lane(prompt, max_new_tokens=12), sessions(model))
    return record_of(fast, slow, prompt)


def test_a_near_tie_is_told_as_one():
    model = WidthDependent(next_is(counting))
    record = lanes(model)
    found = find_divergence(model, record)
    assert found.index == 7
    assert (found.speculative.id, found.baseline.id) == (41, 40)
    assert found.gap == pytest.approx(5e-4, rel=0.01)
    assert found.moved == pytest.approx(1e-3, rel=0.01)
    assert found.tie
    record.apply(found)
    assert "token 8: a numerical tie" in agreement(record)


class HistoryDependent(ScriptedLM):
    """Two ids nearly tie, and which is ahead depends on the widths in which the text was read."""

    def forward(self, ids, cache, rows, tree=None):
        passes = cache.__dict__.setdefault("passes", 0)
        cache.passes = passes + (len(ids) > 0)
        logits = super().forward(ids, cache, rows, tree)
        first = len(cache.ids) - rows
        for row in range(rows):
            if first + row + 1 == 10:
                ahead = 0.2 if cache.passes > 3 else -0.2
                logits[row, 40], logits[row, 41] = 20.0, 20.0 + ahead
        return logits


def test_a_tie_that_only_the_widths_of_the_text_before_explain_is_told_as_one():
    # int8: a last bit of an activation that was rounded the other way moves what is read later.
    model = HistoryDependent(next_is(counting))
    record = lanes(model)
    found = find_divergence(model, record)
    assert found.index == 9
    assert found.tie


class FormDependent(ScriptedLM):
    """Two ids nearly tie, and which is ahead depends on whether they were read in a tree."""

    def forward(self, ids, cache, rows, tree=None):
        logits = super().forward(ids, cache, rows, tree)
        for row in logits:
            if row.argmax() == 40:
                row[40], row[41] = 20.0, 20.0 + (-5e-4 if tree is None else 5e-4)
        return logits


class Branches:
    """A proposer of trees: a wrong guess and then the right one, at each of three places."""

    def propose(self, text, *, limit, round_):
        levels = min(limit, 3)
        block = Block()
        for level in range(levels):
            wrong_and_right = torch.tensor([5, (text[-1] + 1 + level) % 60])
            block.branch(wrong_and_right, torch.tensor([2 * level - 1] * 2), levels=levels)
        return Draft(block, source="guesses")
        yield


@pytest.mark.parametrize("start", range(31, 39))
def test_a_tie_that_only_the_form_of_a_tree_explains_is_told_as_one(start):
    model = FormDependent(next_is(counting))
    fast = run(make_lane([start], proposer=Branches(), max_new_tokens=12), sessions(model))
    slow = run(make_lane([start], max_new_tokens=12), sessions(model))
    record = record_of(fast, slow, [start])
    found = find_divergence(model, record)
    assert (found.speculative.id, found.baseline.id) == (41, 40)
    assert found.width == 7
    assert found.tie


def test_a_fault_in_a_tree_is_told_as_one():
    # The rows of a tree see their neighbours' branches: no rounding explains that.
    model = ScriptedLM(next_is(counting))
    forward = model.forward

    def unmasked(ids, cache, rows, tree=None):
        logits = forward(ids, cache, rows, tree)
        return logits.roll(1, 0) if tree is not None else logits

    lane = make_lane([10], proposer=Branches(), max_new_tokens=12)
    model.forward = unmasked
    fast = run(lane, sessions(model))
    model.forward = forward
    slow = run(make_lane([10], max_new_tokens=12), sessions(model))
    assert not find_divergence(model, record_of(fast, slow, [10])).tie


def test_a_fault_is_told_as_one():
    # The rows of a pass are read one off: no rounding explains that.
    model = ScriptedLM(next_is(counting))

    def shifted(target):
        reader = sessions(target)
        answer = reader.answer

        def off_by_one(request):
            reading = answer(request)
            if getattr(request, "rows", 0) > 1:
                reading.logits = reading.logits.roll(1, 0)
            return reading

        reader.answer = off_by_one
        return reader

    record = lanes(model, shifted)
    found = find_divergence(model, record)
    assert not found.tie
    assert abs(found.gap) > 10
    record.apply(found)
    assert "MISMATCH" in agreement(record)


def test_equal_texts_have_nothing_to_judge():
    model = ScriptedLM(next_is(counting))
    assert find_divergence(model, lanes(model)) is None
