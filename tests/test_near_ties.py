"""Texts that rounding may tell apart are told from those that it may not."""

import pytest
import torch
from near_ties import fault

from app.models.session import Session
from toys import tiny_llama

PROMPT = [3, 1, 4, 1, 5]


def greedy(model, count):
    """The model's own text, and the logits that each of its tokens was chosen by."""
    text, rows = list(PROMPT), []
    for _ in range(count):
        rows.append(Session(model, 64).read(text, rows=1).logits[-1])
        text.append(int(rows[-1].argmax()))
    return text[len(PROMPT) :], rows


@pytest.fixture(scope="module")
def model():
    return tiny_llama(3)


def test_the_same_text_is_no_fault(model):
    text, _ = greedy(model, 6)
    assert fault(model, PROMPT, text, list(text), width=5) == ""


@pytest.mark.parametrize("place", [0, 5])
def test_another_token_is_a_fault_where_logits_are_apart(model, place):
    text, rows = greedy(model, 6)
    first, second = rows[place].topk(2).indices.tolist()
    assert text[place] == first
    other = [*text[:place], second, *[0] * (5 - place)]
    assert f"tokens ({first}, {second}) at {place}" in fault(model, PROMPT, text, other, width=5)
    assert fault(model, PROMPT, other, text, width=5)


def test_a_text_that_is_shorter_is_a_fault(model):
    text, _ = greedy(model, 6)
    assert fault(model, PROMPT, text, text[:5], width=5)


@pytest.mark.parametrize(("apart", "near"), [(0.0, True), (1e-6, True), (0.02, False)])
def test_a_tie_is_none_within_rounding(apart, near):
    model = tiny_llama(3)
    text, rows = greedy(model, 4)
    top = float(rows[3].max())
    # A token that no text has yet gets the logits of the last one, but for a share of them.
    twin = next(token for token in range(64) if token not in [*PROMPT, *text])
    with torch.no_grad():
        table = model.inner.lm_head.weight
        table[twin] = table[text[3]] * (1.0 - apart)
    assert abs(top) > 1.0
    found = fault(model, PROMPT, text, [*text[:3], twin], width=5)
    assert (found == "") is near


def test_what_rounds_by_width_may_decide_more(model):
    coarse = tiny_llama(3)
    coarse.inner.to(torch.bfloat16)
    text, rows = greedy(coarse, 6)
    close = [float(row.topk(2).values.diff().abs()) / float(row.abs().max()) for row in rows]
    wide = max(range(6), key=lambda place: close[place])
    second = int(rows[wide].topk(2).indices[1])
    assert fault(coarse, PROMPT, text, [*text[:wide], second, *text[wide + 1 :]], width=5)
