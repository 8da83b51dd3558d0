"""Text of a model or a person as a page shows it: every character in sight, none that acts."""

from __future__ import annotations

from app.reports.plain_text import pictured

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SIGNS: dict[int, str] = {code: f"⟨U+{code:04X}⟩" for code in _BIDI}
_NOT_CHARACTERS = [*range(0xFDD0, 0xFDF0)]
_NOT_CHARACTERS += [
    plane + last for plane in range(0, 0x110000, 0x10000) for last in (65534, 65535)
]
_SIGNS |= dict.fromkeys(_NOT_CHARACTERS, "\ufffd")


def visible(text: str) -> str:
    """The text with signs for controls, and for marks that would turn the order of its letters.

    Line feeds and tabs stay. What HTML itself reads as markup is left to the template's escaping.
    """
    return pictured(text).translate(_SIGNS)
