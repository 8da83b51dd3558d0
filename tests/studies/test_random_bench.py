"""A bench of random weights on a CPU: the loop, what is kept by chance, turns, stops, refusals."""

import msgspec
import pytest
import torch
from scipy.stats import binom

from app.library.random_shapes import RANDOM_SHAPES
from app.models.fixed import choice
from app.models.language_model import LanguageModel
from app.models.random_pair import random_pair
from app.models.stages import unseen
from app.run.problems import Cancelled, DoesNotFit, Problem
from app.run.random_bench import RandomBench, Timed
from app.studies import random_bench
from app.studies.random_bench import _texts, bench_random
from app.studies.random_lanes import Written, generated, our_text, plain_lane, simulated_lane
from app.studies.random_room import needed_bytes, refuse_too_large
from tapes import Tapes

CPU = torch.device("cpu")
TINY, DRAFT = RANDOM_SHAPES["tiny"], RANDOM_SHAPES["tiny-draft"]
WANTED = RandomBench("tiny", precision="fp32", device="cpu", tokens=12, repeats=2)


def go_on():
    pass


def benched(**changes):
    wanted = msgspec.structs.replace(WANTED, **changes)
    return bench_random(wanted, report=lambda progress: None, pause=go_on)


@pytest.fixture(scope="module")
def made():
    return random_pair(TINY, DRAFT, precision="fp32", device=CPU, stages=unseen())


@pytest.fixture
def passes(monkeypatch):
    """How many rows each pass of each model read."""
    read, forward = {"tiny": [], "tiny-draft": []}, LanguageModel.forward

    def watched(self, ids, cache, rows, tree=None):
        read[self.name].append(len(ids))
        return forward(self, ids, cache, rows, tree)

    monkeypatch.setattr(LanguageModel, "forward", watched)
    return read


@pytest.mark.parametrize("alpha", [0.75, 0.3])
def test_as_many_guesses_are_kept_as_the_simulated_acceptance_says(made, alpha):
    wanted = msgspec.structs.replace(WANTED, acceptance=alpha, tokens=500)
    timed = our_text(simulated_lane(made.pair, wanted), "speculative", number=1, pause=go_on).timed
    assert timed.tested > 400
    low, high = binom.interval(0.9999, timed.tested, alpha)
    assert low <= timed.accepted <= high


@pytest.mark.parametrize(("alpha", "rounds"), [(1.0, 10), (0.0, 50)])
def test_all_and_none_are_kept_at_the_ends(made, alpha, rounds):
    wanted = msgspec.structs.replace(WANTED, acceptance=alpha, tokens=51)
    timed = our_text(simulated_lane(made.pair, wanted), "speculative", number=0, pause=go_on).timed
    assert timed.rounds == rounds
    assert timed.accepted == (40 if alpha else 0)


def test_every_step_of_the_draft_is_run(made, passes):
    wanted = msgspec.structs.replace(WANTED, acceptance=0.0, tokens=6)
    our_text(simulated_lane(made.pair, wanted), "speculative", number=0, pause=go_on)
    # The prompt; then the text's last token and as many guesses as there is room for.
    assert passes["tiny"] == [64, 5, 4, 3, 2, 1]
    # Of 4, 3, 2 and 1 guesses the first reads what is new of the text: the prompt, or one token.
    assert passes["tiny-draft"] == [65, 1, 1, 1, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(("prompt", "context"), [(11, 256), (300, 300)])
def test_texts_and_passes_follow_as_long_a_prompt_as_is_asked_for(passes, prompt, context):
    found = benched(prompt=prompt, draft="none", repeats=1)
    assert found.context == context
    assert passes["tiny"].count(prompt) == 2  # of each text, the one that warms up too
    assert found.same_tokens == 12


def test_repetitions_draw_anew(made):
    lane = simulated_lane(made.pair, msgspec.structs.replace(WANTED, tokens=200))
    kept = [our_text(lane, "speculative", number=n, pause=go_on).timed.accepted for n in (0, 1, 0)]
    assert kept[0] == kept[2] != kept[1]


def test_our_loop_and_generate_write_the_same_ids(made):
    lane = plain_lane(made.pair, msgspec.structs.replace(WANTED, tokens=40))
    ours = our_text(lane, "baseline", number=0, pause=go_on)
    theirs = generated(made.plain, lane.prompt_ids, 40, pause=go_on)
    assert ours.ids == theirs.ids
    assert len(ours.ids) == ours.timed.tokens == theirs.timed.tokens == 40
    assert (ours.timed.rounds, ours.timed.accepted) == (39, 0)
    assert 0 < ours.timed.outside < ours.timed.decode < ours.timed.total


def test_generate_hears_a_stop_between_two_passes(made):
    asked = []

    def stop():
        asked.append(1)
        if len(asked) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        generated(made.plain, (1, 2, 3), 40, pause=stop)
    assert len(asked) == 3
    assert not made.plain._forward_pre_hooks


def test_our_loop_hears_a_stop(made):
    def stop():
        raise Cancelled

    with pytest.raises(Cancelled):
        our_text(plain_lane(made.pair, WANTED), "baseline", number=0, pause=stop)


def scripted(names, calls, *, stop_at=None):
    """Ways that note their calls; one of them stops the bench."""

    def way(name, number):
        calls.append((name, number))
        if len(calls) == stop_at:
            raise Cancelled
        return Written(Timed(1, 1.0), [number])

    return {name: lambda number, name=name: way(name, number) for name in names}


def texts(ways, repeats):
    return _texts(ways, repeats, report=lambda progress: None, pause=go_on)


def test_ways_take_turns_and_the_first_turn_only_warms_up():
    calls = []
    found = texts(scripted("ab", calls), 3)
    assert calls == [
        ("b", 0), ("a", 0), ("a", 1), ("b", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 3)
    ]  # fmt: skip
    assert {name: [one.ids[0] for one in kept] for name, kept in found.items()} == {
        "a": [1, 2, 3],
        "b": [1, 2, 3],
    }


@pytest.mark.parametrize(("stop_at", "kept"), [(6, 1), (8, 2)])
def test_a_stop_keeps_the_whole_turns(stop_at, kept):
    found = texts(scripted("ab", [], stop_at=stop_at), 3)
    assert [len(one) for one in found.values()] == [kept, kept]


@pytest.mark.parametrize("stop_at", [1, 4])
def test_a_stop_before_a_whole_turn_leaves_nothing(stop_at):
    with pytest.raises(Cancelled):
        texts(scripted("ab", [], stop_at=stop_at), 3)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "nf4"])
