"""Attention beside its definition: scores, softmax, sums, head by head in fp64."""

import pytest
import torch
from card_stand_in import CARD, Card, OnCard

from app.models import attention
from app.models.attention import attend
from tests.benchmarks.attention import in_parts, inputs

SHARED, SIZE, SCALE = 2, 8, 0.3


def by_definition(query, keys, values, mask):
    rows, heads, _ = query.shape
    found = torch.empty(rows, heads, SIZE, dtype=torch.float64)
    for head in range(heads):
        held = head // (heads // SHARED)
        scores = SCALE * query[:, head].double() @ keys[0, held].double().T
        if mask is not None:
            scores = scores + mask.double()
        found[:, head] = torch.softmax(scores, dim=-1) @ values[0, held].double()
    return found.reshape(rows, -1)


def given(rows, heads, *, length, masked):
    numbers = torch.Generator().manual_seed(rows + heads)
    query = torch.randn(rows, heads, SIZE, generator=numbers)
    keys, values = (torch.randn(1, SHARED, length, SIZE, generator=numbers) for _ in range(2))
    mask = None
    if masked:
        mask = torch.zeros(rows, length).masked_fill_(
            torch.arange(length)[None] > torch.arange(length - rows, length)[:, None], -torch.inf
        )
    return query, keys, values, mask


@pytest.mark.parametrize("heads", [2, 6])
@pytest.mark.parametrize(("rows", "masked"), [(1, False), (1, True), (5, True), (90, True)])
def test_few_rows_and_many_gather_what_the_definition_says(rows, masked, heads):
    query, keys, values, mask = given(rows, heads, length=100, masked=masked)
    found = attend(query, keys, values, mask=mask, scale=SCALE)
    assert torch.allclose(found.double(), by_definition(query, keys, values, mask), atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_on_a_card_many_rows_never_ask_for_a_mask_and_shared_keys_at_once(monkeypatch, masked):
    asked = []
    right = attention.functional.scaled_dot_product_attention

    def noted(query, keys, values, *, attn_mask, **told):
        shared = keys.shape[1] < query.shape[1]
        asked.append((attn_mask is not None, shared))
        return right(query, keys, values, attn_mask=attn_mask, **told)

    monkeypatch.setattr(attention.functional, "scaled_dot_product_attention", noted)
    query, keys, values, mask = given(90, 6, length=100, masked=masked)
    with Card():
        on_card = [None if one is None else OnCard(one) for one in (query, keys, values, mask)]
        assert on_card[0].device == CARD
        found = attend(*on_card[:3], mask=on_card[3], scale=SCALE).held
    assert asked == [(masked, not masked)]
    assert torch.allclose(found.double(), by_definition(query, keys, values, mask), atol=1e-5)


def test_attention_that_is_planned_anew_for_each_shape_is_not_taken():
    assert not torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("length", [256, 1024, 4096])  # of these parts, a fourth is hidden whole
def test_keys_summed_over_in_parts_give_the_same(rows, length):
    shape = {"heads": 6, "shared": SHARED, "size": SIZE}
    query, keys, values, mask = inputs(rows, length, **shape, device=torch.device("cpu"))
    due = attend(query, keys, values, mask=mask, scale=SIZE**-0.5)
    assert torch.allclose(in_parts(query, keys, values, mask), due, atol=1e-5)
