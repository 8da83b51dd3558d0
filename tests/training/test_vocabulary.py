"""Which tokens a head can guess."""

import torch

from app.training.texts import text_of
from app.training.vocabulary import choose_vocabulary, places


def text(prompt, written):
    ids = [*prompt, *written]
    return text_of(ids, [], torch.zeros(len(ids), 2), prompt=len(prompt))


def test_the_most_frequent_of_what_was_written_and_the_ends():
    texts = [text([9, 9, 9, 9], [5, 5, 3, 3, 2]), text([9], [5, 7, 1])]
    found = choose_vocabulary(texts, 4, width=12, end_ids=[11])
    # 5 thrice, 3 twice; 1, 2 and 7 once each, of which 1 is the lowest; 9 was only asked.
    assert found.ids.tolist() == [1, 3, 5, 11]
    assert found.coverage == 6 / 8


def test_all_tokens_where_a_target_has_no_more():
    found = choose_vocabulary([text([1], [2, 3])], 100, width=6, end_ids=[0])
    assert found.ids.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.coverage == 1.0


def test_places():
    assert places(torch.tensor([1, 3]), 5).tolist() == [-1, 0, -1, 1, -1]
