"""Killed at any moment, shared by processes, damaged in any way: what was kept stays, or is set
aside."""

import random
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some

from app.history import History
from app.history.database import set_aside
from app.history.layout import APPLICATION, LAYOUT
from app.run.problems import Problem

PROGRAM = Path(__file__).with_name("writing_program.py")


def begin(path, name):
    command = [sys.executable, str(PROGRAM), str(path), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill(writer):
    """Kills a writer and gives what it had said."""
    writer.kill()
    said = writer.communicate()[0].splitlines()
    return said if not said or said[-1][:1] in "+-" else said[:-1]


def standing(said):
    gone = {line[1:] for line in said if line.startswith("-")}
    return {line[1:] for line in said if line.startswith("+")} - gone


def check_whole(path, expected):
    with History(path) as history:
        assert history.trouble == ""
        runs = {entry.run for entry in history.search(limit=10**6)}
        assert expected <= runs
        for run in runs:
            assert history.get(run).run == run
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("SELECT count(*) FROM runs").fetchone() == (len(runs),)
    assert connection.execute("SELECT count(*) FROM records").fetchone() == (len(runs),)
    connection.close()


def test_a_writer_that_is_killed_at_any_moment_leaves_whole_runs(path):
    expected = set()
    for attempt in range(6):
        writer = begin(path, f"w{attempt}")
        writer.stdout.readline() if attempt % 2 else None  # also before the first run
        time.sleep(random.uniform(0, 0.3))
        expected |= standing([f"+w{attempt}-0"] * (attempt % 2) + kill(writer))
        check_whole(path, expected)
    assert expected


def test_a_writer_that_is_killed_while_it_begins_the_file_leaves_none_or_a_sound_one(path):
    for attempt in range(4):
        writer = begin(path, f"b{attempt}")
        deadline = time.monotonic() + 20
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(attempt * 0.002)
        said = kill(writer)
        check_whole(path, standing(said))
        for file in path.parent.iterdir():
            file.unlink()


def test_two_processes_write_while_a_third_searches(path):
    writers = [begin(path, name) for name in ("a", "b")]
    for writer in writers:
        writer.stdout.readline()
    with History(path) as history:
        for _ in range(20):
            assert history.count() >= 2
            history.search("hello", limit=5)
    check_whole(path, set().union(*(standing(kill(writer)) for writer in writers)))


def test_threads_share_one_history(history, make):
    def write(name):
        for number in range(10):
            history.add(make(f"{name}{number}"))
            history.search("pair")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert history.count() == 30


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"no database at all, but long enough to look at" * 100,
        lambda data: data[:5000],
        lambda data: data[: len(data) // 2],
        lambda data: data[:100] + bytes(len(data) - 100),
        lambda data: bytes(len(data)),
    ],
)
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(path, make, damage):
    with History(path) as history:
        for number in range(20):
            history.add(make(f"r{number}", prompt=f"prompt {number} " * 200))
    data = damage(path.read_bytes())
    path.write_bytes(data)
    with History(path) as history:
        assert "damaged" in history.trouble
        assert history.count() == 0
        history.add(make("new"))
    (kept,) = path.parent.glob("history-damaged-*.sqlite")
    assert str(kept) in history.trouble
    assert kept.read_bytes() == data
    with History(path) as history:
        assert history.trouble == ""
        assert history.count() == 1


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(place=3074, noise=b"\x80")  # in the text of the layout
@example(place=3807, noise=b" ")  # in the name of a column
@example(place=47, noise=b"\x05")  # the number of the file's format
@example(place=18, noise=b"\x05")  # who may write it
@example(place=16, noise=b"\x01\x00")  # the size of its pages
@given(place=some.integers(0, 10**6), noise=some.binary(min_size=1, max_size=600))
def test_whatever_is_damaged_the_program_goes_on(tmp_path_factory, make, place, noise):
    path = tmp_path_factory.mktemp("noise") / "history.sqlite"
    with History(path) as history:
        for number in range(6):
            history.add(make(f"r{number}", prompt=f"prompt {number} " * 200))
    data = bytearray(path.read_bytes())
    place %= len(data)
    data[place : place + len(noise)] = noise
    path.write_bytes(data)
    try:
        with History(path) as history:
            for entry in history.search():
                try:
                    history.get(entry.run)
                except Problem:
                    history.delete([entry.run])
            history.add(make("new"))
            assert history.get("new") == make("new")
    except Problem as problem:
        assert "layout" in problem.message or "damaged" in problem.message  # noqa: PT017


def test_a_write_into_damage_begins_anew_and_says_so(path, make, monkeypatch):
    with History(path) as history:
        history.add(make("old"))
        sound, tries = History._put, []

        def put(self, record, data):
            tries.append(record.run)
            if len(tries) > 1:
                return sound(self, record, data)
            with self._database.transaction():
                error = sqlite3.DatabaseError("database disk image is malformed")
                error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                raise error

        monkeypatch.setattr(History, "_put", put)
        history.add(make("new"))
        assert [entry.run for entry in history.search()] == ["new"]
        assert "kept as" in history.trouble
    (kept,) = path.parent.glob("history-damaged-*.sqlite")
    with History(kept) as old:
        assert [entry.run for entry in old.search()] == ["old"]


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is in use cannot be renamed")
def test_a_history_that_another_process_has_set_aside_is_taken_up_anew(path, make):
    with History(path) as one:
        one.add(make("old"))
        set_aside(path)
        with History(path) as two:
            two.add(make("by two"))
            one.add(make("by one"))
            assert {entry.run for entry in two.search()} == {"by one", "by two"}
            assert one.count() == 2
    assert len(list(path.parent.glob("history-damaged-*.sqlite"))) == 1


def test_another_programs_database_is_set_aside(path):
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE things (a)")
    other.commit()
    other.close()
    with History(path) as history:
        assert history.trouble
    assert len(list(path.parent.glob("history-damaged-*"))) == 1


def test_a_newer_history_is_refused_and_left_alone(path):
    with History(path):
        pass
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    newer.close()
    before = path.read_bytes()
    with pytest.raises(Problem, match="newer Foretoken"):
        History(path)
    assert path.read_bytes() == before


def test_the_file_says_what_it_is(path):
    with History(path):
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
        assert connection.execute("PRAGMA user_version").fetchone() == (LAYOUT,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()


def test_an_old_journal_never_reaches_a_new_file(path):
    path.parent.mkdir()
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).write_bytes(b"old" + ending.encode())
    kept = set_aside(path)
    again = path.with_name(path.name + "-wal")
    assert not path.exists()
    assert not again.exists()
    assert kept.with_name(kept.name + "-wal").read_bytes() == b"old-wal"
    path.write_bytes(b"second")
    assert set_aside(path) != kept


def test_a_place_where_nothing_can_be_kept_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    for place in (tmp_path / "file" / "history.sqlite", tmp_path):
        with pytest.raises(Problem):
            History(place)


def test_only_its_owner_may_read_it(path, make):
    with History(path) as history:
        history.add(make("r"))
        if sys.platform != "win32":
            for file in (path, path.with_name(path.name + "-wal")):
                assert file.stat().st_mode & 0o077 == 0


def test_what_is_deleted_leaves_the_disk(path, make):
    with History(path) as history:
        history.add(make("r", prompt="a-secret-word " * 50))
        history.add(make("s", prompt="other"))
        assert history.delete(["r", "unknown"]) == 1
        for file in path.parent.iterdir():
            assert b"a-secret-word" not in file.read_bytes()
        assert history.count() == 1
