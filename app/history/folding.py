"""Texts as they are compared in a search: case and writing variants do not matter."""

from __future__ import annotations

import unicodedata


def folded(text: str) -> str:
    """The text in one case and one way of writing its characters."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
