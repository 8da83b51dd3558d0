"""JSON from files that anyone may have written."""

from __future__ import annotations

from typing import TypeVar

import msgspec

_Content = TypeVar("_Content")


def decode(text: bytes | msgspec.Raw, kind: type[_Content]) -> _Content:
    """What the text says. Raises msgspec.ValidationError for JSON that is no such thing, and
    msgspec.DecodeError, of which that is a kind, for what is no JSON or nested without end.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"it is not UTF-8 text ({error.reason})") from None
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None
