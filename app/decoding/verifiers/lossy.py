"""The end that all lossy rules share: what is kept by leniency, and the token behind it."""

from __future__ import annotations

from torch import Tensor

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict, row_at
from app.decoding.sampling import pick
from app.decoding.verifiers.chances import chances, strict_chances
from app.decoding.verifiers.exact import residual


def lossy_verdict(
    draft: Draft,
    rows: TargetRows,
    draws: Draws,
    *,
    chance: Tensor,
    kept: Tensor | None = None,
    drawn: bool = True,
    whole_law: bool = False,
) -> Verdict:
    """The verdict of a rule that keeps guesses with this chance [drafted].

    `kept` [drafted] says which guesses pass where a draw alone does not; without `drawn` no draw is
    told. Behind a rejection the next token comes from what q leaves of p, or from p itself with
    `whole_law`; at temperature 0 it is the target's likeliest. A guess is kept by leniency where
    the strict rule, with the same draw, would have rejected it.
    """
    strict = strict_chances(draft, rows)
    kept = draws.accept < chance if kept is None else kept
    accepted = kept.long().cumprod(0).sum()
    p, q = chances(rows.probabilities, draft)
    token, law = _next(draft, rows, draws, accepted=accepted, whole_law=whole_law)
    return Verdict(
        accepted=accepted,
        next=token,
        target_probability=p,
        draft_probability=q,
        accept_probability=chance,
        strict_probability=strict,
        lenient=kept & (draws.accept >= strict),
        draw=draws.accept if drawn else None,
        next_probability=row_at(row_at(rows.probabilities, accepted), token),
        next_law=law,
    )


def _next(
    draft: Draft, rows: TargetRows, draws: Draws, *, accepted: Tensor, whole_law: bool
) -> tuple[Tensor, Tensor | None]:
    """The token behind the accepted guesses, and the law that it was drawn from, if it was."""
    if rows.greedy:
        return row_at(rows.best, accepted), None
    p = row_at(rows.law, accepted)
    law = p if whole_law else residual(p, draft, accepted)
    return pick(law, draws.next), law