def test_the_whole_bench(precision):
    found = benched(precision=precision)
    assert (found.wanted.draft, found.wanted.precision) == ("tiny-draft", precision)
    assert sorted(found.passes) == list(range(1, 10))
    assert min(found.passes.values()) > 0 < found.draft_step
    assert found.bandwidth > 1e8
    assert [len(one) for one in (found.plain, found.generate, found.simulated)] == [2, 2, 2]
    assert {one.tokens for one in (*found.plain, *found.generate, *found.simulated)} == {12}
    assert (found.busy, found.peak_bytes, found.whole) == (None, None, True)
    assert found.target.precision == found.draft.precision == precision


@pytest.mark.parametrize(
    ("passes", "said"), [("auto", "eager"), ("eager", "eager"), ("fixed", "fixed shapes")]
)
def test_passes_are_computed_as_it_is_asked_for(passes, said):
    found = benched(passes=passes, repeats=1)
    assert (found.target.passes, found.draft.passes) == (said, said)
    assert found.same_tokens == 12


@pytest.mark.parametrize("precision", ["fp32", "nf4"])
def test_passes_are_recorded_before_a_text_is_timed_and_replayed_in_it(monkeypatch, precision):
    tapes, before = Tapes(), []
    monkeypatch.setattr(choice, "recorder_for", lambda device: tapes)

    def texts(*given, **how):
        before.extend((tapes.recorded, tapes.replayed))
        return _texts(*given, **how)

    monkeypatch.setattr(random_bench, "_texts", texts)
    found = benched(precision=precision, repeats=1)
    assert found.target.passes == found.draft.passes == "captured graphs"
    assert 0 < tapes.recorded == before[0]
    # Twice (once to warm up) 11 rounds of the target alone; with guesses there are fewer.
    assert tapes.replayed >= before[1] + 22
    assert found.same_tokens == 12


def test_without_a_draft_nothing_of_guesses_is_measured():
    found = benched(target="tiny-draft", repeats=1)
    assert (found.wanted.draft, found.draft, found.draft_step) == ("none", None, None)
    assert found.simulated == ()
    assert len(found.plain) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"target": "llama-3b"}, "no shape 'llama-3b'"),
        ({"draft": "llama-1b"}, "cannot draft for it"),
        ({"device": "cuda:7"}, "no device 'cuda:7'"),
        ({"device": "toaster"}, "is no device"),
        ({"precision": "fp16"}, "crawls on a CPU"),
        ({"precision": "fp4"}, "not made in fp4"),
        ({"tokens": 2000}, "2048 that tiny can read"),
        ({"acceptance": 2.0}, "from 0 to 1"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(changes, said):
    with pytest.raises(Problem, match=said):
        benched(**changes)


def test_too_little_memory_is_told_before_anything_is_made(monkeypatch):
    monkeypatch.setattr(random_bench, "free_bytes", lambda device: 2_000_000_000)
    monkeypatch.setattr(random_bench, "random_pair", None)
    with pytest.raises(DoesNotFit, match=r"llama-8b in nf4 needs about .* GB here, and 2\.0 GB"):
        benched(target="llama-8b", precision="nf4")


def test_the_memory_that_is_needed_is_that_of_the_weights_and_little_more():
    large, small = RANDOM_SHAPES["llama-8b"], RANDOM_SHAPES["llama-1b"]
    card = torch.device("cuda", 0)
    needed = needed_bytes(large, small, WANTED, precision="nf4", device=card)
    # 6.98 and 0.97 thousand millions of linear weights at 4.13 bits, tables in 16 bits.
    weights = (6.98e9 + 0.97e9) * 4.127 / 8 + 2 * (2 * 128256 * 4096 + 128256 * 2048)
    assert weights < needed < weights + 1.5e9
    here = needed_bytes(small, None, WANTED, precision="fp32", device=CPU)
    assert here > 2 * 4 * small.parameters  # generate runs weights that are not packed
    refuse_too_large("tiny", "nf4", 100, free=100, on="cpu")
