"""The target's own law of short texts: it reads every text that it can write, and says its chance.

Each pass is as wide as the pass of a whole round, one row for the text's last token and one for
each guess (all of a tree's), as models may round passes of other widths otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from app.decoding.sampling import Penalties, warp
from app.models.block import Block
from app.models.session import Session
from app.run.tree_shape import pass_rows
from app.studies.lanes import LaneMaker

Text = tuple[int, ...]
"""Ids of the tokens behind the prompt."""

TextLaw = dict[Text, float]
"""The chance of every text that has one, in the order of its tokens."""

Pause = Callable[[], None]


def law_of_texts(maker: LaneMaker, pause: Pause) -> TextLaw:
    """The target's law of texts as long as the lane's, which is a draft and two tokens at most."""
    return dict(_Teacher(maker, pause).texts((), 1.0))


def allows(maker: LaneMaker, text: Text, pause: Pause) -> bool:
    """Whether each token of a text has a chance in some pass that a round may have read it with."""
    teacher = _Teacher(maker, pause)
    return all(teacher.may_follow(text[:place], token) for place, token in enumerate(text))


class _Teacher:
    """The target, reading text after text."""

    def __init__(self, maker: LaneMaker, pause: Pause) -> None:
        self._prompt = list(maker.prompt_ids)
        self._model = maker.pair.target.model
        self._sampling = maker.settings.sampling
        self._drafted = pass_rows(maker.settings, maker.settings.draft_length) - 1
        """Guesses of a whole round."""
        self._length = maker.settings.max_new_tokens
        room = len(self._prompt) + self._length + self._drafted
        self._session: Session = self._model.open(room)
        self._session.read(self._prompt, rows=1)
        self._pause = pause

    def texts(self, prefix: Text, chance: float) -> Iterator[tuple[Text, float]]:
        """Every whole text that begins so, with its chance."""
        if len(prefix) == self._length:
            yield prefix, chance
            return
        start = max(min(len(prefix), 1), len(prefix) - self._drafted)
        row = self._row(prefix, start, self._drafted)
        for token in row.nonzero().flatten().tolist():
            yield from self.texts((*prefix, token), chance * float(row[token]))

    def may_follow(self, prefix: Text, token: int) -> bool:
        """Whether some pass gives this token a chance: of any width, from any place on."""
        starts = range(max(1, len(prefix) - self._drafted), len(prefix) + 1) if prefix else [0]
        return any(
            float(self._row(prefix, start, drafted)[token]) > 0.0
            for start in starts
            for drafted in range(len(prefix) - start, self._drafted + 1)
        )

    def _row(self, prefix: Text, start: int, drafted: int) -> torch.Tensor:
        """The law of the token behind a prefix, [width], in fp64.

        From a pass over `drafted` guesses, of which the first are the prefix from `start` on.
        """
        self._pause()
        text, guesses = [*self._prompt, *prefix[:start]], prefix[start:]
        padded = [*guesses, *([prefix[-1]] * (drafted - len(guesses)))] if prefix else []
        block = Block(padded, device=self._model.device)
        logits = self._session.read(text, block, rows=len(padded) + 1).logits.float()
        logits = Penalties(self._sampling, len(self._prompt)).apply(logits, text, block)
        row = warp(logits, self._sampling)[len(guesses)].double().cpu()
        return row / row.sum()
