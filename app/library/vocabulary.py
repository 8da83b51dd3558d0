"""What the ids of a tokenizer.json mean, and how it cuts text; no tokenizer is built for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.library.json_text import decode
from app.library.model_files import read_json

_NOTHING = msgspec.Raw(b"null")
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""How SentencePiece writes a space."""


class _Added(msgspec.Struct, frozen=True):
    id: int
    content: str
    special: bool = False


class _Model(msgspec.Struct, frozen=True):
    vocab: dict[str, int] | list[tuple[str, float]]
    merges: msgspec.Raw = _NOTHING


class _TokenizerFile(msgspec.Struct, frozen=True):
    model: _Model
    added_tokens: list[_Added] = []
    normalizer: msgspec.Raw = _NOTHING
    pre_tokenizer: msgspec.Raw = _NOTHING
    post_processor: msgspec.Raw = _NOTHING
    decoder: msgspec.Raw = _NOTHING


class Vocabulary:
    """Every token of a tokenizer.json. Raises Problem for a file that is none."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._file = read_json(file, _TokenizerFile)
        vocab = self._file.model.vocab
        if isinstance(vocab, list):
            self.tokens = {id_: token for id_, (token, _) in enumerate(vocab)}
        else:
            self.tokens = {id_: token for token, id_ in vocab.items()}
        self.tokens |= {token.id: token.content for token in self._file.added_tokens}
        self.added = frozenset(token.id for token in self._file.added_tokens)
        """The ids of what was added to the vocabulary proper, as special tokens are."""

    def id_of(self, token: str) -> int | None:
        """The id of a token, by its text."""
        ids = (token_.id for token_ in self._file.added_tokens if token_.content == token)
        vocab = self._file.model.vocab
        proper = vocab.get(token) if isinstance(vocab, dict) else None
        return next(ids, proper)

    def spellings(self) -> frozenset[bytes]:
        """The text of every token but the special ones, as bytes, so that kinds can be compared."""
        added = {token.id: token for token in self._file.added_tokens}
        plain = (one.content.encode() for one in added.values() if not one.special)
        proper = (token for id_, token in self.tokens.items() if id_ not in added)
        byte_level = any(
            b'"ByteLevel"' in bytes(part) for part in (self._file.pre_tokenizer, self._file.decoder)
        )
        return frozenset([*plain, *(_from_letters(proper) if byte_level else _from_text(proper))])

    def parts(self) -> dict[str, msgspec.Raw]:
        """What decides how text is cut, by name, as JSON."""
        return {
            "normaliser": self._file.normalizer,
            "pre-tokenizer": self._file.pre_tokenizer,
            "merges": self._file.model.merges,
            "post-processor": self._file.post_processor,
        }


def is_same_part(one: msgspec.Raw, other: msgspec.Raw) -> bool:
    """Whether two parts say the same, however they are written."""
    return bytes(one) == bytes(other) or _plain(one) == _plain(other)


def _plain(part: msgspec.Raw) -> object:
    """The content of a part; its bytes where it is nested without end."""
    try:
        content = decode(part, object)
    except msgspec.DecodeError:
        return bytes(part)
    if isinstance(content, list):  # merges: "a b" in older files, ["a", "b"] in newer ones
        return [" ".join(map(str, one)) if isinstance(one, list) else one for one in content]
    return content


def _from_letters(tokens: Iterator[str]) -> Iterator[bytes]:
    """The bytes of byte-level tokens, in which each letter stands for a byte."""
    for token in tokens:
        try:
            yield token.translate(_LETTERS).encode("latin-1")
        except UnicodeEncodeError:
            yield token.encode("utf-8", "surrogatepass")


def _from_text(tokens: Iterator[str]) -> Iterator[bytes]:
    """The bytes of SentencePiece's tokens: its spaces, and the bytes it falls back to."""
    for token in tokens:
        byte = _BYTE_TOKEN.fullmatch(token)
        text = token.replace(_SPACE, " ")
        yield bytes([int(byte[1], 16)]) if byte else text.encode("utf-8", "surrogatepass")


def _byte_letters() -> dict[int, int]:
    """The byte that each letter of byte-level tokens stands for.

    Visible bytes stand for themselves, the others for the letters from 256 on (GPT-2's alphabet).
    """
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in visible]
    return {byte: byte for byte in visible} | {256 + n: byte for n, byte in enumerate(others)}


_LETTERS = _byte_letters()
