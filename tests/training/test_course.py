"""Lessons: deterministic, resumable at any point, ended when they are of no more use."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from app.run.problems import Cancelled, Problem
from app.training import checkpoint, course
from app.training.batches import batch_of
from app.training.beginning import begin_head
from app.training.checkpoint import read_checkpoint
from app.training.course import Course, Material
from app.training.lesson import Teacher
from app.training.schedule import Span, learning_rate
from app.training.texts import TextFolder
from lessons import random_texts, target


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    model = target()
    folder = TextFolder(tmp_path_factory.mktemp("texts"))
    texts = random_texts(model, 24, longest=20)
    for start in range(0, 24, 6):
        folder.add(texts[start : start + 6])
    held_out = [batch_of(random_texts(model, 6, seed=9, longest=20))]
    teacher = Teacher(model.inner, torch.arange(0, 64, 2), dtype=torch.float32)
    return Material(teacher, folder, held_out, seed=3), begin_head(model.inner, 32, texts)


@pytest.fixture(autouse=True, scope="module")
def small():
    """Lessons of some texts each, that never end early."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(course, "BATCH_TOKENS", 64)
        patch.setattr(course, "_PATIENCE", 99)
        yield


def begun(material, file, *, steps=20, seconds=None):
    """A course, from its checkpoint if there is one."""
    made, head = material
    begin = Course(made, deepcopy(head), file, Span(seconds=seconds, steps=steps))
    kept = read_checkpoint(file)
    if kept is not None:
        begin.restore(kept)
    return begin


def run(one, *, pause=lambda: None):
    points = []
    one.run(report=lambda _: None, point=points.append, pause=pause)
    return points


