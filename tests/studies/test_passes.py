"""The cost of passes: measured in turn with a clock of the test's own, bounded, kept, stopped."""

import msgspec
import pytest

from app.models.early_exit import EarlyExit
from app.models.fixed.passes import Passes
from app.models.session import Session
from app.run.problems import Cancelled
from app.run.tree_shape import TreeShape
from app.studies import costing, passes
from app.studies.costing import costs_of
from app.studies.passes import BUDGET_S, REPEATS, time_passes
from toys import FakeClock, ScriptedLM, next_is, tiny_llama


class Priced(ScriptedLM):
    """A model whose passes take, on a fake clock, what a function of width and turn says."""

    name, precision, attention, folder = "priced", "fp32", "scripted", "here"
    kernel = "plain"
    passes = Passes()
    rows = 64

    def __init__(self, price, *, context_length=4096):
        super().__init__(next_is(lambda prefix: 1))
        self.clock, self.price, self.context_length = FakeClock(), price, context_length
        self.fed: list[tuple[int, int]] = []

    def open(self, capacity):
        return Session(self, capacity)

    def forward(self, ids, cache, rows, tree=None):
        logits = super().forward(ids, cache, rows, tree)
        self.fed.append((len(ids), len(cache.ids)))
        turn = sum(width == len(ids) for width, _ in self.fed)
        self.clock.spend(self.price(len(ids), turn))
        return logits


def timed(model, longest=5, *, context=256, pause=lambda: None, **more):
    return time_passes(
        model, range(1, longest + 1), context=context, pause=pause, clock=model.clock, **more
    )


def test_medians_by_width_of_a_clock_that_knows_the_price():
    # Every third pass of a width is slow, and its first one is cold.
    model = Priced(lambda width, turn: 0.001 * width + 0.05 * (turn == 1 or turn % 3 == 0))
    found = timed(model)
    assert found.repeats == REPEATS
    assert found.seconds == pytest.approx({w: 0.001 * w for w in range(1, 6)})


def test_widths_take_turns_behind_the_context():
    model = Priced(lambda width, turn: 0.001)
    timed(model, longest=3)
    assert model.fed[0] == (255, 255)
    assert model.fed[1:7] == [(1, 256), (2, 257), (3, 258)] * 2


def test_a_long_context_is_read_in_chunks_between_which_a_stop_is_heard():
    model = Priced(lambda width, turn: 0.001)
    timed(model, longest=2, context=2048)
    assert [width for width, _ in model.fed[:4]] == [512, 512, 512, 511]


def test_a_slow_model_is_passed_less_often_and_says_so():
    slow = timed(Priced(lambda width, turn: BUDGET_S / 9), longest=5)
    assert slow.repeats == 1
    assert timed(Priced(lambda width, turn: BUDGET_S / 24), longest=5).repeats == 4
    slowest = Priced(lambda width, turn: BUDGET_S)
    found = timed(slowest, longest=5)
    assert found.repeats == 1
    assert found.seconds == pytest.approx(dict.fromkeys(range(1, 6), BUDGET_S))
    assert len(slowest.fed) == 1 + 5


def test_a_model_with_a_short_context_is_measured_as_far_as_it_reaches():
    model = Priced(lambda width, turn: 0.001, context_length=6)
    found = timed(model, longest=9)
    assert sorted(found.seconds) == [1, 2, 3, 4, 5]
    assert max(length for _, length in model.fed) <= 6


def test_progress_counts_every_pass():
    told = []
    timed(Priced(lambda width, turn: 0.001), longest=2, advance=told.append)
    assert told == list(range(1, 2 * (REPEATS + 1) + 1))


