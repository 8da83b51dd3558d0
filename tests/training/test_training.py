"""A training from beginning to end on a tiny target: files, going on, and what it refuses."""

import csv
import json
import random
import shutil
from copy import deepcopy
from types import SimpleNamespace

import msgspec
import psutil
import pytest
import talking
import torch

from app.library.head_folder import MadeFor, check_head
from app.models.draft_head import DraftHead, shape_for
from app.models.head_file import read_head
from app.run.problems import Cancelled, Problem
from app.training import gathering, room
from app.training.batches import batch_of
from app.training.beginning import begin_head
from app.training.gathering import Budget, Corpus, Source
from app.training.learner import Learner
from app.training.lesson import Teacher, weighted
from app.training.schedule import Span
from app.training.texts import TextFolder
from app.training.training import Plan, Training
from lessons import random_texts, target
from toys import tiny_llama, wrapped

MADE_FOR = MadeFor("Tiny", "f" * 64, 256)


def source(*, prompts=(), seed=0, model=None):
    return Source(model or tiny_llama(vocabulary=256), talking._tokenizer(), (7,), seed, prompts)


def own(count):
    rng = random.Random(0)
    return tuple("".join(rng.choices("abcdefgh ", k=12)) for _ in range(count))


OWN = own(40)


def plan(*, writing=60.0, tokens=3000, steps=12, vocabulary=64, disk=1.0):
    return Plan(writing, Span(steps=steps), vocabulary, disk, most_tokens=tokens)


def run(training, *, pause=lambda: None, report=lambda _: None):
    points = []
    return training.run(report=report, point=points.append, pause=pause), points


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(gathering, "SHARD", 8)
    monkeypatch.setattr(gathering, "_HELD_OUT_TOKENS", 24)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathering, "SHARD", 8)
        patch.setattr(gathering, "_HELD_OUT_TOKENS", 24)
        folder = tmp_path_factory.mktemp("out")
        taught, points = run(Training(source(prompts=OWN), MADE_FOR, plan(), folder))
    return SimpleNamespace(folder=folder, taught=taught, points=points)


def test_a_head_comes_out_that_can_be_read(finished):
    facts = check_head(finished.folder / "head")
    head, ids = read_head(facts)
    assert facts.description.target == MADE_FOR
    assert head.shape.vocabulary == len(ids) == 64
    assert 7 in ids.tolist()
    written = sum(text.written for text in TextFolder(finished.folder / "texts").read())
    assert finished.taught.written == written >= 3000
    assert f"{written:,} tokens written" in facts.description.trained


def test_its_curve_is_kept_beside_it(finished):
    folder, taught = finished.folder / "head", finished.taught
    assert list(taught.curve) == finished.points
    assert taught.best in taught.curve
    with open(folder / "curve.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["tokens"]) for row in rows] == [point.tokens for point in taught.curve]
    assert float(rows[-1]["acceptance_1"]) == pytest.approx(
        taught.curve[-1].acceptance[0], abs=1e-4
    )
    assert rows[0]["loss_1"] == ""
    card = (folder / "card.md").read_text()
    for said in ("f" * 64, "40 own prompts", "seed 0", "fp32", "torch", "Licence", "| depth 4 |"):
        assert said in card


def test_nothing_that_it_is_judged_by_is_learned(finished):
    corpus = Corpus(finished.folder)
    prompts = [
        {tuple(text.ids[: text.prompt].tolist()) for text in folder.read()}
        for folder in (corpus.learned, corpus.held_out)
    ]
    assert len(prompts[1]) == 4
    assert len(prompts[0]) > 10
    assert not prompts[0] & prompts[1]


def test_the_same_again_finds_all_done(finished):
    taught, points = run(Training(source(prompts=OWN), MADE_FOR, plan(), finished.folder))
    assert points == finished.points  # those of before are told again
    assert taught.curve == finished.taught.curve


@pytest.mark.parametrize("calls", [3, 40, 200, 330])
def test_stopped_anywhere_it_goes_on(tmp_path, calls):
    def pause():
        nonlocal calls
        calls -= 1
        if calls == 0:
            raise Cancelled

    begun = Training(source(prompts=OWN), MADE_FOR, plan(tokens=1500, steps=200), tmp_path)
    with pytest.raises(Cancelled):
        run(begun, pause=pause)
    before = {file: file.read_bytes() for file in (tmp_path / "texts").glob("*.safetensors")}
    again = plan(tokens=1500, steps=6)
    taught, _ = run(Training(source(prompts=OWN), MADE_FOR, again, tmp_path))
    assert check_head(tmp_path / "head")
    assert taught.written >= 1500
    for file, content in before.items():
        assert file.read_bytes() == content
    corpus = Corpus(tmp_path)
    every = [tuple(text.ids.tolist()) for text in corpus.learned.read()]
    assert len(set(every)) > 0.9 * len(every)


def test_two_trainings_of_one_seed_are_the_same(tmp_path):
    heads = []
    for name in ("one", "other"):
        few = plan(tokens=600, steps=5)
        run(Training(source(prompts=OWN), MADE_FOR, few, tmp_path / name))
        heads.append((tmp_path / name / "head" / "head.safetensors").read_bytes())
    assert heads[0] == heads[1]


def test_composed_prompts_do_without_a_file(tmp_path):
    corpus = Corpus(tmp_path)
    budget = Budget(seconds=60.0, bytes=1 << 30, tokens=400)
    corpus.gather(source(), budget, report=lambda _: None, pause=lambda: None)
    assert corpus.learned.written >= 400
    assert sum(1 for _ in corpus.held_out.read()) > 40


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 5}, "seed 0 instead of 5"),
        ({"prompts": OWN[:30]}, "prompts"),
        ({"made_for": msgspec.structs.replace(MADE_FOR, fingerprint="0" * 64)}, "fingerprint"),
        ({"vocabulary": 32}, "draft vocabulary 64 instead of 32"),
    ],
)
def test_a_folder_of_another_training_is_refused(finished, changed, said):
    made_for = changed.pop("made_for", MADE_FOR)
    vocabulary = changed.pop("vocabulary", 64)
    with pytest.raises(Problem, match=said):
        Training(
            source(**{"prompts": OWN, **changed}),
            made_for,
            plan(vocabulary=vocabulary),
            finished.folder,
        )


