"""Going on with a run that was stopped: whether it can be, what is asked, what stands before it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from app.run.record import Repetition, RunRecord
from app.run.settings import RunSettings


@dataclass(frozen=True)
class Earlier:
    """What was written before a run began that goes on from another."""

    text: str = ""
    tokens: int = 0


def can_continue(record: RunRecord) -> bool:
    """Whether there is a text that was cut off, and the ids to go on from."""
    last = last_pass(record)
    if last is None or not last.tokens or not record.prompt_ids:
        return False
    if last.finish == "length":
        return record.outcome in ("finished", "cancelled", "engine ended")
    return last.finish in (None, "cancelled") and record.outcome in ("cancelled", "engine ended")


def continued(record: RunRecord, *, fresh: int) -> RunSettings:
    """The settings that go on from this record: with the tokens that were left, or `fresh` ones."""
    last = last_pass(record)
    ids = last.token_ids if last else []
    left = record.settings.max_new_tokens - len(ids)
    return msgspec.structs.replace(
        record.settings,
        continues=record.run,
        prompt_ids=(*record.prompt_ids, *ids),
        max_new_tokens=left if left > 0 else fresh,
    )


def with_text_of(record: RunRecord, before: Earlier) -> Earlier:
    """What stands before a run that goes on from this record.

    The tail of a broken character is left out: the run that follows completes it.
    """
    last = last_pass(record)
    tokens = last.tokens if last else []
    text = "".join(token.text for token in tokens)
    return Earlier(before.text + text, before.tokens + len(tokens))


def before_stop(earlier: str, repetition: Repetition) -> str:
    """The earlier text, without the beginning of a stop string that the new text completed."""
    if not repetition.dropped:
        return earlier
    written = sum(len(token.text) for token in repetition.tokens) + len(repetition.tail)
    return earlier[: len(earlier) - max(repetition.dropped - written, 0)]


def whole_text(earlier: str, repetition: Repetition) -> str:
    """The text with what stands before it."""
    written = "".join(token.text for token in repetition.tokens) + repetition.tail
    kept = written[: max(len(written) - repetition.dropped, 0)]
    return before_stop(earlier, repetition) + kept


def last_pass(record: RunRecord) -> Repetition | None:
    """The pass whose text is shown, and gone on from."""
    passes = record.repetitions("speculative")
    return passes[-1] if passes else None


def earlier_of(chain: Iterable[RunRecord]) -> Earlier:
    """What these runs wrote, each of which goes on from the one before."""
    earlier = Earlier()
    for record in chain:
        earlier = with_text_of(record, earlier)
    return earlier


def goes_on_from(settings: RunSettings, record: RunRecord) -> bool:
    """Whether these settings begin exactly where this record ends."""
    last = last_pass(record)
    ids = (*record.prompt_ids, *(last.token_ids if last else ()))
    return settings.continues == record.run and settings.prompt_ids == ids
