"""Which ids of two vocabularies stand for the same text.

Source: Timor et al. 2025 (arXiv 2502.05202), algorithm 4: a draft that reads another vocabulary
guesses within the intersection of both. Tokens are the same if their bytes are: "Ġa" of a
byte-level tokenizer is "▁a" of SentencePiece, and the letter of a byte is the byte that
SentencePiece falls back to.
"""

from __future__ import annotations

import msgspec

from app.library.vocabulary import Vocabulary


class VocabularyMap(msgspec.Struct, frozen=True):
    """Pairs of ids with the same text, in the order of the target's; no id is in two pairs."""

    target_ids: tuple[int, ...]
    draft_ids: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.target_ids)


def vocabulary_map(
    target: Vocabulary,
    draft: Vocabulary,
    *,
    target_end: int | None = None,
    draft_end: int | None = None,
    target_rows: int | None = None,
    draft_rows: int | None = None,
) -> VocabularyMap:
    """The ids of both vocabularies that stand for the same text, each below its model's rows.

    Special tokens are left out, but for the tokens that end a text, which stand for each other.
    """
    ours, theirs = target.spellings(), draft.spellings()
    pairs = {ours[text]: theirs[text] for text in ours.keys() & theirs.keys()}
    if target_end is not None and draft_end is not None:
        pairs = {mine: other for mine, other in pairs.items() if other != draft_end}
        pairs[target_end] = draft_end
    kept = [
        (mine, other)
        for mine, other in sorted(pairs.items())
        if _below(mine, target_rows) and _below(other, draft_rows)
    ]
    return VocabularyMap(tuple(mine for mine, _ in kept), tuple(other for _, other in kept))


def _below(id_: int, rows: int | None) -> bool:
    return rows is None or id_ < rows