class Pair:
    """As much of a pair as costing needs."""

    class Loaded:
        def __init__(self, model):
            self.model = model

    def __init__(self, target, draft=None):
        self.target, self.draft = self.Loaded(target), draft and self.Loaded(draft)

    def beside(self, kind):
        return None

    def drafter(self, kind):
        return self.draft.model if kind == "model" else None


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """The cache folder of a test, and what was told while measuring."""
    monkeypatch.setattr(costing, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(passes, "REPEATS", 1)  # what is kept matters here, not how long it takes
    monkeypatch.setattr(passes, "BUDGET_S", 600.0)
    told = []

    def costs(
        pair,
        draft_length=2,
        *,
        context=256,
        drafter="nothing",
        early_exit=None,
        shape=None,
        seen=None,
        keep=True,
        pause=lambda: None,
    ):
        told.clear()
        return costs_of(
            pair,
            draft_length,
            context=context,
            drafter=drafter,
            early_exit=early_exit,
            shape=shape,
            seen=seen,
            keep=keep,
            report=told.append,
            pause=pause,
        )

    costs.told, costs.file = told, tmp_path / "cache" / "passes.json"
    return costs


def test_costs_reach_far_enough_to_tell_a_best_length_and_are_measured_once(kept):
    pair = Pair(tiny_llama())
    first = kept(pair)
    assert sorted(first.seconds) == list(range(1, 10))
    assert kept.told[-1].done == kept.told[-1].total == 9 * (1 + 1)
    assert (first.draft, first.draft_step) == (None, None)
    again = kept(pair)
    assert kept.told == []
    assert again == first
    assert sorted(kept(pair, 11).seconds) == list(range(1, 13))
    assert kept.told
    assert sorted(kept(pair).seconds) == list(range(1, 10))


def test_chains_and_trees_in_turn_are_measured_once(kept):
    pair, shape = Pair(tiny_llama()), TreeShape(nodes=20, breadth=4)
    kept(pair)
    # One level has 4 guesses, two have 4 + 16: a pass reads the text's last token with them.
    tree = kept(pair, shape=shape)
    assert sorted(tree.seconds) == [1, 5, 21]
    assert kept.told
    chain = kept(pair)
    assert kept.told == []
    assert sorted(chain.seconds) == list(range(1, 10))
    again = kept(pair, shape=shape)
    assert kept.told == []
    assert again == tree
    assert (chain.seconds[1], chain.seconds[5]) == (tree.seconds[1], tree.seconds[5])


def test_a_machine_that_has_become_slower_or_faster_is_measured_anew(kept):
    pair = Pair(tiny_llama())
    single = kept(pair).seconds[1]
    for seen in (single, 1.04 * single, 0.97 * single):
        kept(pair, seen=seen)
        assert kept.told == []
    for factor in (1.07, 0.94):
        kept(pair, seen=factor * kept(pair).seconds[1])
        assert kept.told


def test_what_was_measured_on_a_machine_with_other_work_is_not_kept(kept):
    pair = Pair(tiny_llama())
    assert kept(pair, keep=False).seconds
    assert not kept.file.exists()
    kept(pair)
    assert kept.told


def test_another_context_precision_or_model_is_measured_anew(kept):
    model = tiny_llama()
    kept(Pair(model))
    assert kept(Pair(model), context=512).context_bucket == 512
    assert kept.told
    for name, value in (("precision", "bf16"), ("name", "other")):
        setattr(model, name, value)
        kept(Pair(model))
        assert kept.told


def test_the_draft_has_a_step_where_the_method_asks_it(kept):
    target, draft = tiny_llama(), tiny_llama(1)
    draft.name = "draft"
    pair = Pair(target, draft)
    assert kept(pair).draft is None
    found = kept(pair, drafter="model")
    assert found.draft == "draft"
    assert found.draft_step > 0
    assert {progress.total for progress in kept.told} == {1 + 1}


def test_an_early_exit_has_a_step_also_where_the_context_is_as_long_as_the_model_can_read(kept):
    target = tiny_llama(num_hidden_layers=3, max_position_embeddings=300)
    found = kept(Pair(target), drafter="early-exit", early_exit=EarlyExit(target, 2), context=512)
    assert found.draft == "the first 2 of 3 layers of tiny"
    assert found.draft_step > 0


def test_a_file_that_cannot_be_read_or_written_is_measured_again(kept):
    pair = Pair(tiny_llama())
    kept(pair)
    kept.file.write_bytes(b"{")
    kept(pair)
    assert kept.told
    assert msgspec.json.decode(kept.file.read_bytes())
    kept.file.unlink()
    kept.file.parent.rmdir()
    kept.file.parent.write_bytes(b"no folder")
    assert kept(pair).seconds


def test_a_stop_ends_the_measurement_and_keeps_nothing(kept):
    def stop():
        if kept.told:
            raise Cancelled

    with pytest.raises(Cancelled):
        kept(Pair(tiny_llama()), pause=stop)
    assert not kept.file.exists()
