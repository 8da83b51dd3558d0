"""What the ids of a tokenizer.json mean, and how it cuts text; no tokenizer is built for it."""

from __future__ import annotations

import re
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

    @property
    def special(self) -> frozenset[int]:
        """The ids of special tokens: they say something about a text, and are none of it."""
        return frozenset(token.id for token in self._file.added_tokens if token.special)

    def texts(self) -> dict[int, bytes]:
        """The text of every id as bytes, so that kinds of tokenizers can be compared."""
        spelled = _from_letters if self._byte_level else _from_text
        proper = {id_: spelled(token) for id_, token in self.tokens.items()}
        return proper | {token.id: token.content.encode() for token in self._file.added_tokens}

    def spellings(self) -> dict[bytes, int]:
        """The id of every text that a token stands for, special tokens left out.

        Of several ids with one text it is the lowest; a byte that SentencePiece falls back to comes
        after every token proper.
        """
        texts, special = self.texts(), self.special
        fallbacks = self._fallbacks()
        ids = sorted((id_ in fallbacks, id_) for id_ in texts.keys() - special)
        found: dict[bytes, int] = {}
        for _, id_ in ids:
            found.setdefault(texts[id_], id_)
        return found

    @property
    def _byte_level(self) -> bool:
        parts = (self._file.pre_tokenizer, self._file.decoder)
        return any(b'"ByteLevel"' in bytes(part) for part in parts)

    def _fallbacks(self) -> frozenset[int]:
        """The ids of bytes that SentencePiece falls back to."""
        if self._byte_level:
            return frozenset()
        named = self.tokens.items()
        return frozenset(id_ for id_, token in named if _BYTE_TOKEN.fullmatch(token))

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


def _from_letters(token: str) -> bytes:
    """The bytes of a byte-level token, in which each letter stands for a byte."""
    try:
        return token.translate(_LETTERS).encode("latin-1")
    except UnicodeEncodeError:
        return token.encode("utf-8", "surrogatepass")


def _from_text(token: str) -> bytes:
    """The bytes of a token of SentencePiece: its spaces, and the bytes it falls back to."""
    byte = _BYTE_TOKEN.fullmatch(token)
    text = token.replace(_SPACE, " ")
    return bytes([int(byte[1], 16)]) if byte else text.encode("utf-8", "surrogatepass")


def _byte_letters() -> dict[int, int]:
    """The byte that each letter of byte-level tokens stands for.

    Visible bytes stand for themselves, the others for the letters from 256 on (GPT-2's alphabet).
    """
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in visible]
    return {byte: byte for byte in visible} | {256 + n: byte for n, byte in enumerate(others)}


_LETTERS = _byte_letters()
