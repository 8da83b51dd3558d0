"""What is kept of a private run: its numbers, and no word that was read or written."""

from __future__ import annotations

import msgspec

from app.run.events import Round, Token
from app.run.record import Lane, Repetition, RunRecord


def without_text(record: RunRecord) -> RunRecord:
    """A copy of the record without prompt, system message, text, ids and candidates."""
    settings = msgspec.structs.replace(
        record.settings,
        prompt="",
        system="",
        earlier=(),
        stop_strings=(),
        continues="",
        prompt_ids=(),
    )
    lanes = [
        Lane(lane.name, [_repetition(one) for one in lane.repetitions]) for lane in record.lanes
    ]
    found = record.divergence
    if found is not None:
        found = msgspec.structs.replace(
            found, speculative=_token(found.speculative), baseline=_token(found.baseline)
        )
    return msgspec.structs.replace(
        record, settings=settings, prompt_ids=(), lanes=lanes, divergence=found
    )


def _repetition(repetition: Repetition) -> Repetition:
    return msgspec.structs.replace(
        repetition,
        first=_token(repetition.first) if repetition.first else None,
        rounds=[_round(round_) for round_ in repetition.rounds],
        tail="",
        dropped=0,
    )


def _round(round_: Round) -> Round:
    return msgspec.structs.replace(
        round_,
        committed=tuple(_token(token) for token in round_.committed),
        thrown=tuple(_token(token) for token in round_.thrown),
    )


def _token(token: Token) -> Token:
    return msgspec.structs.replace(token, id=0, text="", inspection=None)
