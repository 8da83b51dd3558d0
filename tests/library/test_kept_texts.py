"""The texts that are kept for suffix decoding: by target, the newest, and gone when let go."""

import multiprocessing
import sqlite3
import stat
import sys

import pytest

from app.library.kept_texts import PATIENCE, KeptSize, KeptTexts, prompt_hash
from app.run.problems import Problem


@pytest.fixture
def kept(tmp_path):
    return KeptTexts(tmp_path / "data" / "texts.sqlite")


def test_a_text_comes_back_as_it_was_kept(kept):
    kept.add("one", prompt=[5, 6], ids=[1, 70_000, 3], most=9)
    kept.add("two", prompt=[5], ids=[4], most=9)
    kept.add("one", prompt=[], ids=[], most=9)
    again = KeptTexts(kept.path)
    numbers = list(again.lengths("one"))
    texts = again.texts("one", since=0)
    assert [text.number for text in texts] == numbers == sorted(numbers)
    assert [text.ids for text in texts] == [(1, 70_000, 3), ()]
    assert [text.prompt for text in texts] == [prompt_hash([5, 6]), prompt_hash([])]
    assert again.texts("one", since=numbers[1])[0].ids == ()
    assert again.sizes() == [KeptSize("one", 2, 3), KeptSize("two", 1, 1)]


def test_the_oldest_go_first_and_only_those_of_the_same_target(kept):
    kept.add("other", prompt=[0], ids=[0], most=2)
    for token in range(5):
        kept.add("one", prompt=[token], ids=[token], most=2)
    assert [text.ids for text in kept.texts("one", since=0)] == [(3,), (4,)]
    assert len(kept.lengths("other")) == 1


def test_numbers_are_never_used_again(kept):
    kept.add("one", prompt=[], ids=[1], most=1)
    (first,) = list(kept.lengths("one"))
    kept.clear()
    kept.add("one", prompt=[], ids=[2], most=1)
    assert next(iter(kept.lengths("one"))) > first


def test_nothing_of_a_text_stays_in_the_file_once_it_was_let_go(kept):
    secret = list(range(1_000_000, 1_000_040))
    kept.add("one", prompt=secret, ids=secret, most=9)
    data = (1_000_017).to_bytes(4, sys.byteorder)
    assert data in kept.path.read_bytes()
    kept.clear()
    assert kept.sizes() == []
    files = list(kept.path.parent.iterdir())
    assert not any(data in file.read_bytes() for file in files)
    assert not any(prompt_hash(secret) in file.read_bytes() for file in files)


def test_a_prompt_is_not_kept(kept):
    kept.add("one", prompt=[1_000_017, 1_000_018], ids=[1], most=9)
    assert (1_000_017).to_bytes(4, sys.byteorder) not in kept.path.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_only_its_owner_may_read_the_file(kept):
    kept.add("one", prompt=[], ids=[1], most=9)
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o600


def test_nothing_is_made_by_asking_how_much_is_kept(kept):
    assert kept.sizes() == []
    assert not kept.path.exists()


def test_a_damaged_file_says_what_to_do_and_can_be_let_go(kept):
    kept.path.parent.mkdir()
    kept.path.write_bytes(b"no database" * 500)
    for use in (kept.sizes, lambda: kept.lengths("one")):
        with pytest.raises(Problem, match="damaged") as found:
            use()
        assert "foretoken texts --clear" in found.value.remedy
    kept.clear()
    kept.add("one", prompt=[], ids=[1], most=9)
    assert kept.sizes() == [KeptSize("one", 1, 1)]


def test_a_folder_that_cannot_be_written_is_a_problem(kept):
    kept.path.parent.write_text("a file where the folder should be")
    with pytest.raises(Problem, match="cannot be used"):
        kept.add("one", prompt=[], ids=[1], most=9)


def test_a_file_that_another_holds_for_long_is_a_problem(kept, monkeypatch):
    kept.add("one", prompt=[], ids=[1], most=9)
    monkeypatch.setattr("app.library.kept_texts.PATIENCE", 0.1)
    assert PATIENCE > 1
    holder = sqlite3.connect(kept.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Problem, match="locked"):
        kept.add("one", prompt=[], ids=[2], most=9)
    holder.close()


def _add(path, target):
    for token in range(20):
        KeptTexts(path).add(target, prompt=[token], ids=[token], most=50)


def test_two_processes_may_keep_texts_at_once(kept):
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_add, args=(kept.path, name)) for name in ("one", "two")]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert kept.sizes() == [KeptSize("one", 20, 20), KeptSize("two", 20, 20)]
