"""Runs an audit in this process and says what it has found."""

from __future__ import annotations

from typing import Any

import msgspec

from app.cli.interrupt import STOPPED, Interrupt
from app.cli.progress_line import ProgressLine
from app.cli.screen import remarks, results, say
from app.library.catalogue import Catalogue
from app.run.auditing import Audit, Audited, audit_words


def run_audit(wanted: Audit, catalogue: Catalogue, *, as_json: bool) -> int:
    """Audits, shows what was found, and returns the exit code: 0 only if the law was kept."""
    wanted.check()
    with Interrupt() as interrupt, ProgressLine(remarks()) as progress:
        # Imported here: torch takes seconds, and only an audit needs it.
        from app.studies.workbench import Workbench

        found = Workbench(catalogue).audit(wanted, report=progress.show, pause=interrupt.pause)
    say(results(), _json(found) if as_json else audit_words(found))
    if not found.passed:
        return 1
    return STOPPED if found.runs < found.asked else 0


def _json(found: Audited) -> str:
    """Every number of the audit, and what follows from them."""
    plain: dict[str, Any] = msgspec.to_builtins(found)
    plain |= {"verdict": found.verdict, "passed": found.passed}
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
