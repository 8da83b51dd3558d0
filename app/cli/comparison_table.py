"""What `models compare` prints: the verdict, then what the two models are to each other."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.style import Style

from app.cli.screen import put, say
from app.cli.tables import table
from app.library.compatibility_report import CompatibilityReport, Meaning

_GOOD = Style(color="green")
_BAD = Style(color="red")
_UNKNOWN = "unknown"


def show_comparison(console: Console, found: CompatibilityReport) -> None:
    """The verdict in one line, and under it all that was compared."""
    say(console, found.sentence, style=_GOOD if found.fits else _BAD)
    if found.remedy:
        say(console, found.remedy)
    say(console, f"Target: {found.target.folder}")
    say(console, f"Draft: {found.draft.folder}")
    put(console, table(("", "Target", "Draft"), _sides(found)))
    for line in _lines(found):
        say(console, line)
    for warning in found.warnings:
        say(console, f"Note: {warning}")


def _sides(found: CompatibilityReport) -> Iterator[tuple[str, ...]]:
    """A row for every fact of both."""
    sides = (found.target, found.draft)
    for name, field in (
        ("Parameters", "parameters"),
        ("Rows, padding included", "rows"),
        ("Tokens", "tokens"),
        ("Context", "context_length"),
    ):
        values = [getattr(side, field) for side in sides]
        yield name, *(_UNKNOWN if value is None else f"{value:,}" for value in values)
    for special in found.special:
        yield (
            f"{special.role} token",
            _token(special.target, special.target_id),
            _token(special.draft, special.draft_id),
        )


def _lines(found: CompatibilityReport) -> Iterator[str]:
    """What is told of the two together."""
    if found.differing:
        yield f"Ids that differ: {found.differing:,}. {_named(found.first_differing)}"
    if found.added_differing:
        yield f"Added tokens that differ: {found.added_differing:,}. {_named(found.first_added)}"
    if found.overlap is not None:
        yield (
            f"Tokens of the same text: {found.overlap.shared:,}, "
            f"{found.overlap.of_target:.1%} of the target's and {found.overlap.of_draft:.1%} of "
            "the draft's."
        )
    if found.template is not None:
        yield f"Chat template: {found.template}; the target's is used."
    if found.cut_differently:
        yield (
            f"Text may be cut differently ({', '.join(found.cut_differently)}): it does not "
            "matter, as the target's tokenizer reads the prompt for both."
        )
    proofs = found.proofs or ("not tried (--load tries them).",)
    for proof in proofs:
        yield f"Load proofs: {proof}"


def _named(meanings: tuple[Meaning, ...]) -> str:
    told = (f"{one.id}: {_shown(one.target)} / {_shown(one.draft)}" for one in meanings)
    return f"The first: {', '.join(told)}."


def _token(text: str | None, id_: int | None) -> str:
    if text is None:
        return "none"
    return f"{text} ({'not in the vocabulary' if id_ is None else id_})"


def _shown(token: str | None) -> str:
    return "nothing" if token is None else repr(token)
