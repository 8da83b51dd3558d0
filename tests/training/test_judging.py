"""Judging beside drafts that are really made, one after the other."""

import pytest
import torch

from app.training.batches import batch_of
from app.training.beginning import begin_head
from app.training.judging import acceptance, kept_guesses
from app.training.lesson import Teacher
from lessons import drafted, random_texts, target


@torch.no_grad()
def test_shares_are_those_of_greedy_drafts_from_every_place():
    model = target()
    texts = random_texts(model, 6, longest=24, tokens=12)
    vocabulary = torch.tensor([one for one in range(64) if one % 7])
    head = begin_head(model.inner, len(vocabulary), texts)
    rows = model.inner.lm_head.weight[vocabulary]
    embed = model.inner.model.embed_tokens
    kept, tried = [0] * 4, [0] * 4
    for text in texts:
        for start in range(text.prompt - 1, len(text) - 1):
            fed = text.ids[: start + 2].tolist()  # known when a draft begins
            for depth in range(1, 5):
                place = start + depth
                if place >= len(text):
                    break
                tried[depth - 1] += 1
                feature = drafted(
                    head, model.inner, embed(torch.tensor(fed)), text.features, start, depth=depth
                )[-1]
                guess = int(vocabulary[(rows @ feature).argmax()])
                if guess != int(text.best[place]):
                    break
                kept[depth - 1] += 1
                fed.append(guess)
    teacher = Teacher(model.inner, vocabulary, dtype=torch.float32)
    found = acceptance(teacher, head, [batch_of(texts[:3]), batch_of(texts[3:])])
    assert sum(kept) > 5
    assert tried[1] > 5
    assert found == pytest.approx([a / max(b, 1) for a, b in zip(kept, tried, strict=True)])


def test_guesses_kept_of_a_draft():
    assert kept_guesses((0.5, 0.5, 1.0)) == pytest.approx(0.5 + 0.25 + 0.25)
