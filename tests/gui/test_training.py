"""The page where heads are taught, as a person uses it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from scripted_engine import prepared, run_of

from app import files
from app.engine.protocol import EngineEnded, JobCancelled, JobProblem, Run, Stop
from app.gui import dialogs
from app.gui.charts.learning import LearningChart, short_count
from app.gui.train_desk import RUNNING, TRAINING
from app.library.catalogue import load_catalogue
from app.library.head_folder import HeadDescription, HeadShape, MadeFor
from app.library.training_folder import Claimed, Identity
from app.run.events import Progress
from app.run.preparation import Prepare
from app.run.teaching import CurvePoint, Taught, Teach

TITLE = "SmolLM2-135M-Instruct"


def points(number: int) -> list[CurvePoint]:
    """A curve that rises."""
    return [
        CurvePoint(
            tokens=90_000 * place,
            seconds=70.0 * place,
            acceptance=(0.2 + 0.02 * place, 0.18 + 0.02 * place, 0.17, 0.15),
            kept=0.25 + 0.03 * place,
            loss=(3.0, 3.5, 3.75) if place else (),
        )
        for place in range(number)
    ]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "home é"
    monkeypatch.setenv("FORETOKEN_HOME", str(folder))
    return folder


@pytest.fixture
def train(home, window, settle):
    """The page, shown, in a home folder of its own."""
    window.pages.show_train()
    settle()
    return window.train


@pytest.fixture
def settle(request, play):
    """Lets the background end its work, and the window show what came of it."""

    def settled(*messages) -> None:
        window = request.getfixturevalue("window")
        play(*messages)
        for _ in range(3):
            window.background.wait(20)
            play()

    return settled


def write_training(folder: Path, *, vocabulary: int = 8192, head: bool = True) -> Path:
    """What a training of the embedded target leaves in its folder; the head's."""
    folder.mkdir(parents=True)
    identity = Identity(TITLE, "f" * 64, "", 0, vocabulary)
    (folder / "training.json").write_bytes(msgspec.json.encode(Claimed(identity, 60.0)))
    if head:
        shape = HeadShape(576, 1536, 9, 3, 64, 1e-5, False, False, vocabulary)
        made_for = MadeFor(TITLE, "f" * 64, 49152)
        told = HeadDescription("foretoken draft head 1", shape, made_for, "On some tokens.")
        (folder / "head").mkdir()
        (folder / "head" / "head.json").write_bytes(msgspec.json.encode(told))
        header = msgspec.json.encode({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})
        (folder / "head" / "head.safetensors").write_bytes(
            len(header).to_bytes(8, "little") + header + bytes(4)
        )
    return folder / "head"


def taught(folder: Path, curve: list[CurvePoint], *, early: bool = False) -> Taught:
    return Taught(
        head=str(folder / "head"),
        best=curve[-2],
        curve=tuple(curve),
        coverage=0.9661,
        written=1_904_233,
        writing_seconds=1800.0,
        stopped_early=early,
    )


