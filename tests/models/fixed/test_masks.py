"""What each row of a pass of fixed shape may see, beside the definition, key by key."""

import random

import pytest
import torch

from app.models.block import Block
from app.models.fixed.fixed_pass import FixedMasks, PassRows
from app.models.fixed.passes import Passes
from app.models.fixed.reader import FixedReader
from toys import tiny_llama


@pytest.fixture(scope="module")
def model():
    return tiny_llama()


def masks_of(rows: PassRows, *, keys: int, whole: bool = False) -> FixedMasks:
    positions, places = rows.start + rows.offsets, rows.start + rows.steps
    return FixedMasks(rows, positions, places, keys=keys, whole=whole)


def above(parents: list[int], place: int) -> list[int]:
    """A guess and those that it stands behind."""
    path = []
    while place >= 0:
        path.append(place)
        place = parents[place]
    return path


def seen(start: int, ids: int, parents: list[int], row: int, window: int | None) -> set[int]:
    """The places that a row sees: the text, and of the guesses, the last of the ids, its own path,
    as far as their positions lie within the window.
    """
    text = start + ids - len(parents)
    position = {place: place for place in range(text)}
    position |= {text + n: text + len(above(parents, n)) - 1 for n in range(len(parents))}
    place = start + row
    path = set(range(min(place + 1, text)))
    if place >= text:
        path |= {text + n for n in above(parents, place - text)}
    return {other for other in path if window is None or position[other] > position[place] - window}


@pytest.mark.parametrize("window", [None, 1, 3, 6])
@pytest.mark.parametrize("seed", range(12))
def test_rows_see_the_text_and_their_own_path_within_the_window(seed, window):
    chance = random.Random(seed)
    rows = PassRows(6, torch.device("cpu"), torch.float16)
    for _ in range(8):  # one after the other in the same rows, chains and trees
        start, fed = chance.randrange(12), chance.randrange(1, 7)
        guesses = chance.randrange(fed + 1)
        branching = bool(guesses) and chance.random() < 0.5
        parents = list(range(-1, guesses - 1))
        if branching:
            parents = [chance.randrange(-1, n) if n else -1 for n in range(guesses)]
        block = Block()
        if branching:
            block.branch(torch.zeros(guesses), torch.tensor(parents), levels=guesses)
        rows.load(torch.zeros(fed, dtype=torch.long), start, block.tree)
        keys = start + 6 + chance.randrange(5)
        mask = masks_of(rows, keys=keys).of(window)
        assert mask is not None
        assert mask.shape == (6, keys)
        assert mask.dtype == torch.float16
        for row in range(fed):
            shown = {place for place in range(keys) if mask[row, place] == 0}
            assert shown == seen(start, fed, parents, row, window), (start, fed, parents, row)
        assert bool((mask == 0).any(dim=1).all())  # no row without a key, padded ones included
        assert set(mask.flatten().tolist()) <= {0.0, float("-inf")}


def test_a_row_behind_all_keys_needs_no_mask_unless_its_window_ends_before_them():
    rows = PassRows(1, torch.device("cpu"), torch.float16)
    rows.load(torch.tensor([3]), 9)
    whole = masks_of(rows, keys=10, whole=True)
    assert whole.of(None) is None
    assert whole.of(10) is None
    mask = whole.of(9)
    assert mask is not None
    assert (mask[0] == 0).tolist() == [False] + [True] * 9
    padded = masks_of(rows, keys=16).of(None)
    assert padded is not None
    assert (padded[0] == 0).tolist() == [True] * 10 + [False] * 6


@pytest.mark.parametrize(("step", "expected"), [(1, [(3, 13), (1, 1)]), (16, [(3, 16), (1, 16)])])
def test_passes_that_are_not_recorded_are_padded_to_the_keys_that_the_model_counts_in_only(
    model, monkeypatch, step, expected
):
    monkeypatch.setattr(type(model), "key_step", step)
    room = FixedReader(model, Passes("fixed")).new_cache(100).room
    found = [room.shape(fed, start, None)[:2] for fed, start in ((3, 10), (1, 0))]
    assert found == expected
