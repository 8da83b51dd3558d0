"""What runs of suffix decoding leave for the next: when, how much, and that it is told."""

import random

import msgspec
import pytest
import torch

from app import files
from app.appraisal.by_proposer import by_proposer
from app.library.catalogue import load_catalogue
from app.library.kept_texts import KeptTexts
from app.library.prompts_set import Prompt
from app.models.warm import WarmModels
from app.run.flagged import cautions, cautions_on
from app.run.methods import unkept
from app.run.preparation import preparation
from app.run.record import RunRecord
from app.run.settings import RunSettings, Sampling
from app.selftest.runs import PAIR
from app.selftest.tiny_models import write_tiny_pair
from app.studies.bench import plan, run_bench
from app.studies.earlier_texts import EarlierTexts
from app.studies.workbench import Workbench

SUFFIX = {"method": "suffix", "method_options": {"factor": 2.0, "offset": 1.0}}
PROMPT = "five six seven"


@pytest.fixture(autouse=True)
def one_thread():
    """Models as small as these lose by more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def bench(tiny_bench, tmp_path):
    """The tiny pair on a workbench whose file of texts is new."""
    before = tiny_bench._earlier
    tiny_bench._earlier = EarlierTexts(KeptTexts(tmp_path / "texts.sqlite"))
    yield tiny_bench
    tiny_bench._earlier = before


@pytest.fixture
def ran(bench, tiny):
    """Runs settings, and returns the record."""

    def run(prompt=PROMPT, **changes) -> RunRecord:
        asked = {"max_new_tokens": 40, "ignore_end_of_text": True, **SUFFIX, **changes}
        return recorded(bench, tiny(prompt=prompt, **asked))

    return run


def recorded(bench, settings):
    events = []
    bench.run("r", settings, emit=events.append, report=lambda _: None, pause=lambda: None)
    record = RunRecord.begin(events[0])
    for event in events:
        record.apply(event)
    assert record.outcome == "finished", record.message
    return record


def rounds(record, repetition=0):
    return [
        (round_.drafted, round_.source)
        for round_ in record.repetitions("speculative")[repetition].rounds
    ]


def copied(record):
    """Guesses that came from earlier texts."""
    return sum(row.counts.drafted for row in by_proposer(record) if row.source == "suffix-earlier")


def kinds(record):
    return [flag.kind for flag in cautions(record)]


def note(record):
    (found,) = [said for said in record.notes if said.startswith("Suffix decoding")]
    return found


def test_the_second_run_of_a_prompt_copies_and_both_say_how_it_was(ran):
    first, second = ran(), ran()
    assert copied(first) == 0
    assert "repeated text" not in kinds(first)
    assert "found no text of an earlier run" in note(first)
    assert copied(second) > 0
    assert "could also copy from 1 text of earlier runs (40 tokens, counted in" in note(second)
    (flag,) = [one for one in cautions(second) if one.kind == "repeated text"]
    assert "its prompt was run before" in flag.message
    assert "100 % of its text stands in texts of earlier runs" in flag.message
    assert flag in cautions_on(second, "decode_speedup")
    texts = [one.repetitions("speculative")[0].token_ids for one in (first, second)]
    assert texts[0] == texts[1] == second.repetitions("baseline")[0].token_ids
    assert len(rounds(second)) < len(rounds(first))


def test_no_repetition_profits_from_another(ran):
    record = ran(repetitions=3)
    assert rounds(record, 0) == rounds(record, 1) == rounds(record, 2)
    assert copied(record) == 0
    # One run leaves one text, however often it was repeated.
    assert "1 text of earlier runs" in note(ran("something else"))


def test_something_new_is_not_flagged(ran):
    ran()
    other = ran("quite another question", sampling=Sampling(temperature=1.5, seed=5))
    assert "repeated text" not in kinds(other)


def test_a_text_that_stands_there_behind_another_prompt_is_flagged(ran):
    first = ran()
    ids = (*first.prompt_ids, *first.repetitions("speculative")[0].token_ids[:10])
    onward = ran("", continues="r", prompt_ids=ids, max_new_tokens=25)
    (flag,) = [one for one in cautions(onward) if one.kind == "repeated text"]
    assert "prompt" not in flag.detail
    assert "100 %" in flag.detail


@pytest.mark.parametrize(
    "changes",
    [
        {"method_options": {"cached": 0}},
        {"method_options": {"keep": False}},
        {"method": "ngram", "method_options": {}},
    ],
    ids=["none cached", "not kept", "another method"],
)
def test_what_is_not_to_be_kept_is_not(ran, changes):
    ran(**changes)
    assert "found no text" in note(ran())


def test_settings_of_a_private_run_keep_nothing():
    plain = RunSettings("p", "secret")
    assert unkept(plain) is plain
    private = unkept(msgspec.structs.replace(plain, **SUFFIX))
    assert private.method_options == {**SUFFIX["method_options"], "keep": False}


def test_none_cached_copies_from_nothing_and_is_not_flagged(ran):
    ran()
    record = ran(method_options={"cached": 0})
    assert copied(record) == 0
    assert "repeated text" not in kinds(record)
    assert not any(said.startswith("Suffix decoding") for said in record.notes)


def test_only_so_many_are_kept_the_newest(ran, bench):
    few = {"method_options": {**SUFFIX["method_options"], "cached": 2}}
    for prompt in ("one", "two", "three"):
        ran(prompt, **few)
    assert "2 texts" in note(ran("four", **few))
    again = ran("two", **few)  # it went when the fourth came
    assert not any("prompt" in flag.detail for flag in cautions(again))
    assert any("prompt" in flag.detail for flag in cautions(ran("two", **few)))


def test_texts_survive_the_engine_and_can_be_let_go(ran, tmp_path):
    ran()
    kept = KeptTexts(tmp_path / "texts.sqlite")
    (size,) = kept.sizes()
    assert (size.texts, size.tokens) == (1, 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORETOKEN_HOME", str(tmp_path / "home"))
        path = files.kept_texts_file()
        path.parent.mkdir(parents=True)
        path.write_bytes(kept.path.read_bytes())
        other = Workbench(load_catalogue([write_tiny_pair()]))
        settings = RunSettings(
            PAIR, PROMPT, raw=True, precision="fp32", draft_precision="fp32",
            max_new_tokens=40, ignore_end_of_text=True, **SUFFIX,
        )  # fmt: skip
        other.loaded(preparation(settings), report=lambda _: None, pause=lambda: None)
        assert copied(recorded(other, settings)) > 0
    kept.clear()  # the workbench is alive, and has counted the text
    assert "found no text" in note(ran())


def test_a_bench_leaves_nothing_and_its_ways_are_alike(bench, tiny, ran):
    prompts = (Prompt("a", "kind", (PROMPT,)),)
    settings = tiny(max_new_tokens=20, ignore_end_of_text=True)
    ways = [("suffix", 4), ("suffix", 3), ("suffix", 4)]
    found = list(
        run_bench(bench, plan(prompts, ways, settings), report=lambda _: None, pause=lambda: None)
    )
    assert [copied(one.record) for one in found] == [0, 0, 0]
    assert rounds(found[0].record) == rounds(found[2].record)
    assert "found no text" in note(ran())


def test_counting_goes_on_from_what_is_counted(tmp_path):
    kept = KeptTexts(tmp_path / "texts.sqlite")
    model = type("Model", (), {"name": "m", "folder": tmp_path})()
    (tmp_path / "tokenizer.json").write_text("{}")
    drawn = random.Random(2)
    counting = EarlierTexts(kept)

    def found(texts, **options):
        asked = RunSettings("p", "", method="suffix", method_options={"depth": 4, **options})
        return texts.found(model, asked, report=lambda _: None, pause=lambda: None)

    def same(one, other):
        runs = [tuple(drawn.randrange(3) for _ in range(size)) for size in (1, 2, 3, 4) * 20]
        spots = [[each.trie.find(run) for run in runs] for each in (one, other)]
        counts = [[spot and spot.node.count for spot in each] for each in spots]
        return counts[0] == counts[1] and one.texts == other.texts and one.prompts == other.prompts

    target = None
    for step in range(30):
        ids = [drawn.randrange(3) for _ in range(drawn.randrange(1, 20))]
        target = target or f"m-{'44136fa355b3'}"  # the first digits of the SHA-256 of {}
        kept.add(target, prompt=[step], ids=ids, most=5)
        cached = drawn.choice([2, 5, 5, 5])
        held = found(counting, cached=cached)
        assert held.texts == min(cached, step + 1)
        assert same(held, found(EarlierTexts(kept), cached=cached))
    kept.clear()
    assert found(counting).texts == 0


@pytest.fixture
def counted(tmp_path):
    """A file of texts, and how often each is asked for one by one."""
    kept = KeptTexts(tmp_path / "texts.sqlite")
    model = type("Model", (), {"name": "m", "folder": tmp_path})()
    (tmp_path / "tokenizer.json").write_text("{}")
    counting = EarlierTexts(kept)

    def found(method="suffix", **options):
        asked = RunSettings("p", "", method=method, method_options=options)
        return counting.found(model, asked, report=lambda _: None, pause=lambda: None)

    def keep(ids):
        kept.add("m-44136fa355b3", prompt=[1], ids=ids, most=100)

    return kept, counting, found, keep


def test_only_the_newest_tokens_are_counted(counted, monkeypatch):
    _, _, found, keep = counted
    for start in range(5):
        keep(range(100 * start, 100 * start + 10))
    monkeypatch.setattr("app.studies.earlier_texts.MOST_TOKENS", 25)
    held = found()
    assert (held.texts, held.tokens) == (2, 20)
    assert held.trie.find([410, 411]) is None
    assert held.trie.find([400, 401]) is not None
    assert held.trie.find([200, 201]) is None


def test_texts_that_repeat_each_other_are_bounded_by_the_memory_they_take(counted, monkeypatch):
    _, counting, found, keep = counted
    drawn = random.Random(4)
    text = [drawn.randrange(5000) for _ in range(300)]
    monkeypatch.setattr("app.studies.earlier_texts.MOST_BYTES", 1_000_000)
    for place in range(12):
        keep([*text[: 80 + place], *(drawn.randrange(5000) for _ in range(300))])
        held = found()
        assert counting.byte_count <= 1_000_000
        assert held.texts > 0
    assert held.texts < 12
    counting.release()
    again = found()  # all at once
    assert 0 < again.texts < 12
    assert counting.byte_count <= 1_000_000
    assert again.trie.find(text[:90]) is None
    assert again.trie.find(text[70:90]) is not None  # the newest are there


def test_what_was_counted_goes_when_the_texts_are_let_go(counted):
    kept, counting, found, keep = counted
    keep(range(50))
    found()
    assert counting.byte_count > 0
    assert found("ngram") is None  # another method's run keeps it, as long as the file does
    assert counting.byte_count > 0
    kept.clear()
    assert found("ngram") is None
    assert counting.byte_count == 0
    keep(range(50))
    assert found().texts == 1
    counting.release()
    assert counting.byte_count == 0
    assert found().texts == 1


def test_a_workbench_that_lets_go_of_its_models_lets_go_of_counts_too(ran, bench, monkeypatch):
    ran()
    ran()
    assert bench._earlier.byte_count > 0
    monkeypatch.setattr(bench, "_warm", WarmModels())  # the models are others' too
    monkeypatch.setattr(bench, "_pair", None)
    bench.release()
    assert bench._earlier.byte_count == 0


def test_another_tokenizer_is_another_target(tmp_path):
    kept = KeptTexts(tmp_path / "texts.sqlite")
    model = type("Model", (), {"name": "m", "folder": tmp_path})()
    asked = RunSettings("p", "", method="suffix")
    kept.add("m-44136fa355b3", prompt=[1], ids=[1, 2], most=5)
    for content, texts in (("{}", 1), ("[]", 0)):
        (tmp_path / "tokenizer.json").write_text(content)
        found = EarlierTexts(kept).found(model, asked, report=lambda _: None, pause=lambda: None)
        assert found.texts == texts
