"""Texts laid side by side: nothing lost, nothing twice, the same for the same seed."""

import torch

from app.training.batches import batch_of, epoch, side_by_side
from app.training.texts import TextFolder, text_of


def text(number, length, prompt=2):
    """A text whose ids are its number."""
    best = list(range(length - prompt + 1))
    return text_of([number] * length, best, torch.full((length, 3), float(number)), prompt=prompt)


def test_a_batch_pads_behind_the_ends():
    batch = batch_of([text(5, 4), text(6, 2, prompt=1)])
    assert batch.ids.tolist() == [[5, 5, 5, 5], [6, 6, 0, 0]]
    assert batch.best.tolist() == [[-1, 0, 1, 2], [0, 1, -1, -1]]
    assert batch.features[..., 0].tolist() == [[5, 5, 5, 5], [6, 6, 0, 0]]
    assert batch.prompts.tolist() == [2, 1]
    assert batch.tokens == 3


def test_no_batch_has_more_tokens_than_it_may_but_for_a_text_that_alone_has_more():
    texts = [text(number, 3 + number * 7 % 20) for number in range(40)] + [text(99, 70)]
    divided = side_by_side(texts, 64)
    assert sorted(id(one) for some in divided for one in some) == sorted(map(id, texts))
    for some in divided:
        assert len(some) * max(map(len, some)) <= 64 or len(some) == 1
    assert len(divided) < 15


def test_an_epoch_holds_every_text_once_in_an_order_of_its_seed(tmp_path):
    folder = TextFolder(tmp_path)
    for shard in range(20):
        folder.add([text(10 * shard + one, 3 + one) for one in range(5)])

    def order(seed, skip=0):
        batches = epoch(folder, folder.shards, seed=seed, tokens=16, skip=skip)
        return [sorted(set(batch.ids.flatten().tolist()) - {0}) for batch in batches]

    once = order("a")
    assert sorted(one for some in once for one in some) == [
        number for shard in range(20) for number in range(10 * shard, 10 * shard + 5) if number
    ]
    assert order("a") == once != order("b")
    for skip in (1, 7, len(once)):
        assert order("a", skip) == once[skip:]
