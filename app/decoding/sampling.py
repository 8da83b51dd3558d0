"""From logits to the law that a token is drawn from: one function for target and draft alike.

The order is that of transformers: penalties, temperature, top-k, top-p, min-p. All of it is
computed in fp32, row by row, each row seeing the text and the guesses before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from app.models.block import Block
from app.models.machine import on_device
from app.run.settings import Sampling

_SHORT_LIST = 2048
"""Tokens sorted first when a CPU cuts a nucleus; all of them only if these fall short."""


class Penalties:
    """Which tokens a text has used, kept up as it grows; rows see the guesses before them too."""

    def __init__(self, sampling: Sampling, prompt_length: int) -> None:
        self._sampling = sampling
        self._prompt_length = prompt_length
        self._counted = 0
        self._used: Tensor | None = None

    @property
    def active(self) -> bool:
        """Whether any logit may change."""
        return self._sampling.penalised

    def apply(self, logits: Tensor, text: Sequence[int], block: Block | None) -> Tensor:
        """Penalised logits; row 0 of [rows, width] follows the text, row i + 1 the block's guess i
        and those that it stands behind.

        With fewer rows than the block has places, the rows are those behind its last ids.
        """
        used = self.used(text, logits.shape[-1], logits.device)
        if used is None:
            return logits
        return penalised(logits, _used_by_rows(used, logits.shape[0], block), self._sampling)

    def used(self, text: Sequence[int], width: int, device: torch.device) -> Tensor | None:
        """Which tokens the text has seen, and which were written in it: masks [2, width], which are
        kept up in place; None where no logit may change.
        """
        if not self.active:
            return None
        if self._used is None:
            self._used = torch.zeros((2, width), dtype=torch.bool, device=device)
        if len(text) == self._counted:
            return self._used
        fresh = on_device(text[self._counted :], torch.long, device)
        written = fresh[max(self._prompt_length - self._counted, 0) :]
        # Set by index, a number of the host's would be copied to a card, and waited for.
        self._used[0].index_fill_(0, fresh, True)
        self._used[1].index_fill_(0, written, True)
        self._counted = len(text)
        return self._used


def penalised(logits: Tensor, used: Tensor, sampling: Sampling) -> Tensor:
    """Logits [..., width] behind what was seen and what was written, the masks `used` [2, ...,
    width].
    """
    seen, written = used.unbind()
    penalty = sampling.repetition_penalty
    repeated = torch.where(logits > 0, logits / penalty, logits * penalty)
    logits = torch.where(seen, repeated, logits)
    return logits - sampling.presence_penalty * written


def _used_by_rows(used: Tensor, rows: int, block: Block | None) -> Tensor:
    """What each row has seen, and what of it was written: masks [2, rows, width]."""
    used = used[:, None].repeat(1, rows, 1)
    if not block:
        return used
    guesses, lineage = block.tensor(), block.lineage
    # Each row marks its own path; a guess elsewhere is marked over by the row's own again.
    path = torch.where(lineage, guesses[None], guesses[:, None])[-min(rows, len(guesses)) :]
    used[:, -len(path) :].scatter_(2, path.expand(2, -1, -1), True)
    return used


def warp(logits: Tensor, sampling: Sampling) -> Tensor:
    """The law [rows, width] that penalised logits [rows, width] stand for at these settings.

    Source: the settings as transformers defines them; Leviathan et al. 2023, section 2.2.
    """
    scores = logits.float() / sampling.temperature
    best = None
    if sampling.top_k:
        best = torch.topk(scores, min(sampling.top_k, scores.shape[-1]), dim=-1)
        scores = scores.masked_fill(scores < best.values[..., -1:], -torch.inf)
    if sampling.top_p < 1.0:
        scores = _keep_top_p(scores, sampling.top_p, None if best is None else best.indices)
    law = torch.softmax(scores, dim=-1)
    if sampling.min_p:
        law = _keep_min_p(law, sampling.min_p)
    return law


def pick(law: Tensor, draw: Tensor | float) -> Tensor:
    """The token of a law [width] (or [rows, width]) at a draw in (0, 1), by inverse distribution.

    Sums are in fp64 where the device has it. A token without probability is never picked: in fp64
    the largest draw times a sum is less than the sum.
    """
    coarse = law.device.type == "mps"
    sums = (law if coarse else law.double()).cumsum(dim=-1)
    wanted = sums[..., -1:] * draw
    token = torch.searchsorted(sums, wanted, right=True)
    if coarse:  # there the largest draws round up to 1
        token = torch.minimum(token, (sums < sums[..., -1:]).sum(dim=-1, keepdim=True))
    # Sums that are no numbers lead nowhere; the round fails for them, once that is known.
    return token.clamp(max=law.shape[-1] - 1).squeeze(-1)


def _keep_top_p(scores: Tensor, p: float, order: Tensor | None) -> Tensor:
    """Keeps the likeliest tokens until their probability reaches p, and all as likely as the last.

    Equals stay together: which of them a sort puts first may depend on the other rows. `order`
    [rows, k] are the likeliest tokens in falling order, where no other is likely at all but for
    equals of the last; None if they have not been found.
    """
    law = torch.softmax(scores, dim=-1)
    values = _likeliest(law, p) if order is None else law.gather(-1, order)
    inside = values.cumsum(dim=-1) - values < p
    least = torch.where(inside, values, torch.inf).amin(dim=-1, keepdim=True)
    return scores.masked_fill(law < least, -torch.inf)


def _likeliest(law: Tensor, p: float) -> Tensor:
    """The highest probabilities of each row in falling order, enough of them to reach p.

    A CPU sorts a short list, unless some row's nucleus is wider; to ask a card would be to wait.
    """
    if law.device.type == "cpu" and law.shape[-1] > _SHORT_LIST:
        short = torch.topk(law, _SHORT_LIST, dim=-1).values
        if bool((short.sum(dim=-1) >= p).all()):
            return short
    return torch.sort(law, dim=-1, descending=True).values


def _keep_min_p(law: Tensor, share: float) -> Tensor:
    kept = law.masked_fill(law < share * law.amax(dim=-1, keepdim=True), 0.0)
    return kept / kept.sum(dim=-1, keepdim=True)
