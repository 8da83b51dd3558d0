"""What a person has seen is always a beginning of the text, whatever a stop string takes back."""

import io

import msgspec
from hypothesis import given
from hypothesis import strategies as some
from recorded import full_round
from rich.console import Console

from app.cli.token_stream import TokenStream, replay
from app.run.events import At, FirstToken, LaneEnded, LaneStarted, RoundCommitted, Token
from app.run.record import Repetition

AT = At("r", "speculative")
HEADING = "\nSpeculative  accepted  corrected  bonus\n"


def held(text, stop):
    """How much of the end of a text may begin a stop string."""
    return next((n for n in range(len(stop) - 1, 0, -1) if text.endswith(stop[:n])), 0)


@some.composite
def stopped_lanes(draw):
    """A lane's events, round by round, up to a stop string or an end; and its text."""
    stop = draw(some.sampled_from(["ab", "aab", "b", "aba"]))
    blocks = draw(some.lists(some.lists(some.text("abc ", max_size=3), min_size=1), min_size=1))
    events, whole = [LaneStarted(AT)], ""
    for index, texts in enumerate(blocks):
        whole += "".join(texts)
        ended = stop in whole
        held_back = 0 if ended else held(whole, stop)
        if index == 0:
            token = Token(0, whole, "first")
            events.append(FirstToken(AT, token, 0.5, held_back))
        else:
            made = full_round(index - 1, [0] * len(texts), texts=texts)
            made = msgspec.structs.replace(made, held_back=held_back)
            events.append(RoundCommitted(AT, made))
        if ended:
            break
    dropped = len(whole) - whole.index(stop) if stop in whole else 0
    events.append(LaneEnded(AT, "stop string" if dropped else "length", dropped=dropped))
    return events, whole[: len(whole) - dropped]


@given(stopped_lanes())
def test_no_more_is_shown_than_the_text(lane):
    events, text = lane
    page = io.StringIO()
    stream = TokenStream(Console(file=page), may_be_cut=True)
    for event in events[:-1]:
        stream.show(event)
        assert (HEADING + text).startswith(page.getvalue())
    stream.show(events[-1])
    assert page.getvalue() == f"{HEADING}{text}\n({events[-1].finish})\n"


@given(stopped_lanes())
def test_a_record_is_shown_as_its_run_was(lane):
    events, text = lane
    repetition = Repetition(AT)
    for event in events[1:]:
        repetition.apply(event)
    page = io.StringIO()
    stream = TokenStream(Console(file=page), may_be_cut=True)
    for event in replay(repetition):
        stream.show(event)
    assert page.getvalue() == f"{HEADING}{text}\n({events[-1].finish})\n"


@given(some.text("\n\t a", max_size=20))
def test_layout_of_text_is_kept_where_it_goes_into_a_file(text):
    page = io.StringIO()
    stream = TokenStream(Console(file=page))
    for event in (LaneStarted(AT), FirstToken(AT, Token(0, text, "first"), 0.5)):
        stream.show(event)
    assert page.getvalue() == HEADING + text
