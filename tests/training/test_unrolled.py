"""The unrolled head beside one that drafts from each place in turn, with a list of keys."""

import msgspec
import pytest
import torch

from app.models.draft_head import DraftHead, shape_for
from app.models.rotary_table import RotaryTable
from app.training.batches import batch_of
from app.training.beginning import begin_head
from app.training.unrolled import unrolled
from lessons import drafted, random_texts, target


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@torch.no_grad()
def test_every_place_is_as_a_draft_of_its_own(kind):
    model = target(num_key_value_heads=2)
    inner, texts = model.inner, random_texts(model, 3, longest=20)
    head = begin_head(inner, 16, texts)
    if kind == "qwen3":  # norms of queries and keys
        shape = shape_for(inner, 16)
        head = DraftHead(msgspec.structs.replace(shape, normed=True, biased=True))
    torch.manual_seed(1)
    for parameter in head.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    batch = batch_of(texts)
    embeddings = inner.model.embed_tokens(batch.ids)
    rotary = RotaryTable(inner.model.rotary_emb)
    steps = list(unrolled(head, rotary, embeddings, batch.features, depth=4))
    tried = 0
    for row, text in enumerate(texts):
        for start in range(len(text) - 4):
            due = drafted(head, inner, embeddings[row], text.features, start, depth=4)
            for mine, theirs in zip(steps, due, strict=True):
                assert (mine[row, start] - theirs).abs().max() < 1e-5
            tried += 1
    assert tried > 10


@torch.no_grad()
def test_what_comes_later_changes_nothing():
    model = target()
    (text,) = random_texts(model, 1, longest=20)
    head = begin_head(model.inner, 16, [text])
    batch = batch_of([text])
    embeddings = model.inner.model.embed_tokens(batch.ids)
    rotary = RotaryTable(model.inner.model.rotary_emb)
    before = list(unrolled(head, rotary, embeddings, batch.features, depth=3))
    place = 3
    embeddings[:, place + 4 :] = 7.0
    batch.features[:, place + 1 :] = -7.0
    after = list(unrolled(head, rotary, embeddings, batch.features, depth=3))
    for one, other in zip(before, after, strict=True):
        assert torch.equal(one[:, : place + 1], other[:, : place + 1])


@torch.no_grad()
def test_texts_of_a_batch_do_not_touch_each_other():
    model = target()
    texts = random_texts(model, 4)
    head = begin_head(model.inner, 16, texts)
    rotary = RotaryTable(model.inner.model.rotary_emb)

    def predicted(some):
        batch = batch_of(some)
        embeddings = model.inner.model.embed_tokens(batch.ids)
        return list(unrolled(head, rotary, embeddings, batch.features, depth=3))

    together = predicted(texts)
    for row, text in enumerate(texts):
        for step, (one, other) in enumerate(zip(predicted([text]), together, strict=True), 1):
            known = len(text) - step
            assert (one[0, :known] - other[row, :known]).abs().max() < 1e-5
