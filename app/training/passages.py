"""Passages to work on: composed from sentences that ship, or cut from what the target wrote."""

from __future__ import annotations

import random
import re

from app.training.page import Page

_LENGTHS = (2, 3, 3, 4, 4, 5, 5, 6, 7, 9, 12, 14)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CODE = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def passage(page: Page) -> str:
    """A text of 30 to 250 words: a story, a letter, a notice, a report, a log and the like."""
    form = page.pick("passage.forms")
    count = page.rng.choice(_LENGTHS)
    opening = page.write(f"{form}.open")
    middle = page.several(f"{form}.middle", count)
    closing = [page.write(f"{form}.close")] if page.chance(0.7) else []
    if form in page.pick("passage.lined").split():
        return "\n".join([opening, *middle, *closing])
    if count > 6:
        half = count // 2
        first = " ".join([opening, *middle[:half]])
        return f"{first}\n\n{' '.join([*middle[half:], *closing])}"
    return " ".join([opening, *middle, *closing])


def excerpt(text: str, rng: random.Random, *, most: int = 180) -> str:
    """The beginning or a later stretch of a text, whole sentences, at most so many words.

    A sentence that is longer than that is cut. Empty where the text has no words.
    """
    if len(text.split()) <= most:
        return text.strip()
    sentences = [one for one in _SENTENCE.split(text) if one.strip()]
    first = rng.randrange(len(sentences)) if rng.random() < 0.5 else 0
    taken: list[str] = []
    room = most
    for sentence in sentences[first:]:
        room -= len(sentence.split())
        if room < 0:
            break
        taken.append(sentence)
    return " ".join(taken) or " ".join(sentences[first].split()[:most])


def code_in(text: str) -> str | None:
    """The first block of code in a text, with its fences, if it is 2 to 60 lines long."""
    for found in _CODE.finditer(text):
        if 2 <= found[2].count("\n") <= 60:
            return found[0]
    return None
