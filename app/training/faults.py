"""Faults put into sound text or code, for prompts that ask to mend it."""

from __future__ import annotations

import re

from app.training.page import Page

_WORD = re.compile(r"[A-Za-z']{4,}")


def with_misspellings(text: str, page: Page) -> str:
    """A text with some words misspelt: usual mistakes first, then slips of the fingers."""
    for _ in range(4):
        right, _, wrong = page.pick("faults.words").partition(" = ")
        text = re.sub(rf"\b{re.escape(right)}\b", wrong, text, count=2)
    share = page.rng.choice((0.04, 0.08, 0.12))
    return _WORD.sub(lambda word: _slip(word[0], page) if page.chance(share) else word[0], text)


def with_bug(code: str, page: Page) -> str:
    """The code with one place changed, so that it most likely fails; else as it was."""
    for _ in range(12):
        right, _, wrong = page.pick("faults.code").partition(" => ")
        places = [found.start() for found in re.finditer(re.escape(right), code)]
        if places:
            place = page.rng.choice(places)
            return code[:place] + wrong + code[place + len(right) :]
    return code


def _slip(word: str, page: Page) -> str:
    place = page.rng.randrange(1, len(word) - 1)
    kind = page.rng.randrange(4)
    if kind == 0:  # two letters change places
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    if kind == 1:  # one is lost
        return word[:place] + word[place + 1 :]
    if kind == 2:  # one is doubled
        return word[:place] + word[place] + word[place:]
    return word[:1].lower() + word[1:]  # the capital is forgotten
