"""Text of a model or a person, made harmless for places that would act on it."""

from __future__ import annotations

import re

_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"}
_PICTURES |= {0x7F: 0x2421}
_PICTURES |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)
_MARKS = re.compile(r"([\\`*_\[\]<>|&~$]|^[#+=-])")
_NUMBER = re.compile(r"^(\d+)([.)])(?=\s|$)")


def pictured(text: str) -> str:
    """The text with control characters, but for newline and tab, as visible signs (␛ for escape).

    A terminal then shows the text and obeys none of it.
    """
    return text.translate(_PICTURES)


def fenced(text: str) -> str:
    """The text as a block of Markdown code that nothing inside it can end."""
    text = pictured(text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def inline(text: object) -> str:
    """Anything as one line of Markdown that means nothing but itself, also in a table."""
    line = re.sub(r"\s+", " ", pictured(str(text))).strip()
    return _NUMBER.sub(r"\1\\\2", _MARKS.sub(r"\\\1", line))
