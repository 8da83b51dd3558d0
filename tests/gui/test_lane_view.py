"""The line below a lane's text: of several repetitions it says which one it tells of."""

from recorded import costed_record

from app.gui.lane_view import summary


def test_the_line_says_which_repetition_its_numbers_are_of():
    repetitions = costed_record(repetitions=3).repetitions("speculative")
    # 24 tokens behind the first in 8 loops of 1.75 s.
    told = "1.7 tokens/s · 25 tokens · 8 loops"
    assert summary(repetitions, of=3, goes_on=False).startswith(f"repetition 3 of 3 · {told}")
    assert summary(repetitions[:1], of=3, goes_on=True).startswith(f"repetition 1 of 3 · {told}")
    assert summary(repetitions[:1], of=1, goes_on=False).startswith(told)