class After:
    """A pause that is cancelled at its n-th call."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self):
        self.calls -= 1
        if self.calls < 0:
            raise Cancelled


def same(one, other):
    """Whether two checkpoints hold the same, but for the time it took."""
    assert one.tensors.keys() == other.tensors.keys()
    for name, value in one.tensors.items():
        assert torch.equal(value, other.tensors[name]), name
    assert all(torch.equal(value, other.best[name]) for name, value in one.best.items())
    for field in ("step", "epoch", "lesson", "tokens", "best", "fall", "end"):
        assert getattr(one.standing, field) == getattr(other.standing, field)
    shares = [[point.acceptance for point in kept.standing.curve] for kept in (one, other)]
    assert shares[0] == shares[1]
    return True


@pytest.fixture(scope="module")
def whole(small, material, tmp_path_factory):
    """The checkpoint of a course that was never stopped."""
    file = tmp_path_factory.mktemp("whole") / "checkpoint.safetensors"
    points = run(begun(material, file))
    return read_checkpoint(file), points


def test_so_many_steps_are_the_same_every_time(material, whole, tmp_path):
    file = tmp_path / "checkpoint.safetensors"
    run(begun(material, file))
    assert same(read_checkpoint(file), whole[0])


def test_it_learns_and_tells_its_curve(whole):
    kept, points = whole
    assert kept.standing.step == 20
    assert kept.standing.epoch >= 2
    assert [point.tokens for point in points] == sorted(point.tokens for point in points)
    assert kept.standing.curve == points
    assert points[0].loss == ()
    assert points[-1].tokens == kept.standing.tokens > 0
    assert max(point.kept for point in points) == points[kept.standing.best].kept


@pytest.mark.parametrize("calls", [0, 1, 7, 13, 19])
def test_a_stop_and_a_going_on_change_nothing(material, whole, tmp_path, calls):
    file = tmp_path / "checkpoint.safetensors"
    with pytest.raises(Cancelled):
        run(begun(material, file), pause=After(calls))
    assert read_checkpoint(file).standing.step == calls
    run(begun(material, file))
    assert same(read_checkpoint(file), whole[0])


@pytest.mark.parametrize("writes", [0, 1, 4])
def test_a_kill_while_the_checkpoint_is_written_leaves_the_one_before(
    material, whole, tmp_path, monkeypatch, writes
):
    file = tmp_path / "checkpoint.safetensors"
    save, left = checkpoint.save_file, [writes]

    class Killed(BaseException):
        pass

    def killed(tensors, unfinished, said):
        if not left[0]:
            unfinished.write_bytes(b"half")
            raise Killed
        left[0] -= 1
        save(tensors, unfinished, said)

    monkeypatch.setattr(checkpoint, "save_file", killed)
    with pytest.raises(Killed):
        run(begun(material, file))
    monkeypatch.setattr(checkpoint, "save_file", save)
    assert file.is_file() == bool(writes)
    run(begun(material, file))
    assert same(read_checkpoint(file), whole[0])


def test_new_texts_join_at_the_next_epoch_only(material, tmp_path):
    made, head = material
    folder = TextFolder(tmp_path / "texts")
    texts = list(made.texts.read())
    folder.add(texts[:6])
    file = tmp_path / "checkpoint.safetensors"
    growing = replace(made, texts=folder), head

    def grow():
        if len(folder.shards) == 1:
            folder.add(texts[6:12])

    shards = []
    one = begun(growing, file, steps=6)

    def watch():
        grow()
        shards.append((one.standing.epoch, one.standing.shards))

    run(one, pause=watch)
    assert {shard for epoch, shard in shards if epoch == 0} == {1}
    assert {shard for epoch, shard in shards if epoch == 1} == {2}


def test_it_ends_early_once_it_no_longer_gets_better(material, tmp_path, monkeypatch):
    monkeypatch.setattr(course, "_PATIENCE", 6)
    shares = iter([0.1, 0.2, *[0.15] * 100])
    monkeypatch.setattr(course, "acceptance", lambda *_: (next(shares),))
    one = begun(material, tmp_path / "checkpoint.safetensors", steps=96)
    points = run(one)
    assert one.standing.best == 1
    assert one.standing.step < 60
    # 8 judgements, then the learning rate falls over 0.4 of the time so far.
    assert one.standing.fall == pytest.approx(7 / 24, abs=1 / 96)
    assert one.standing.end == pytest.approx(1.4 * one.standing.fall)
    assert points[-1].tokens == one.standing.tokens


def test_the_best_weights_are_what_it_hands_over(material, tmp_path, monkeypatch):
    shares = iter([0.1, 0.3, 0.2, 0.2, 0.2])
    monkeypatch.setattr(course, "acceptance", lambda *_: (next(shares, 0.2),))
    file = tmp_path / "checkpoint.safetensors"
    one, seen = begun(material, file, steps=4), []
    one.run(
        report=lambda _: None,
        point=lambda _: seen.append(one._learner.averaged.fc.weight.clone()),
        pause=lambda: None,
    )
    assert torch.equal(one.head.fc.weight, seen[1])
    assert not torch.equal(one.head.fc.weight, seen[-1])
    assert torch.equal(begun(material, file).head.fc.weight, seen[1])


def test_a_broken_checkpoint_is_a_problem(material, tmp_path):
    file = tmp_path / "checkpoint.safetensors"
    file.write_bytes(b"half of something")
    with pytest.raises(Problem, match="Delete it"):
        read_checkpoint(file)


def test_a_checkpoint_of_another_head_is_a_problem(material, tmp_path):
    made, _ = material
    file = tmp_path / "checkpoint.safetensors"
    run(begun(material, file, steps=2))
    kept = read_checkpoint(file)
    model = target(hidden_size=48)
    other = begin_head(model.inner, 32, random_texts(model, 8))
    with pytest.raises(Problem, match="cannot be read"):
        Course(made, other, file, Span(steps=2)).restore(kept)


def test_the_learning_rate_rises_stays_and_falls():
    rates = [
        learning_rate(1.0, step=step, share=step / 1000, fall=0.6, end=1.0)
        for step in (0, 24, 49, 300, 600, 800, 999, 1000)
    ]
    assert rates == pytest.approx([0.02, 0.5, 1.0, 1.0, 1.0, 0.5, 0.0025, 0.0])


def test_a_span_is_over_at_the_first_of_its_ends():
    assert Span(seconds=10.0).share(5.0, 100) == 0.5
    assert Span(steps=10).share(5.0, 4) == 0.4
    assert Span(seconds=10.0, steps=10).share(9.0, 4) == 0.9
    assert Span(seconds=0.0).share(0.0, 0) == 1.0
