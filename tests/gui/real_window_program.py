"""The program itself, in 32-bit precision and for a short text; it prints its state."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.extend(map(str, Path(__file__).resolve().parents[:3]))


def main() -> int:
    from PySide6.QtCore import QTimer

    from app import files
    from app.gui import application

    # The models stay where they are; no run is kept among the person's own.
    home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    files.history_file = lambda: Path(home.name) / "history.sqlite"
    shown = application.show

    def show(app, window) -> int:
        rows = window.page.form.rows
        rows["precision"].field.put("fp32")
        rows["max_new_tokens"].field.put(40)
        last: list[dict] = []

        def tell() -> None:
            record = window.record
            state = {
                "phase": window._link.phase,
                "job": window._link.job,
                "active": window.isActiveWindow(),
                "run": record.run if record else None,
                "outcome": record.outcome if record else None,
                "words": sum(len(lane.text.toPlainText()) > 0 for lane in window.page.lanes),
                "notice": window.page.notice.isVisible() and window.page.notice.text.text(),
            }
            if [state] != last:
                last[:] = [state]
                print(json.dumps(state), flush=True)

        clock = QTimer(window)
        clock.timeout.connect(tell)
        clock.start(50)
        return shown(app, window)

    application.show = show
    return application.main()


if __name__ == "__main__":
    sys.exit(main())
