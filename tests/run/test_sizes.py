"""Sizes in words: one way for every page, table and report."""

import pytest

from app.run.sizes import bytes_in_words


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 kB"),
        (2_600, "3 kB"),
        (999_400, "999 kB"),
        (999_600, "1 MB"),
        (92_871_040, "93 MB"),
        (999_400_000, "999 MB"),
        (999_600_000, "1.0 GB"),
        (72_706_203_648, "72.7 GB"),
        (1_500_000_000_000, "1,500.0 GB"),
    ],
)
def test_a_size_has_the_unit_in_which_it_is_short(size, words):
    assert bytes_in_words(size) == words
