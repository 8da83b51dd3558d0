"""A whole record as bytes for the database, and back."""

from __future__ import annotations

import zlib

import msgspec

from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.stored import LARGEST

_PLAIN, _SQUEEZED = b"m", b"z"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RunRecord).decode


def packed(record: RunRecord) -> bytes:
    """The record as MessagePack, compressed where that pays; every number comes back as it is.

    Raises Problem for a record that cannot be kept.
    """
    try:
        plain = _encode(record)
    except UnicodeEncodeError as error:
        message = f"The run {record.run} holds half a character, so it cannot be kept."
        raise Problem(message, "Run it with a prompt that is whole Unicode.") from error
    except OverflowError as error:
        message = f"The run {record.run} holds a number that is too large to be kept."
        raise Problem(message, "Choose smaller numbers: a seed has to be below 2^63.") from error
    if len(plain) > LARGEST:
        raise Problem(f"The run {record.run} is too large to be kept.", "Write a report of it.")
    squeezed = zlib.compress(plain, 6)
    return _SQUEEZED + squeezed if len(squeezed) < len(plain) else _PLAIN + plain


def unpacked(data: bytes, run: str) -> RunRecord:
    """The record in these bytes. Raises Problem where they are damaged or from another version."""
    try:
        return _decode(_unsqueezed(data[1:]) if data[:1] == _SQUEEZED else data[1:])
    except (msgspec.MsgspecError, zlib.error, UnicodeDecodeError, RecursionError) as error:
        message = f"The record of the run {run} cannot be read: {error}."
        remedy = "Open it with the version that kept it, or delete this run; the others are whole."
        raise Problem(message, remedy) from error


def _unsqueezed(data: bytes) -> bytes:
    """What was compressed, its checksum checked, up to the largest size."""
    unpacker = zlib.decompressobj()
    plain = unpacker.decompress(data, LARGEST)
    if not unpacker.eof:
        raise zlib.error("it ends too early, or is too large")
    return plain
