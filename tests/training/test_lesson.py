"""What a lesson counts, beside a plain computation; and that it is aligned with the target."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from app.models.rotary_table import RotaryTable
from app.training.batches import batch_of
from app.training.beginning import begin_head
from app.training.judging import acceptance
from app.training.learner import Learner
from app.training.lesson import Teacher, weighted
from app.training.unrolled import unrolled
from lessons import random_texts, target

FP32 = torch.float32


@torch.no_grad()
def test_losses_are_of_the_places_that_count():
    model = target()
    texts = random_texts(model, 5)
    vocabulary = torch.arange(0, 64, 2)
    head = begin_head(model.inner, 32, texts)
    found = Teacher(model.inner, vocabulary, dtype=FP32).losses(head, batch_of(texts))
    rows = model.inner.lm_head.weight[vocabulary]
    rotary = RotaryTable(model.inner.model.rotary_emb)
    due, counted = torch.zeros(3), 0
    for text in texts:
        embeddings = model.inner.model.embed_tokens(text.ids.long())[None]
        steps = list(unrolled(head, rotary, embeddings, text.features[None], depth=3))
        for place in range(3, len(text)):
            best = int(text.best[place])
            if best < 0 or best % 2:  # within a prompt, or not in the vocabulary
                continue
            counted += 1
            law = (text.features[place] @ rows.T).softmax(-1)
            for step in (1, 2, 3):
                due[step - 1] += cross_entropy(steps[step - 1][0, place - step] @ rows.T, law)
    assert counted > 10
    assert (found - due / counted).abs().max() < 1e-5
    assert float(weighted(found)) == pytest.approx(
        float(found[0] + 0.8 * found[1] + 0.64 * found[2])
    )


def echoing(model):
    """A target whose feature is the embedding, turned by one place of a ring of 16 directions."""
    inner = model.inner
    size = inner.config.hidden_size
    with torch.no_grad():
        inner.model.embed_tokens.weight.zero_()
        inner.lm_head.weight.zero_()
        for token in range(16):
            inner.model.embed_tokens.weight[token, token] = 8.0
            inner.lm_head.weight[(token + 1) % 16, token] = 8.0
    assert size >= 16
    return model


def copying(head):
    """A head that answers the embedding that it is fed: of t + 1, whose feature is wanted."""
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        size = head.shape.hidden
        head.fc.weight[:, :size] = torch.eye(size)
        for norm in (head.input_norm, head.between_norm, head.norm):
            norm.weight.fill_(1.0)
    return head


@torch.no_grad()
def test_labels_are_of_the_token_that_a_draft_has_to_guess():
    model = echoing(target(vocabulary=16))
    for layer in model.inner.model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    texts = random_texts(model, 4, tokens=12)
    assert texts[0].ids[-3:].diff().remainder(16).tolist() == [1, 1]  # it counts, round and round
    head = copying(begin_head(model.inner, 16, texts))
    teacher = Teacher(model.inner, torch.arange(16), dtype=FP32)
    losses = teacher.losses(head, batch_of(texts))
    assert losses.max() < 1e-3, "the head that knows the answer has nothing to learn"
    assert acceptance(teacher, head, [batch_of(texts)]) == (1.0, 1.0, 1.0, 1.0)
    wrong = Teacher(model.inner, torch.arange(15), dtype=FP32)
    head = copying(begin_head(model.inner, 15, texts))
    assert acceptance(wrong, head, [batch_of(texts)])[0] < 1.0  # it cannot say 15


def test_the_beginning_is_better_than_chance():
    model = target()
    texts = random_texts(model, 300, longest=40)
    head = begin_head(model.inner, 64, texts[:250])
    teacher = Teacher(model.inner, torch.arange(64), dtype=FP32)
    losses = teacher.losses(head, batch_of(texts[250:]))
    assert losses[0] < torch.tensor(64.0).log()


def test_lessons_make_it_better():
    model = target()
    texts = random_texts(model, 40)
    teacher = Teacher(model.inner, torch.arange(64), dtype=FP32)
    learner = Learner(begin_head(model.inner, 64, texts))
    batch = batch_of(texts)
    known = (batch.best >= 0) & (torch.arange(batch.ids.shape[1]) >= 3)
    law = teacher.logits(batch.features[known]).softmax(-1)
    least = float(-(law * law.log()).sum(-1).mean())
    losses = []
    for number in range(60):
        loss = teacher.losses(learner.head, batch)
        losses.append(float(loss.detach()[0]) - least)
        learner.step(weighted(loss), rate=1e-2, number=number)
    assert 0 < losses[-1] < 0.5 * losses[0]