def test_a_target_of_another_kind_is_refused(tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    other = wrapped(GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=256)))
    with pytest.raises(Problem, match="gpt2"):
        Training(source(model=other), MADE_FOR, plan(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_told_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1000))
    with pytest.raises(Problem, match="48 MB of memory"):
        Training(source(), MADE_FOR, plan(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_too_little_disk_is_told(tmp_path, monkeypatch):
    with pytest.raises(Problem, match="too little for texts"):
        Training(source(), MADE_FOR, plan(disk=0.01), tmp_path)
    usage = SimpleNamespace(free=(1 << 30) + 1000)
    monkeypatch.setattr(room.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(Problem, match="GB free"):
        Training(source(), MADE_FOR, plan(), tmp_path)


def test_texts_never_take_more_than_the_disk_has(tmp_path, monkeypatch):
    usage = SimpleNamespace(free=3 << 30)
    monkeypatch.setattr(room.shutil, "disk_usage", lambda _: usage)
    assert room.bytes_for_texts(tmp_path, 8.0, 0) == 2 << 30
    assert room.bytes_for_texts(tmp_path, 1.0, 0) == 1 << 30
    assert room.bytes_for_texts(tmp_path, 8.0, 5 << 30) == 7 << 30


def test_the_memory_that_is_asked_for_is_about_what_is_held():

    shape = shape_for(tiny_llama().inner, 64)
    weights = sum(one.numel() for one in DraftHead(shape).parameters())
    assert room.head_weights(shape) == weights
    assert room.memory_needed(shape) > 24 * weights


@pytest.mark.parametrize("prompts", [("only one",), ("x" * 3000, "y" * 3000)])
def test_prompts_that_leave_nothing_to_learn_from_are_a_problem(tmp_path, prompts):
    with pytest.raises(Problem, match="No prompt is left"):
        run(Training(source(prompts=prompts), MADE_FOR, plan(), tmp_path))


def test_without_time_to_write_there_is_nothing_to_learn_from(tmp_path):
    with pytest.raises(Problem, match="writing share"):
        run(Training(source(prompts=OWN), MADE_FOR, plan(writing=0.0), tmp_path))


def test_texts_that_are_there_already_are_enough(finished, tmp_path):

    for name in ("texts", "held-out"):
        shutil.copytree(finished.folder / name, tmp_path / name)
    taught, _ = run(Training(source(prompts=OWN), MADE_FOR, plan(writing=0.0), tmp_path))
    assert taught.written == finished.taught.written


def test_the_time_of_writing_is_kept(finished):
    kept = json.loads((finished.folder / "training.json").read_bytes())
    assert 0 < kept["writing_seconds"] < 60
    assert finished.taught.writing_seconds == pytest.approx(kept["writing_seconds"], abs=1)


def test_a_broken_claim_is_a_problem(tmp_path):
    (tmp_path / "training.json").write_text("{")
    with pytest.raises(Problem, match="cannot be read"):
        Training(source(), MADE_FOR, plan(), tmp_path)


def test_a_head_learns_in_bf16_too(tmp_path):

    model = target()
    texts = random_texts(model, 8)
    head = begin_head(model.inner, 64, texts)
    losses, moved = {}, {}
    for dtype in (torch.float32, torch.bfloat16):
        teacher = Teacher(model.inner, torch.arange(64), dtype=dtype)
        learner = Learner(deepcopy(head), dtype)
        for number in range(3):
            loss = teacher.losses(learner.working, batch_of(texts))
            learner.step(weighted(loss), rate=1e-3, number=number)
        losses[dtype] = loss.detach()
        moved[dtype] = (learner.head.fc.weight - head.fc.weight).detach().flatten()
        assert learner.head.fc.weight.dtype == torch.float32
    assert (losses[torch.float32] - losses[torch.bfloat16]).abs().max() < 0.1
    one, other = moved.values()
    assert torch.cosine_similarity(one, other, dim=0) > 0.9
