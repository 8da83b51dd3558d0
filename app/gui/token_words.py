"""What is said of a token: how it came to be, and the numbers that the rule used. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass

from app.gui.lane_spans import Placed, Span
from app.gui.plain import visible
from app.run.events import Candidate, Inspection, Status, Token

MOST_CANDIDATES = 5
"""How many candidates of each law are shown."""

_LONGEST_TEXT = 40


@dataclass(frozen=True)
class Facts:
    """The card of a token, in words."""

    title: str
    status: str
    """Empty for text of an earlier run."""
    lines: list[str]
    candidates: tuple[list[str], list[str], list[str]]
    """Of the target, the draft and the residual."""


def facts_of(span: Span) -> Facts:
    """What there is to say of the tokens of a span; the last one decides the colour."""
    if not span.tokens:
        return _EARLIER
    placed = span.tokens[-1]
    token = placed.token
    inspection = token.inspection or Inspection()
    lines = [_place(placed), _beside(token), *_several(span), *_numbers(token), decision(token)]
    return Facts(
        title=f"“{_short(span.text)}”",
        status=token.status + (" (mixed)" if span.mixed else ""),
        lines=[line for line in lines if line],
        candidates=(
            _column(inspection.target),
            _column(inspection.draft),
            _column(inspection.residual),
        ),
    )


def decision(token: Token) -> str:
    """Why this token is there, or is not."""
    if token.kept_by == "leniency":
        return "Kept by leniency: the strict rule would have thrown it away."
    if token.status == "accepted":
        return f"Kept: {_comparison(token, '<')}."
    if token.status == "rejected":
        return f"Thrown away: {_comparison(token, '≥')}."
    return _DECISIONS[token.status]


def _comparison(token: Token, sign: str) -> str:
    """The draw against the acceptance probability, where there was a draw."""
    kept = token.status == "accepted"
    if token.target_probability is None and token.accept_probability is None:
        return "it is the target's likeliest token" if kept else "the target's likeliest is another"
    if token.accept_probability is None:
        return "the target drew it too" if kept else "the target drew another"
    if token.draw is None:
        return f"its chance was {token.accept_probability:.4f}"
    if (token.draw < token.accept_probability) != kept:
        return "it was decided together with the guesses behind it"
    return f"draw {token.draw:.4f} {sign} {token.accept_probability:.4f}"


def _place(placed: Placed) -> str:
    """The token's id, its loop, and its place there."""
    number = f"id {placed.token.id}"
    if placed.round is None:
        return f"{number} · prompt pass"
    where = f"{number} · loop {placed.round.index + 1}"
    own = placed.token.status in ("corrected", "bonus", "plain")
    if own:
        return where
    guesses = [token for token in placed.round.committed if token.status == "accepted"]
    guesses += placed.round.thrown
    place = next((i for i, token in enumerate(guesses, 1) if token is placed.token), None)
    source = f" · by {placed.token.source}" if placed.token.source else ""
    return f"{where}, guess {place} of {len(guesses)}{source}" if place else where


def _beside(token: Token) -> str:
    """Which of the guesses that were tried at one place it is, where guesses branch."""
    if token.tried is None:
        return ""
    if token.status == "rejected":
        tried = f"first of {token.tried} guesses" if token.tried > 1 else "the only guess"
        return f"{tried} tried here, none of them kept"
    if token.tried == 1:
        return "the first guess tried here"
    return f"guess {token.tried} of those tried here; the ones before it were thrown away"


def _several(span: Span) -> list[str]:
    """A character that took several tokens, and how each came to be."""
    if len(span.tokens) == 1:
        return []
    statuses = ", ".join(placed.token.status for placed in span.tokens)
    return [f"{len(span.tokens)} tokens make this character: {statuses}"]


def _numbers(token: Token) -> list[str]:
    """The probabilities that the rule used; only those that exist."""
    named = (
        ("p", token.target_probability),
        ("q", token.draft_probability),
        ("accept", token.accept_probability),
        ("strict", token.strict_probability),
        ("draw", token.draw),
    )
    return ["   ".join(f"{name} {value:.4f}" for name, value in named if value is not None)]


def _column(candidates: tuple[Candidate, ...]) -> list[str]:
    return [
        f"{found.probability:.4f}  {_short(found.text, 14)}"
        for found in candidates[:MOST_CANDIDATES]
    ]


def _short(text: str, longest: int = _LONGEST_TEXT) -> str:
    pictured = visible(text)
    return pictured if len(pictured) <= longest else pictured[: longest - 1] + "…"


_EARLIER = Facts(
    title="Earlier text",
    status="",
    lines=[
        "Written by the run that this one continues.",
        "Both lanes have read it, and no figure counts it.",
    ],
    candidates=([], [], []),
)

_DECISIONS: dict[Status, str] = {
    "first": "The first token, from the prompt pass.",
    "corrected": "The target's own, in the place of the guess it rejected.",
    "bonus": "The target's own, behind a draft that was kept whole.",
    "plain": "The target's own; nothing was guessed.",
    "ignored": "Never decided: it stood behind a rejected guess.",
    "discarded": "Thrown away: it stood behind the end of the text.",
}
