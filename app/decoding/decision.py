"""A round's verdict on the host, and the tokens that it makes of a draft."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
import torch
from torch import Tensor

from app.decoding.commit import Committed
from app.decoding.contracts import Draft, TargetRows, Verdict
from app.decoding.main_line import MainLine, main_line
from app.decoding.parcel import Parcel
from app.run.events import Candidate, Inspection, Status, Token
from app.run.settings import Detail

_CANDIDATES = 5
"""How many tokens of each law are kept at detail `full`."""

_NUMBERS = (
    "target_probability",
    "draft_probability",
    "accept_probability",
    "strict_probability",
    "draw",
)
"""What a verdict may say of each guess, by the names that tokens carry."""

Preview = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Decision:
    """What the rule decided, as plain numbers."""

    finite: bool
    draft_finite: bool
    guesses: list[int]
    """In order; of a tree the one that stands for each level."""
    accepted: int
    next: int
    numbers: dict[str, list[float]]
    """Per guess, or a single value; absent where the rule uses no such number."""
    rejected: bool
    """Whether the guess behind the accepted ones was decided, and thrown away."""
    nodes: int | None = None
    """All guesses of a tree; None for a chain."""
    tried: tuple[int, ...] = ()
    """How many guesses of a tree were decided at each level; none for a chain."""

    @property
    def block(self) -> list[int]:
        """The accepted guesses and the token after them."""
        return [*self.guesses[: self.accepted], self.next]


def bring_home(draft: Draft, rows: TargetRows, verdict: Verdict, *, detail: Detail) -> Decision:
    """Copies a verdict to the host, in one go."""
    parcel = Parcel()
    parcel.add("peaks", rows.peaks)
    parcel.add("draft_peaks", draft.peaks)
    parcel.add("accepted", verdict.accepted)
    parcel.add("next", verdict.next)
    parcel.add("guesses", draft.block.tensor())
    for name in _NUMBERS:
        parcel.add(name, getattr(verdict, name))
    parcel.add("lenient", verdict.lenient)
    parcel.add("next_probability", verdict.next_probability)
    if detail == "full":
        _add_inspection(parcel, draft, rows, verdict)
    if draft.block.tree is not None:
        parcel.add("parents", draft.block.tree.parents)
        parcel.add("kept", verdict.kept)
        parcel.add("tested", verdict.tested)
    home = parcel.bring_home()
    guesses = [int(value) for value in home.pop("guesses")]
    accepted, token = (home.pop(name)[0] for name in ("accepted", "next"))
    decision = Decision(
        all(map(math.isfinite, home.pop("peaks"))),
        all(map(math.isfinite, home.pop("draft_peaks", []))),
        guesses,
        int(accepted),
        int(token),
        home,
        rejected=accepted < len(guesses),
    )
    if draft.block.tree is not None:
        return _by_levels(decision, draft)
    draft.block.settle(guesses)
    return decision


def _by_levels(decision: Decision, draft: Draft) -> Decision:
    """What was decided of a tree, told as one guess a level."""
    numbers = decision.numbers
    parents = [int(value) for value in numbers.pop("parents")]
    draft.block.settle(decision.guesses, parents)
    line = main_line(parents, numbers.pop("kept"), numbers.pop("tested"))
    return replace(
        decision,
        guesses=[decision.guesses[place] for place in line.guesses],
        numbers=_along(line, numbers),
        rejected=line.rejected,
        nodes=len(decision.guesses),
        tried=line.tried,
    )


def _along(line: MainLine, home: dict[str, list[float]]) -> dict[str, list[float]]:
    """A tree's numbers at the guesses and rows of its main line."""
    told = dict(home)
    for name in set(_NUMBERS) & set(home):
        told[name] = [home[name][place] for place in line.guesses]
    width = min(_CANDIDATES, len(home.get("target_ids", [])))
    for name in {"target_ids", "target_values"} & set(home):
        rows = (home[name][row * width : (row + 1) * width] for row in line.rows)
        told[name] = [value for row in rows for value in row]
    return told


