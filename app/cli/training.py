"""Trains a draft head in this process: progress, the learning curve as it comes, how to use it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.cli.interrupt import STOPPED, Interrupt
from app.cli.progress_line import ProgressLine
from app.cli.screen import put, remarks, results, say, warn
from app.cli.tables import table
from app.library.catalogue import Catalogue
from app.library.head_entry import head_entry
from app.run.problems import Cancelled
from app.run.teaching import CurvePoint, Taught, Teach


def run_train(catalogue: Catalogue, wanted: Teach, *, as_json: bool) -> int:
    """Trains, shows what came of it, and returns the exit code."""
    with Interrupt() as interrupt, ProgressLine(remarks()) as progress:
        # Imported here: torch takes seconds, and only a training needs it.
        from app.training.teaching import teach

        shown = _Curve(progress, quiet=as_json)
        try:
            interrupt.pause()
            taught = teach(
                catalogue,
                wanted,
                report=progress.show,
                point=shown.show,
                pause=interrupt.pause,
            )
        except Cancelled:
            progress.close()
            warn(f"Stopped; what was done is kept in {wanted.out}: the same command goes on.")
            return STOPPED
    entry = head_entry(catalogue, wanted.target, Path(taught.head))
    if as_json:
        said = {"models_yaml": entry, **msgspec.to_builtins(taught)}
        say(results(), msgspec.json.encode(said).decode())
    else:
        _show(taught, entry)
    return 0


class _Curve:
    """The learning curve, a line for each point as it comes."""

    def __init__(self, progress: ProgressLine, *, quiet: bool) -> None:
        self._progress = progress
        self._quiet = quiet
        self._begun = False

    def show(self, point: CurvePoint) -> None:
        """One more point; on stderr where stdout is kept for JSON."""
        self._progress.close()
        console = remarks() if self._quiet else results()
        if not self._begun:
            depths = range(1, len(point.acceptance) + 1)
            head = "".join(f"{f'depth {depth}':>9}" for depth in depths)
            say(console, "Kept on held-out texts, by depth, and guesses kept of a whole draft:")
            say(console, f"{'tokens':>12}{'min':>8}{head}{'kept':>8}   loss by depth")
            self._begun = True
        shares = "".join(f"{share:>9.1%}" for share in point.acceptance)
        loss = " / ".join(f"{one:.2f}" for one in point.loss) or "–"
        say(
            console,
            f"{point.tokens:>12,}{point.seconds / 60:>8.1f}{shares}{point.kept:>8.2f}   {loss}",
        )


def _show(taught: Taught, entry: str) -> None:
    """The end of a training: what the head is worth, and the lines that offer it."""
    best = taught.best
    rows = [
        ("Written by the target, tokens", f"{taught.written:,}"),
        ("Writing, minutes", f"{taught.writing_seconds / 60:.1f}"),
        ("Learned from, tokens with repeats", f"{taught.curve[-1].tokens:,}"),
        ("Teaching, minutes", f"{taught.curve[-1].seconds / 60:.1f}"),
        ("Written tokens that it can guess", f"{taught.coverage:.1%}"),
        *(
            (f"Kept at depth {depth}", f"{share:.1%}")
            for depth, share in enumerate(best.acceptance, start=1)
        ),
        (f"Guesses kept of a draft of {len(best.acceptance)}", f"{best.kept:.2f}"),
    ]
    say(results(), "")
    put(results(), table(("Figure", "Value"), rows))
    if taught.stopped_early:
        say(results(), "It ended early, as the head no longer got better.")
    say(results(), f"The head: {taught.head} (card.md tells where it comes from)")
    say(results(), "To use it, add this to your models.yaml:\n")
    say(results(), entry)
