"""What is kept beside a trained head: a card that tells where it comes from, and its curve."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.run.problems import Problem
from app.run.teaching import CurvePoint, Taught

CARD = "card.md"
CURVE = "curve.csv"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a card tells of a training, beside what came of it."""

    target: str
    fingerprint: str
    folder_licence: str
    """The target's licence, if its catalogue entry tells it."""
    prompts: str
    """What the target was asked, in words."""
    seed: int
    precision: str
    """What the target wrote in."""
    device: str
    versions: dict[str, str]
    """Of the program and its libraries."""


def in_a_sentence(taught: Taught) -> str:
    """How a head was trained."""
    best = taught.best
    return (
        f"On {taught.written:,} tokens written by the target in {_minutes(taught.writing_seconds)} "
        f"min, visited {best.tokens / max(taught.written, 1):.1f} times in "
        f"{_minutes(best.seconds)} min; on held-out texts, guesses of depths 1 to "
        f"{len(best.acceptance)} are kept in {percentages(best.acceptance)} of cases."
    )


def percentages(shares: Sequence[float]) -> str:
    """Shares as percentages, divided by slashes."""
    return " / ".join(f"{share:.1%}" for share in shares)


def write_card(folder: Path, taught: Taught, facts: Facts) -> None:
    """Writes the card and the curve. Raises Problem if the disk does not take them."""
    try:
        (folder / CARD).write_text(card(taught, facts), encoding="utf-8")
        (folder / CURVE).write_text(curve(taught.curve), encoding="utf-8")
    except OSError as error:
        raise Problem(
            f"The card could not be written to {folder}: {error.strerror or error}.",
            "Make room on the disk, or choose another folder.",
        ) from None


def curve(points: Sequence[CurvePoint]) -> str:
    """The curve as CSV, a row a point; shares from 0 to 1, losses in nats."""
    text = io.StringIO()
    depths = range(1, 1 + max((len(one.acceptance) for one in points), default=0))
    losses = range(1, 1 + max((len(one.loss) for one in points), default=0))
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            "tokens",
            "seconds",
            *(f"acceptance_{depth}" for depth in depths),
            "kept",
            *(f"loss_{depth}" for depth in losses),
        ]
    )
    for one in points:
        loss = [f"{value:.4f}" for value in one.loss] or [""] * len(losses)
        shares = [f"{share:.4f}" for share in one.acceptance]
        writer.writerow([one.tokens, f"{one.seconds:.1f}", *shares, f"{one.kept:.4f}", *loss])
    return text.getvalue()


def card(taught: Taught, facts: Facts) -> str:
    """The card in Markdown."""
    best = taught.best
    depths = range(1, len(best.acceptance) + 1)
    lines = [
        f"# A draft head for {facts.target}",
        "",
        "Guesses ahead of this target, and of no other: one decoder layer that reads the target's "
        "features. Made by `foretoken train`. The file holds only what was trained; embeddings and "
        "output rows are the target's.",
        "",
        f"- Target: {facts.target}; fingerprint of its weights `{facts.fingerprint}`",
        f"- Texts: {taught.written:,} tokens that the target wrote in "
        f"{_minutes(taught.writing_seconds)} min, in {facts.precision} on {facts.device}, sampled "
        f"at several temperatures; {facts.prompts}; seed {facts.seed}",
        f"- Lessons: {best.tokens:,} tokens visited in {_minutes(best.seconds)} min"
        + ("; ended early, as it no longer got better" if taught.stopped_early else ""),
        f"- Vocabulary: its tokens are {taught.coverage:.1%} of what the target wrote",
        f"- Kept on held-out texts, by depth: {percentages(best.acceptance)}; "
        f"{best.kept:.2f} guesses of a draft of {len(best.acceptance)}",
        f"- Versions: {', '.join(f'{name} {one}' for name, one in facts.versions.items())}",
        "",
        "Licence: its weights began as a part of the target's, and its texts are the target's own; "
        f"the target's licence{_told(facts.folder_licence)} says what may be done with it.",
        "",
        "## Learning curve",
        "",
        "Of the guesses at a depth whose forerunners were kept, the share that the target would "
        "keep too, drafting greedily from every place of held-out texts that it wrote greedily.",
        "",
        "| tokens | min | " + " | ".join(f"depth {depth}" for depth in depths) + " | kept | loss |",
        "|" + "---:|" * (len(best.acceptance) + 4),
    ]
    for one in taught.curve:
        cells = [
            f"{one.tokens:,}",
            _minutes(one.seconds),
            *(f"{share:.1%}" for share in one.acceptance),
            f"{one.kept:.2f}",
            " / ".join(f"{value:.2f}" for value in one.loss) or "–",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _told(licence: str) -> str:
    return f" ({licence})" if licence else ""


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"
