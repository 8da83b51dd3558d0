"""Draws that depend on where they are used, and on nothing else.

A draw is a function of (seed, stream, round, slot). The order of calls, other sequences, and what
ran before cannot change it, so a run replays exactly, and the draft's draws can never be the
verifier's.
"""

from __future__ import annotations

from typing import Literal

Stream = Literal["first", "draft", "accept", "next", "shared"]
"""Which decision a draw is for; different streams never share a draw. `shared` is the noise of a
place in the text, whoever draws there (`shared_noise.py`)."""

_STREAM_NUMBERS: dict[Stream, int] = {"first": 1, "draft": 2, "accept": 3, "next": 4, "shared": 5}
_MASK = (1 << 64) - 1


def draw(seed: int, stream: Stream, round_: int, slot: int) -> float:
    """A uniform draw in the open interval (0, 1), exact in 52 bits."""
    state = _mix(base_state(seed, stream, round_) ^ _mix(slot & _MASK))
    return ((state >> 12) * 2 + 1) / (1 << 53)


def base_state(seed: int, stream: Stream, round_: int) -> int:
    """What all slots of a round have in common: 64 bits."""
    state = _mix(seed & _MASK)
    for part in (_STREAM_NUMBERS[stream], round_):
        state = _mix(state ^ _mix(part & _MASK))
    return state


def _mix(value: int) -> int:
    """SplitMix64's step and finaliser (Steele, Lea, Flood 2014, figure 17)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
