"""What must hold of the counts of every run, partial ones too."""

from __future__ import annotations

from collections.abc import Sequence

from app.run.events import Round, Status, Token
from app.run.metrics import counts
from app.run.record import Repetition


def violations(repetition: Repetition, max_new_tokens: int | None = None) -> list[str]:
    """The identities that a repetition breaks; none, for a sound engine.

    With the run's cap, also whether every round left room for the target's own token.
    """
    found = [
        f"loop {round_.index + 1}: {fault}"
        for round_ in repetition.rounds
        for fault in _round_violations(round_)
    ]
    tally = counts(repetition)
    if tally.committed != len(repetition.tokens):
        found.append("committed tokens and their counts differ")
    if repetition.first is None and repetition.rounds:
        found.append("a loop was committed before the first token")
    if [round_.index for round_ in repetition.rounds] != list(range(len(repetition.rounds))):
        found.append("loops are not numbered in order")
    if any(_stopped(round_) for round_ in repetition.rounds[:-1]):
        found.append("a loop follows the end of the text")
    if any(map(_stopped, repetition.rounds[-1:])) and repetition.finish in ("length", "context"):
        found.append("a guess ends the text, but nothing in the text says so")
    if max_new_tokens is not None:
        found += _cap_violations(repetition, max_new_tokens)
    return found


def _cap_violations(repetition: Repetition, max_new_tokens: int) -> list[str]:
    """Rounds that might have guessed past the cap, and a text that did."""
    found, written = [], 1
    for round_ in repetition.rounds:
        if round_.limit > max_new_tokens - written - 1:
            found.append(f"loop {round_.index + 1}: its limit reaches past the cap")
        written += len(round_.committed)
    if len(repetition.tokens) > max_new_tokens:
        found.append("more tokens were committed than the cap allows")
    return found


def _round_violations(round_: Round) -> list[str]:
    """The identities that one round breaks."""
    n = {status: round_.count(status) for status in ("rejected", "corrected", "bonus", "plain")}
    drafted, accepted = round_.drafted, round_.count("accepted")
    branches = round_.nodes is not None
    whole = drafted > 0 and (n["rejected"] == 0 if branches else accepted == drafted)
    rules = {
        "at most one rejection": n["rejected"] <= 1,
        "corrected equals rejected": n["corrected"] == n["rejected"],
        "bonus follows a fully accepted draft": n["bonus"] == int(whole and not _stopped(round_)),
        "plain is a loop without a draft": n["plain"] == int(drafted == 0),
        "drafted is within the limit": drafted <= round_.limit,
        "something was committed": bool(round_.committed),
        "accepted tokens, then at most one of the target's own": _in_order(
            round_.committed, "accepted", ("accepted", "corrected", "bonus", "plain"), last=True
        ),
        "thrown tokens are one rejected and ignored ones, or discarded ones": _in_order(
            round_.thrown, "ignored", ("rejected", "ignored") if branches else ("rejected",)
        )
        or _in_order(round_.thrown, "discarded", ("discarded",)),
        "guesses that branch are told a level each, and counted": _counted(round_),
    }
    return [rule for rule, holds in rules.items() if not holds]


def _counted(round_: Round) -> bool:
    """Whether a tree has no fewer guesses than were decided, and than it has levels; and a chain
    has no such counts.
    """
    guesses = (*round_.committed, *round_.thrown)
    if round_.nodes is None:
        return all(token.tried is None for token in guesses)
    decided = [token for token in guesses if token.status in ("accepted", "rejected")]
    each = all(token.tried is not None and token.tried >= 1 for token in decided)
    return each and max(round_.tested_nodes, round_.drafted) <= round_.nodes


def _stopped(round_: Round) -> bool:
    """Whether the text ends at a guess of this round."""
    return not round_.committed or round_.committed[-1].status == "accepted"


def _in_order(
    tokens: Sequence[Token], usual: Status, odd: tuple[Status, ...], *, last: bool = False
) -> bool:
    """Whether all have the usual status, but for the first (or last) one, which has an odd one."""
    statuses = [token.status for token in (reversed(tokens) if last else tokens)]
    return all(status in odd for status in statuses[:1]) and set(statuses[1:]) <= {usual}
