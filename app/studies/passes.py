"""What a pass of a model costs by its width, measured here: the widths in turn, medians of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from app.decoding.clock import Clock, clock_for
from app.models.block import Block
from app.models.language_model import LanguageModel
from app.models.session import MAX_CHUNK, Session

REPEATS = 9
"""Passes behind each median, unless the model is slow."""

BUDGET_S = 3.0
"""Seconds after which no further turn of all widths begins; the first one is always whole."""

Pause = Callable[[], None]
Advance = Callable[[int], None]
"""Told how many passes of a model are done."""


class Timings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Median seconds of passes by width, and the passes behind each median."""

    seconds: dict[int, float]
    repeats: int


def time_passes(
    model: LanguageModel,
    widths: Sequence[int],
    *,
    context: int,
    pause: Pause,
    advance: Advance = lambda done: None,
    clock: Clock | None = None,
) -> Timings:
    """Times passes of these numbers of rows behind a context of this many tokens. The first turn of
    all widths only warms up, unless it takes the whole budget. A model that holds less is measured
    as far as it reaches.

    Raises Cancelled when `pause` does, Problem if its memory does not suffice.
    """
    clock = clock or clock_for(model.device)
    widths = reached(widths, model)
    text = [(7 * place) % model.rows for place in range(_held(model, context, widths))]
    session = opened_behind(model, text, widths, pause=pause)
    session.prepare(max(widths), behind=len(text) - 1, advance=lambda done, total: pause())
    taken: dict[int, list[float]] = {width: [] for width in widths}
    start, done = clock.now(), 0
    for turn in range(REPEATS + 1):
        if turn and clock.now() - start >= BUDGET_S:
            break
        for width in widths:
            pause()
            taken[width].append(_seconds(model, session, text, width=width, clock=clock))
            done += 1
            advance(done)
    kept = {width: times[1:] or times for width, times in taken.items()}
    return Timings({width: median(times) for width, times in kept.items()}, len(kept[1]))


def reached(widths: Sequence[int], model: LanguageModel) -> list[int]:
    """Those of the widths that the model can read at once."""
    return [width for width in widths if width < model.context_length]


def passes_of(widths: Sequence[int]) -> int:
    """The passes that a measurement of these widths takes at most."""
    return len(widths) * (REPEATS + 1)


def _held(model: LanguageModel, context: int, widths: Sequence[int]) -> int:
    """Tokens in the cache: the context, unless the model ends before it."""
    return max(min(context, model.context_length - max(widths)), 1)


def opened_behind(
    model: LanguageModel, text: Sequence[int], widths: Sequence[int], *, pause: Pause
) -> Session:
    """A session that has read the text but for its last token, chunk by chunk."""
    session = model.open(len(text) + max(widths))
    for end in range(MAX_CHUNK, len(text), MAX_CHUNK):
        pause()
        session.read(text, rows=1, upto=end)
    pause()
    session.read(text[:-1] or text, rows=1)
    return session


def _seconds(
    model: LanguageModel, session: Session, text: Sequence[int], *, width: int, clock: Clock
) -> float:
    """Seconds of one pass over the text's last token and so many guesses less one."""
    guesses = Block([1] * (width - 1), device=model.device)
    clock.wait()
    start = clock.now()
    session.read(text, guesses, rows=width)
    clock.wait()
    return clock.now() - start