def test_the_page_opens_by_its_keys_with_the_default_target(home, window, settle):
    QTest.keyClick(window, Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
    settle()
    train = window.train
    assert train.isVisible()
    assert train.form.target.currentText() == TITLE
    offers = [train.form.target.itemText(place) for place in range(train.form.target.count())]
    assert (offers[0], offers[-1]) == (TITLE, "A folder…")
    assert train.form.out.get() == str(home / "data" / "trained" / TITLE)
    assert train.start.text() == "Start training"
    assert not train.tiles.use.isVisible()
    assert not window.action["seams"].isEnabled()


def test_start_sends_what_the_form_says_and_nothing_can_be_run(train, window, client, settle):
    train.form.minutes.put(7)
    train.form.vocabulary.put(4096)
    train.start.click()
    out = train.form.out.get()
    assert client.sent[-1] == Teach("embedded", out, 7, draft_vocabulary=4096)
    settle(Progress("writing texts, 3 min left, then 4 min of lessons", 10, 190, "s"))
    assert not train.start.isEnabled()
    assert train.stop.isEnabled()
    assert not train.form.minutes.isEnabled()
    assert train.note.text() == TRAINING
    assert train.progress.isVisible()
    window.pages.show_playground()
    settle()
    assert not window.page.progress.isVisible()
    assert not window.page.run_button.isEnabled()
    assert "nothing can be run" in window.page.run_button.toolTip()
    window.run()
    assert not any(isinstance(command, Run) for command in client.sent)
    assert "A training goes on" in window.page.notice.text.text()
    assert not window.action["stop"].isEnabled()  # Esc is not to end hours of work from there


def test_the_curve_is_drawn_as_it_comes(train, settle):
    train.start.click()
    curve = points(9)
    settle(*curve[:4])
    first, second, *_ = train.chart.curves
    assert list(first.getData()[0]) == [0, 90_000, 180_000, 270_000]
    assert list(second.getData()[1]) == pytest.approx([0.18, 0.2, 0.22, 0.24])
    assert train.tiles.tiles["kept_1"].number.text() == "26 %"
    assert train.tiles.tiles["tokens"].number.text() == "270 k"
    assert train.tiles.tiles["kept"].accessibleName() == "guesses kept of 4: 0.34"
    assert "26.0 / 24.0 / 17.0 / 15.0 %" in train.tiles.sentence.text()
    assert "0.34 kept of 4" in train.chart.accessibleDescription()
    settle(*curve[4:])
    assert len(first.getData()[0]) == 9


def test_the_end_shows_the_best_head_and_makes_the_pair_ready_again(train, client, settle):
    train.start.click()
    folder = Path(train.form.out.get())
    write_training(folder)
    curve = points(9)
    settle(*curve, taught(folder, curve, early=True))
    assert train.tiles.tiles["kept_1"].number.text() == "34 %"  # the best is the last but one
    assert train.tiles.tiles["coverage"].number.text() == "96.6 %"
    for words in ("1,904,233", "30.0 min", "ended early", str(folder / "head")):
        assert words in train.tiles.sentence.text()
    assert client.sent[-1] == Prepare("embedded")
    assert train.start.text() == "Resume training"
    assert train.tiles.use.isVisible()


def test_use_it_now_offers_the_head_and_chooses_it(home, train, window, client, settle):
    own = files.user_catalogue()
    own.parent.mkdir(parents=True)
    own.write_text("# mine\nmodels: # none yet\n")
    head = write_training(Path(train.form.out.get()))
    window.training.look()
    settle()
    train.tiles.use.click()
    settle()
    name = "smollm2-135m-instruct-head-2"
    assert window.page.form.pair.name == name
    assert client.sent[-1] == Prepare(name)
    assert window.page.isVisible()
    assert str(own) in window.page.notice.text.text()
    assert own.read_text().startswith("# mine\nmodels: # none yet\n")
    found = load_catalogue([files.shipped_catalogue(), own])
    assert found.faults == ()
    assert Path(found.model(found.pair(name).head).source.path) == head
    settle(prepared(name))
    window.run()
    assert client.sent[-1].settings.method == "ngram-else-head"
    window.stop()


def test_a_catalogue_that_cannot_be_read_is_told_in_place(home, train, window, client, settle):
    own = files.user_catalogue()
    own.parent.mkdir(parents=True)
    own.write_bytes(b'models:\n  a: "C:\\Users"\n')
    write_training(Path(train.form.out.get()))
    window.training.look()
    settle()
    train.tiles.use.click()
    settle()
    assert train.notice.isVisible()
    assert "line 2" in train.notice.text.text()
    assert own.read_bytes() == b'models:\n  a: "C:\\Users"\n'
    assert train.isVisible()
    assert train.tiles.use.isEnabled()


def test_a_training_that_was_stopped_is_resumed(train, client, settle):
    train.start.click()
    settle(*points(2))
    train.stop.click()
    assert isinstance(client.sent[-1], Stop)
    settle()
    assert train.start.text() == "Stopping…"
    write_training(Path(train.form.out.get()), head=False)
    settle(JobCancelled())
    assert train.start.text() == "Resume training"
    assert "Resume goes on" in train.notice.text.text()
    assert not train.tiles.use.isVisible()
    assert client.sent[-1] == Prepare("embedded")
    train.start.click()  # while the pair is made ready
    assert [type(one) for one in client.sent[-2:]] == [Stop, Teach]
    settle(prepared("embedded"), *points(3))
    assert not train.start.isEnabled()
    assert len(train.chart.curves[0].getData()[0]) == 3


def test_another_training_in_the_folder_is_told(train, window, settle):
    write_training(Path(train.form.out.get()), vocabulary=4096)
    window.training.look()
    settle()
    assert train.start.text() == "Start training"
    assert "draft vocabulary 4096 instead of 8192" in train.form.standing.text()
    assert not train.tiles.use.isVisible()
    train.form.vocabulary.put(4096)
    settle()
    assert train.start.text() == "Resume training"
    assert train.tiles.sentence.text() == "On some tokens."
    assert train.tiles.use.isVisible()


def test_a_training_that_fails_says_what_to_do_where_it_was_started(train, window, client, settle):
    train.start.click()
    settle(JobProblem("Too little memory.", "Close other programs."))
    assert train.notice.text.text() == "Too little memory.\nClose other programs."
    assert train.start.isEnabled()
    assert client.sent[-1] == Teach("embedded", train.form.out.get(), 60)
    train.start.click()
    settle()
    assert not train.notice.isVisible()


def test_an_engine_that_dies_in_a_training_leaves_what_was_kept(train, client, settle):
    train.start.click()
    settle(*points(2), EngineEnded("The engine was killed (signal 9).", expected=False))
    assert "signal 9" in train.notice.text.text()
    assert "Resume goes on" in train.notice.text.text()
    train.start.click()
    assert client.starts == 2
    assert isinstance(client.sent[-1], Teach)


def test_no_training_starts_during_a_run(train, window, client, settle):
    window.run()
    settle(*run_of()[:20])
    window.pages.show_train()
    settle()
    assert not train.start.isEnabled()
    assert train.note.text() == RUNNING
    window.training.start()
    assert not any(isinstance(command, Teach) for command in client.sent)
    settle(*run_of()[20:])
    assert train.start.isEnabled()


def test_a_folder_and_a_file_of_ones_own_are_asked_for(train, client, settle, monkeypatch):
    form = train.form
    form.target.put("own")
    train.start.click()
    assert "Choose the folder of a model" in train.notice.text.text()
    monkeypatch.setattr(dialogs, "ask_folder", lambda *_: "/models/llama-3.2-1b")
    form.place.choose.click()
    form.prompts.put("own")
    train.start.click()
    assert "No file of prompts" in train.notice.text.text()
    form.file.line.setText("/tmp/mine.jsonl")
    QTest.keyClick(form.file.line, Qt.Key.Key_Return)
    settle()
    train.start.click()
    sent = client.sent[-1]
    assert (sent.target, sent.prompts) == ("/models/llama-3.2-1b", "/tmp/mine.jsonl")
    assert Path(sent.out).name == "llama-3.2-1b"


def test_a_folder_that_a_person_has_named_stays(train, settle):
    train.form.out.line.setText("/trainings/one")
    QTest.keyClick(train.form.out.line, Qt.Key.Key_Return)
    train.form.target.put("own")
    settle()
    assert train.form.out.get() == "/trainings/one"


def test_everything_that_can_be_used_has_a_name(train):
    fields = [*train.form._rows.values()]
    assert all(row.field.accessibleName() for row in fields)
    assert all(row.field.toolTip() for row in fields)
    assert train.chart.toolTip()
    assert all(tile.toolTip() and tile.accessibleName() for tile in train.tiles.tiles.values())


def test_depths_are_told_apart_without_colour(application, theme):
    chart = LearningChart(theme.colours)
    chart.show_curve(points(5))
    pens = [curve.opts["pen"] for curve in chart.curves]
    assert len({pen.style() for pen in pens}) == 4
    assert len({curve.opts["symbol"] for curve in chart.curves}) == 4
    samples = []
    for sample in chart.samples:
        image = QImage(sample.size(), QImage.Format.Format_Grayscale8)
        image.fill(Qt.GlobalColor.black)
        sample.render(image, QPoint())
        samples.append(bytes(image.constBits()))
    assert len(set(samples)) == 4
    chart.deleteLater()


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0"), (999, "999"), (90_000, "90 k"), (2_108_333, "2.11 M")]
)
def test_counts_are_short(number, words):
    assert short_count(number) == words
