"""Which shapes there are, and that none of them reaches behind the memory."""

import pytest

from app.library.memory import placed_room
from app.models.fixed.shapes import (
    LARGEST,
    WIDTHS,
    exact_keys,
    is_prompt,
    keys_between,
    keys_of,
    width_of,
    widths_up_to,
)


def test_a_pass_is_padded_to_the_next_power_of_two():
    assert [width_of(rows) for rows in (1, 2, 3, 4, 5, 8, 9, 33, 64)] == [
        *(1, 2, 4, 4, 8, 8, 16, 64, 64)
    ]
    assert widths_up_to(5) == (1, 2, 4, 8)
    assert widths_up_to(1) == (1,)
    assert widths_up_to(999) == WIDTHS


def test_no_padded_row_lies_behind_the_memory():
    for capacity in (1, 5, 31, 32, 33, 64, 200, 257):
        room = placed_room(capacity)
        for rows in range(1, min(capacity, LARGEST) + 1):
            end = capacity - rows + width_of(rows)
            assert end <= keys_of(end, room) <= room, (capacity, rows)


@pytest.mark.parametrize(("end", "keys"), [(1, 256), (256, 256), (257, 512), (1025, 1600)])
def test_keys_double_up_to_the_memory(end, keys):
    assert keys_of(end, 1600) == keys


def test_a_text_meets_these_numbers_of_keys_as_it_grows():
    met = {keys_of(end, 1600) for end in range(200, 1591)}
    assert set(keys_between(200, 1590, 1600)) == met
    assert keys_between(300, 400, 4096) == (512,)
    assert keys_between(5, 90, 128) == (128,)


def test_keys_that_have_a_price_are_hardly_padded():
    assert [exact_keys(end, 1600) for end in (1, 16, 17, 250)] == [16, 16, 32, 256]
    assert exact_keys(1599, 1600) == 1600


def test_few_rows_of_many_are_wanted_of_a_prompt():
    assert is_prompt(40, 1)
    assert not is_prompt(5, 5)
    assert not is_prompt(3, 1)  # a draft that reads what was written without it