def committed_tokens(
    decision: Decision, draft: Draft, committed: Committed, *, preview: Preview
) -> tuple[Token, ...]:
    """The tokens that became text."""
    kept = min(len(committed), decision.accepted)
    tokens = [
        _guess(decision, draft, place, status="accepted", text=committed.pieces[place])
        for place in range(kept)
    ]
    tokens = [_with_inspection(token, decision, i, preview) for i, token in enumerate(tokens)]
    if len(committed) > decision.accepted:
        token = Token(
            id=decision.next,
            text=committed.pieces[-1],
            status=_next_status(decision),
            target_probability=_value(decision, "next_probability", 0),
        )
        tokens.append(_with_inspection(token, decision, decision.accepted, preview))
    return tuple(tokens)


def thrown_tokens(
    decision: Decision, draft: Draft, committed: Committed, *, preview: Preview
) -> tuple[Token, ...]:
    """The guesses that did not become text, in draft order.

    Behind a stop every guess is discarded: a rejection there does not exist.
    """
    stopped = len(committed) <= decision.accepted
    tokens = []
    for place in range(min(len(committed), decision.accepted), len(decision.guesses)):
        rejected = not stopped and decision.rejected and place == decision.accepted
        status: Status = "discarded" if stopped else "rejected" if rejected else "ignored"
        text = preview(decision.guesses[place])
        token = _guess(decision, draft, place, status=status, text=text)
        tokens.append(_with_inspection(token, decision, place, preview) if rejected else token)
    return tuple(tokens)


def _next_status(decision: Decision) -> Status:
    if not decision.guesses:
        return "plain"
    return "corrected" if decision.rejected else "bonus"


def _guess(decision: Decision, draft: Draft, place: int, *, status: Status, text: str) -> Token:
    """A guess with the numbers the rule used; a guess that was never decided has none of them."""
    decided = status in ("accepted", "rejected")
    token = Token(
        id=decision.guesses[place],
        text=text,
        status=status,
        source=draft.source or None,
        kept_by=_kept_by(decision, place) if status == "accepted" else None,
        tried=decision.tried[place] if decided and decision.tried else None,
    )
    used = {name: _value(decision, name, place) for name in _NUMBERS if decided}
    return msgspec.structs.replace(token, **used)


def _kept_by(decision: Decision, place: int) -> Literal["rule", "leniency"]:
    return "leniency" if _value(decision, "lenient", place) else "rule"


def _value(decision: Decision, name: str, place: int) -> float | None:
    values = decision.numbers.get(name)
    return values[place] if values else None


def _add_inspection(parcel: Parcel, draft: Draft, rows: TargetRows, verdict: Verdict) -> None:
    """The likeliest tokens of target (every row), draft (every guess) and residual (the next)."""
    _add_best(parcel, "target", rows.probabilities)
    if draft.law is not None:
        _add_best(parcel, "draft", draft.law)
    if verdict.next_law is not None:
        _add_best(parcel, "residual", verdict.next_law[None])


def _add_best(parcel: Parcel, name: str, law: Tensor) -> None:
    best = torch.topk(law, min(_CANDIDATES, law.shape[-1]), dim=-1)
    parcel.add(f"{name}_ids", best.indices)
    parcel.add(f"{name}_values", best.values)


def _with_inspection(token: Token, decision: Decision, place: int, preview: Preview) -> Token:
    """The token with the candidates of its place, where they were kept."""
    if "target_ids" not in decision.numbers:
        return token
    corrected = token.status == "corrected"
    inspection = Inspection(
        target=_candidates(decision, "target", place, preview),
        draft=_candidates(decision, "draft", place, preview),
        residual=_candidates(decision, "residual", 0, preview) if corrected else (),
    )
    return msgspec.structs.replace(token, inspection=inspection)


def _candidates(
    decision: Decision, name: str, place: int, preview: Preview
) -> tuple[Candidate, ...]:
    ids = decision.numbers.get(f"{name}_ids", [])
    values = decision.numbers.get(f"{name}_values", [])
    width = min(_CANDIDATES, len(ids))
    here = slice(place * width, (place + 1) * width)
    return tuple(
        Candidate(int(token), preview(int(token)), value)
        for token, value in zip(ids[here], values[here], strict=True)
        if value > 0
    )
