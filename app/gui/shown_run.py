"""The run that is shown: its record, what stands before its text, and whether it is private."""

from __future__ import annotations

import msgspec

from app.gui.continuation import Earlier, can_continue, continued, with_text_of
from app.gui.private_run import without_text
from app.run.record import RunRecord
from app.run.settings import RunSettings


class ShownRun:
    """The newest run, or a record that was opened."""

    def __init__(self) -> None:
        self.record: RunRecord | None = None
        self._private: dict[str, RunSettings] = {}
        self._earlier: dict[str, Earlier] = {}

    @property
    def ended(self) -> bool:
        """Whether there is a record that grows no more."""
        return self.record is not None and self.record.outcome != "running"

    @property
    def earlier(self) -> Earlier | None:
        """What stands before the text; None where that is not known."""
        if self.record is None or not self.record.settings.continues:
            return Earlier()
        return self._earlier.get(self.record.settings.continues)

    def can_continue(self, pair: str | None) -> bool:
        """Whether the run can be gone on with, and this pair is its own."""
        record = self.record
        return record is not None and record.settings.pair == pair and can_continue(record)

    def continuation(self, *, fresh: int) -> RunSettings | None:
        """The settings that go on from the run that is shown, whose text is kept for that."""
        record = self.record
        if record is None:
            return None
        self._earlier[record.run] = with_text_of(record, self.earlier or Earlier())
        settings, asked = continued(record, fresh=fresh), self.asked(record)
        return msgspec.structs.replace(settings, method_options=asked.method_options)

    def know(self, run: str, earlier: Earlier) -> None:
        """Takes in what was written up to the end of a run."""
        self._earlier[run] = earlier

    def keep_private(self, run: str, asked: RunSettings) -> None:
        """Minds that no word of a run may be kept, and the settings that were asked for: it was
        run with nothing to be kept of its text.
        """
        self._private[run] = asked

    def asked(self, record: RunRecord) -> RunSettings:
        """The settings of a run as they were asked for."""
        return self._private.get(record.run, record.settings)

    def is_private(self, run: str) -> bool:
        """Whether no word of this run may be kept."""
        return run in self._private

    def to_leave(self) -> RunRecord | None:
        """The record as it may leave the window; None while it grows."""
        if self.record is None or not self.ended:
            return None
        return without_text(self.record) if self.is_private(self.record.run) else self.record

    def words(self) -> str:
        """One sentence on what the run goes on from; empty if it does not."""
        if self.record is None or not self.record.settings.continues:
            return ""
        run = self.record.settings.continues
        if self.earlier is None:
            return f"Continues run {run}, whose text is not kept here."
        return f"Continues run {run} from token {self.earlier.tokens + 1}."
