"""A field for a few short texts, one a line, in which line ends and tabs can be written."""

from __future__ import annotations

import re
from typing import Any

from PySide6.QtCore import Signal

from app.gui.prompt_field import PromptField

_MEANT = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\\\": "\\"}
_WRITTEN = {ord(meant): written for written, meant in _MEANT.items()}
_ESCAPE = re.compile(r"\\[ntr\\]")


class Lines(PromptField):
    r"""Texts, one a line; `\n`, `\t`, `\r` and `\\` stand for what they mean."""

    edited = Signal()

    def __init__(self, *, placeholder: str, lines: int) -> None:
        super().__init__("", placeholder=placeholder)
        self.set_lines(lines)
        self.textChanged.connect(self.edited)

    def get(self) -> Any:
        """The texts; an empty line is none."""
        return tuple(_meant(line) for line in self.text().split("\n") if line)

    def put(self, value: Any) -> None:
        """Shows these texts."""
        self.setPlainText("\n".join(text.translate(_WRITTEN) for text in value))


def _meant(line: str) -> str:
    return _ESCAPE.sub(lambda found: _MEANT[found[0]], line)
