"""The history: every run that was kept, found again by words and tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from app.history import rows
from app.history.archive import Imported, Kept, read_archive, write_archive
from app.history.comparison import Comparison, compare
from app.history.database import Database
from app.history.entry import Entry
from app.history.folding import folded
from app.history.layout import Damaged
from app.history.packing import packed, unpacked
from app.history.query import matching
from app.run.problems import Problem
from app.run.record import RunRecord


class History:
    """The runs in one file. Every method may be called from any thread and raises only Problem."""

    def __init__(self, path: Path) -> None:
        """Opens the file or begins it; a damaged one is set aside, and `trouble` says so."""
        self._database = Database(path)

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    @property
    def trouble(self) -> str:
        """What a person should be told of the file's state; empty while all is well."""
        return self._database.trouble

    def add(self, record: RunRecord) -> None:
        """Keeps a run, in the place of what was kept of it before; its tags and note stay.

        Private runs never come here: whoever calls this leaves them out.
        """
        data = packed(record)
        try:
            self._put(record, data)
        except Damaged as damage:
            self._database.begin_anew(damage)
            self._put(record, data)

    def get(self, run: str) -> RunRecord:
        """The whole record of a run."""
        found = self._database.read("SELECT record FROM records WHERE run = ?", (run,))
        if not found:
            raise _unknown(run)
        return unpacked(found[0][0], run)

    def entry(self, run: str) -> Entry:
        """A run as it stands in the list."""
        found = self._entries("WHERE run = ?", (run,))
        if not found:
            raise _unknown(run)
        return found[0]

    def search(
        self, text: str = "", tags: Sequence[str] = (), *, limit: int = 100, offset: int = 0
    ) -> list[Entry]:
        """Runs that hold every word of the text and carry every tag; the latest run first."""
        where, values = matching(text, tags)
        order = "ORDER BY moment IS NULL, moment DESC, run LIMIT ? OFFSET ?"
        return self._entries(f"{where} {order}", [*values, max(limit, 0), max(offset, 0)])

    def count(self, text: str = "", tags: Sequence[str] = ()) -> int:
        """How many runs such a search finds without its limit; by default all there are."""
        where, values = matching(text, tags)
        return int(self._database.read(f"SELECT count(*) FROM runs {where}", values)[0][0])

    def known_tags(self) -> tuple[str, ...]:
        """Every tag in use, in the order of the alphabet."""
        found = self._database.read("SELECT min(tag) FROM tags GROUP BY folded ORDER BY folded")
        return tuple(tag for (tag,) in found)

    def tag(self, run: str, tag: str) -> None:
        """Gives a run a tag, unless it has it in some writing."""
        name = rows.checked_tag(tag)
        with self._database.transaction() as connection:
            if not rows.holds(connection, run):
                raise _unknown(run)
            rows.put_tag(connection, run, tag=name)

    def untag(self, run: str, tag: str) -> None:
        """Takes a tag from a run, if it has it."""
        values = (run, folded(tag.strip()))
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM tags WHERE run = ? AND folded = ?", values)

    def note(self, run: str, text: str) -> None:
        """Writes the note of a run, in the place of the one before; an empty text removes it."""
        whole = rows.checked_note(text)
        with self._database.transaction() as connection:
            if not rows.holds(connection, run):
                raise _unknown(run)
            rows.put_note(connection, run, text=whole)

    def delete(self, runs: Iterable[str]) -> int:
        """Deletes runs for good, and says how many; unknown ones are passed over."""
        chosen = [(run,) for run in runs]
        with self._database.transaction() as connection:
            deleted = connection.executemany("DELETE FROM runs WHERE run = ?", chosen).rowcount
        self._database.scrub()
        return max(deleted, 0)

    def clear(self) -> None:
        """Deletes every run for good; a file that is too damaged for that is set aside."""
        try:
            with self._database.transaction() as connection:
                connection.execute("DELETE FROM runs")
            self._database.scrub()
        except Damaged as damage:
            self._database.begin_anew(damage)

    def export(self, runs: Iterable[str] | None, path: Path, *, overwrite: bool = False) -> None:
        """Writes runs (None: all) with tags and notes to a file that `import_` reads."""
        chosen = self._runs() if runs is None else list(runs)
        write_archive(map(self._kept, chosen), path, overwrite=overwrite)

    def import_(self, path: Path) -> Imported:
        """Takes in an exported file or a JSON report, once the whole of it has proved sound.

        A run that the history holds already stays as it is.
        """
        for kept in read_archive(path):
            _check(kept)
        fresh = [self._take_in(kept) for kept in read_archive(path)]
        return Imported(added=sum(fresh), known=len(fresh) - sum(fresh))

    def compare(self, runs: Iterable[str]) -> Comparison:
        """These runs side by side."""
        return compare([self.get(run) for run in runs])

    def reindex(self) -> int:
        """Derives anew what is searched from every record that can be read, and says how many."""
        done = 0
        for run in self._runs():
            try:
                record = self.get(run)
            except Problem:
                continue
            with self._database.transaction() as connection:
                if rows.holds(connection, run):
                    rows.put_index(connection, record)
                    done += 1
        return done

    def size(self) -> int:
        """Bytes on the disk."""
        return self._database.bytes()

    def close(self) -> None:
        """Lets go of the file."""
        self._database.close()

    def __enter__(self) -> History:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _put(self, record: RunRecord, data: bytes) -> None:
        with self._database.transaction() as connection:
            rows.put(connection, record, data=data)

    def _take_in(self, kept: Kept) -> bool:
        """Keeps an imported run unless it is known; says whether it was not."""
        data = packed(kept.record)
        with self._database.transaction() as connection:
            if rows.holds(connection, kept.record.run):
                return False
            rows.put(connection, kept.record, data=data)
            rows.put_note(connection, kept.record.run, text=kept.note)
            for tag in kept.tags:
                rows.put_tag(connection, kept.record.run, tag=rows.checked_tag(tag))
        return True

    def _kept(self, run: str) -> Kept:
        entry = self.entry(run)
        return Kept(self.get(run), entry.tags, entry.note)

    def _entries(self, where: str, values: Sequence[object]) -> list[Entry]:
        found = self._database.read(f"SELECT {rows.ENTRY_COLUMNS} FROM runs {where}", values)
        return [rows.entry(row, self._tags(row[0])) for row in found]

    def _tags(self, run: str) -> tuple[str, ...]:
        found = self._database.read("SELECT tag FROM tags WHERE run = ? ORDER BY folded", (run,))
        return tuple(tag for (tag,) in found)

    def _runs(self) -> list[str]:
        """Every run, the first one kept first."""
        return [run for (run,) in self._database.read("SELECT run FROM runs ORDER BY rowid")]


def _unknown(run: str) -> Problem:
    return Problem(f"The history holds no run {run!r}.", "It may have been deleted: search again.")


def _check(kept: Kept) -> None:
    """Raises Problem for an imported run that could not be kept."""
    packed(kept.record)
    rows.checked_note(kept.note)
    for tag in kept.tags:
        rows.checked_tag(tag)
