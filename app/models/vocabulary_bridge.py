"""Between a target and a draft model of another vocabulary: what is text to one is so to the other.

Source: Timor et al. 2025 (arXiv 2502.05202), sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from app.library.preflight import FolderFacts
from app.library.special_tokens import Conventions, conventions
from app.library.vocabulary import Vocabulary
from app.library.vocabulary_map import VocabularyMap, vocabulary_map
from app.models.machine import on_device
from app.models.spelling import Spelling
from app.models.tokenizer import Tokenizer
from app.run.problems import Problem

LOOK_BEHIND = 8
"""Tokens before a new piece of text that are read with it: they say how it is cut."""


@dataclass(frozen=True, slots=True)
class SharedIds:
    """The ids that stand for the same text, as tensors."""

    target: Tensor
    """[shared]"""
    draft: Tensor
    """[shared], in the same order."""
    own: Tensor
    """[width of the target]: the draft's id of each of the target's; 0 where it has none."""


class _Side:
    """One model's files, read when they are first asked for."""

    def __init__(self, facts: FolderFacts) -> None:
        file = facts.tokenizer
        if file is None or file.name != "tokenizer.json":
            raise Problem(
                f"{facts.folder} has no tokenizer.json, by which vocabularies are compared.",
                "Choose another method, or fetch the model again with its tokenizer.json.",
            )
        self.facts = facts
        self.vocabulary = Vocabulary(file)
        self.spelling = Spelling(Tokenizer(facts.folder), self.vocabulary)
        self.conventions: Conventions = conventions(facts.folder)

    @property
    def end(self) -> int | None:
        """The token that ends a text."""
        named = self.conventions.roles.get("eos")
        id_ = self.vocabulary.id_of(named) if named is not None else None
        return id_ if id_ is not None else min(self.facts.end_ids, default=None)


class VocabularyBridge:
    """Both tokenizers of a pair. Nothing is read before a method asks; then Problem is raised for a
    tokenizer that cannot be read.
    """

    def __init__(
        self,
        target: FolderFacts,
        draft: FolderFacts,
        *,
        target_rows: int,
        draft_rows: int,
        differs: str,
    ) -> None:
        """A draft without a tokenizer reads as its target does. Rows are the ids that each model
        can both read and guess.
        """
        self._target_facts = target
        self._draft_facts = draft if draft.tokenizer is not None else target
        self._target_rows, self._draft_rows = target_rows, draft_rows
        self.differs = differs
        """Which ids mean something else to each, in a sentence; empty if none."""
        self._on: dict[tuple[torch.device, int], SharedIds] = {}

    @cached_property
    def shared(self) -> VocabularyMap:
        """The ids that stand for the same text. Raises Problem if there are none."""
        found = vocabulary_map(
            self._target.vocabulary,
            self._draft.vocabulary,
            target_end=self._target.end,
            draft_end=self._draft.end,
            target_rows=self._target_rows,
            draft_rows=self._draft_rows,
        )
        if not found:
            raise Problem(
                "The two vocabularies have no token in common.", "Choose the method slem."
            )
        return found

    @cached_property
    def own(self) -> dict[int, int]:
        """The draft's id of each shared one of the target's."""
        return dict(zip(self.shared.target_ids, self.shared.draft_ids, strict=True))

    def on(self, device: torch.device, width: int) -> SharedIds:
        """The shared ids on a device, for rows of so many logits of the target."""
        found = self._on.get((device, width))
        if found is None:
            target, draft = (
                on_device(ids, torch.long, device)
                for ids in (self.shared.target_ids, self.shared.draft_ids)
            )
            own = torch.zeros(width, dtype=torch.long, device=device).index_copy_(0, target, draft)
            found = self._on[device, width] = SharedIds(target, draft, own)
        return found

    @property
    def spelling(self) -> Spelling:
        """The draft's tokenizer."""
        return self._draft.spelling

    @cached_property
    def opening(self) -> tuple[int, ...]:
        """The ids that the draft wants before every text."""
        return tuple(self.spelling.tokenizer.opening())

    @property
    def draft_ends(self) -> tuple[int, ...]:
        """The ids by which the draft ends a text."""
        return self._draft_facts.end_ids

    def said(self, ids: Sequence[int], *, start: bool) -> bytes:
        """What the target's ids say to the draft; `start`: a text begins with them.

        A token that ends a text is the draft's own, and one that begins a text says nothing: the
        draft has its opening. The space that some put before every text is the draft's own, too.
        """
        text = b"".join(map(self._said, ids))
        if not start:
            return text
        mine, other = self._spaces_first
        text = text.removeprefix(b" ") if mine else text
        return b" " + text if other else text

    def retokenised(self, text: Sequence[int], written: Sequence[int]) -> list[int]:
        """What the draft wrote behind a text of the target's ids, in such ids: as the target's own
        tokenizer cuts it there. Empty where it does not cut it there, and where nothing is said.

        Source: algorithm 2, with windows of look-behind.
        """
        draft, target = self._draft, self._target
        ordinary, ended = self._ordinary(written)
        before = target.spelling.spelled(text[-LOOK_BEHIND:])
        ids = target.spelling.cut(draft.spelling.spelled(ordinary), before=before)
        if ids is None:
            return []
        ids += [target.end] if ended and target.end is not None else []
        known = (place for place, id_ in enumerate(ids) if id_ >= self._target_rows)
        return ids[: next(known, len(ids))]

    def readable(self, ids: Sequence[int]) -> list[int]:
        """The draft's ids, those that the model has no row for replaced by 0."""
        return [id_ if id_ < self._draft_rows else 0 for id_ in ids]

    def _ordinary(self, written: Sequence[int]) -> tuple[Sequence[int], bool]:
        """What comes before the first id that is no text, and whether that one ends the text."""
        special = self._draft.vocabulary.special | set(self.draft_ends)
        texts = self._draft.spelling.texts
        for place, id_ in enumerate(written):
            if id_ in special or id_ not in texts:
                return written[:place], id_ in self.draft_ends
        return written, False

    @cached_property
    def _target(self) -> _Side:
        return _Side(self._target_facts)

    @cached_property
    def _draft(self) -> _Side:
        same = self._draft_facts.folder == self._target_facts.folder
        return self._target if same else _Side(self._draft_facts)

    @cached_property
    def _spaces_first(self) -> tuple[bool, bool]:
        return self._target.spelling.opens_with_space, self._draft.spelling.opens_with_space

    @cached_property
    def _silent(self) -> dict[int, bytes]:
        """What the target's tokens that begin or end a text say to the draft."""
        target, end = self._target, self._draft.end
        begin = target.conventions.roles.get("bos")
        first = target.vocabulary.id_of(begin) if begin is not None else None
        found = {} if first is None else {first: b""}
        ends = {*target.facts.end_ids, *([] if target.end is None else [target.end])}
        ending = b"" if end is None else self._draft.spelling.texts.get(end, b"")
        return found | dict.fromkeys(ends, ending)

    def _said(self, id_: int) -> bytes:
        silent = self._silent.get(id_)
        return self._target.spelling.texts.get(id_, b"") if silent is None else silent
