"""Which shapes there are, and that none of them reaches behind the memory."""

import pytest

from app.library.fixed_memory import placed_room
from app.models.fixed.shapes import (
    LARGEST,
    WIDTHS,
    is_prompt,
    keys_between,
    keys_of,
    least_rows,
    width_of,
    widths_up_to,
)


def test_few_rows_are_not_padded_and_many_to_the_next_width():
    assert [width_of(rows) for rows in range(1, 9)] == list(range(1, 9))
    assert [width_of(rows) for rows in (9, 12, 13, 17, 25, 33, 49, 64)] == [
        *(12, 12, 16, 24, 32, 48, 64, 64)
    ]
    assert widths_up_to(5) == (1, 2, 3, 4, 5)
    assert widths_up_to(9) == (1, 2, 3, 4, 5, 6, 7, 8, 12)
    assert widths_up_to(1) == (1,)
    assert widths_up_to(999) == WIDTHS


def test_the_fewest_rows_of_a_width_are_padded_to_it_and_one_fewer_is_not():
    for width in WIDTHS:
        least = least_rows(width)
        assert width_of(least) == width
        assert least == 1 or width_of(least - 1) < width


def test_no_padded_row_lies_behind_the_memory():
    for capacity in (1, 5, 31, 32, 33, 64, 200, 257):
        room = placed_room(capacity)
        for rows in range(1, min(capacity, LARGEST) + 1):
            end = capacity - rows + width_of(rows)
            assert end <= keys_of(end, room) <= room, (capacity, rows)


@pytest.mark.parametrize(
    ("end", "keys"),
    [
        *((1, 256), (256, 256), (257, 512), (513, 1024), (1024, 1024), (1025, 1536)),
        *((1536, 1536), (1537, 2048), (2049, 3072), (3073, 4096), (4097, 5056)),
    ],
)
def test_keys_double_up_to_1024_then_rise_by_half_steps_up_to_the_memory(end, keys):
    assert keys_of(end, 5056) == keys


def test_a_text_meets_these_numbers_of_keys_as_it_grows():
    met = {keys_of(end, 1600) for end in range(200, 1591)}
    assert set(keys_between(200, 1590, 1600)) == met
    assert keys_between(300, 400, 4096) == (512,)
    assert keys_between(5, 90, 128) == (128,)


def test_few_rows_of_many_are_wanted_of_a_prompt():
    assert is_prompt(40, 1)
    assert not is_prompt(5, 5)
    assert not is_prompt(3, 1)  # a draft that reads what was written without it
