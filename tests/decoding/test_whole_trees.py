"""Trees that a session grows by itself are those that are grown level by level.

`fixed` computes each tree; `taped` records it once, and repeats its operations.
"""

from __future__ import annotations

import gc
import weakref
from functools import partial

import pytest
import torch
from kept_drafts import NEAR, Counted, Watched, quiet, same_drafts, told, watched

from app.decoding.drivers import Sessions
from app.decoding.proposers.draft_head import HeadSetup
from app.decoding.proposers.grown_tree import TreeGrowing
from app.decoding.proposers.head_tree import HeadTree
from app.decoding.sampling import Penalties
from app.library.head_folder import check_head
from app.models.block import Block
from app.models.fixed.head_feed import feed_pairs
from app.models.fixed.head_tree import HeadTreeShape, grow_head_tree
from app.models.fixed.passes import Passes
from app.models.growing import TreeGuesses
from app.models.loaded_head import LoadedHead
from app.models.picking import Told
from app.run.settings import Sampling
from published_heads import HIDDEN, first_version, third_version
from tapes import Tape, taped
from toys import FakeClock, make_lane, run, tiny_head, tiny_llama

PROMPT = [3, 1, 4, 1, 5]
CAPACITY = 120
SHAPES = [(1, 9, 3), (2, 6, 2), (4, 9, 3), (6, 20, 4)]
"""Levels, most guesses, and breadth."""


def proposer_of(head, *, nodes=9, breadth=3, at_once=True, sampling=Sampling(), end_ids=()):
    setup = HeadSetup(
        sampling=sampling,
        ids=head.ids,
        width=head.target.width,
        prompt_length=len(PROMPT),
        end_ids=end_ids,
    )
    return HeadTree(setup, nodes=nodes, breadth=breadth, at_once=at_once)


def beside(mode: str, head, *, capacity: int = CAPACITY, tape=Tape):
    """Sessions of a target and its head in passes of a mode, and what was recorded."""
    tapes = None
    if mode == "taped":
        head.target.passes, tapes = taped(tape)
    else:
        head.target.passes = Passes(mode)
    session = head.open_target(capacity)
    return Sessions({"target": session, "head": head.open(session, capacity)}), tapes


def grown(mode, head, *, levels, sampling=Sampling(), tokens=40, **tree):
    """What a lane writes, the trees that its rule was given, and its reader."""
    proposer = proposer_of(head, sampling=sampling, **tree)
    both, _ = beside(mode, head)
    if proposer.trees is not None:
        both.prepare_trees("head", [levels], proposer.trees.how, behind=4, advance=quiet)
    return watched(PROMPT, proposer, Counted(both), sampling, levels, tokens=tokens)


def same_trees(mine, theirs):
    same_drafts(mine, theirs)
    assert sum(1 for one in mine if one.parents) > 3


def kinds_of_head(kind: str, folder, seed: int = 1):
    if kind == "own":
        return tiny_head(tiny_llama(seed), hears=0.3)
    sizes = {"hidden_size": HIDDEN, "num_hidden_layers": 3, "tie_word_embeddings": False}
    target = tiny_llama(4, vocabulary=64, **sizes)
    if kind == "eagle-1":
        first_version(folder, 64, seed=2)
    else:
        third_version(folder, 64, ids=[token for token in range(64) if token % 5], seed=2)
    return LoadedHead(check_head(folder), target)


@pytest.fixture(scope="module")
def head():
    return kinds_of_head("own", None)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("seed", "temperature"), [(0, 0.0), (1, 0.9), (2, 0.9)])
@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_trees_and_texts_are_those_of_level_by_level(mode, seed, shape, temperature):
    levels, nodes, breadth = shape
    head = kinds_of_head("own", None, seed)
    sampling = Sampling(temperature=temperature, seed=seed)
    tree = {"levels": levels, "nodes": nodes, "breadth": breadth, "sampling": sampling}
    alone, trees, _ = grown("eager", head, at_once=False, **tree)
    found, made, reader = grown(mode, head, **tree)
    same_trees(made, trees)
    assert told(found) == told(alone)
    # The first round reads the prompt, the last may have fewer levels left than were recorded.
    assert reader.made >= len([one for one in found.rounds if one.nodes]) - levels > 0
    assert reader.made == reader.asked or mode == "taped"
    assert any(token.status == "rejected" for one in found.rounds for token in one.thrown)


@pytest.mark.parametrize("kind", ["eagle-1", "eagle-3"])
@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_heads_of_other_kinds_grow_the_same_trees(mode, kind, tmp_path):
    head = kinds_of_head(kind, tmp_path)
    tree = {"levels": 4, "nodes": 12, "breadth": 3}
    alone, trees, _ = grown("eager", head, at_once=False, **tree)
    found, made, reader = grown(mode, head, **tree)
    same_trees(made, trees)
    assert told(found) == told(alone)
    assert reader.made > 3


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_nothing_grows_behind_an_end_of_text(head, mode):
    # The text goes on behind them, so that many trees hold them; three guesses stand elsewhere.
    ends = [int(token) for token in head.ids[::3]]
    alone, trees, _ = grown("eager", head, at_once=False, levels=4, nodes=3, end_ids=ends)
    found, made, reader = grown(mode, head, levels=4, nodes=3, end_ids=ends)
    same_trees(made, trees)
    assert told(found) == told(alone)
    assert reader.made
    at_ends = [(one.ids, one.parents) for one in made if set(one.ids) & set(ends)]
    assert at_ends
    for ids, parents in at_ends:
        assert not any(above >= 0 and ids[above] in ends for above in parents)


@torch.inference_mode()
def test_a_replayed_tree_is_bit_for_bit_what_its_operations_make(head):
    both, tapes = beside("taped", head)
    how = proposer_of(head).trees.how
    both.prepare_trees("head", [4], how, behind=0, advance=quiet)
    mine, text = both._sessions["head"], [*PROMPT]
    for new in ([9], [2, 6], [5, 3, 5, 8], [7]):
        mine.target.read(text[:-1], rows=1)
        before = tapes.replayed
        found = mine.tree(text, 4, how=how, told=Told())
        assert tapes.replayed == before + 2  # a feed, and a tree
        room = mine._room
        shape = HeadTreeShape(4, room.keys(len(text) - 1 + how.read(4)), how)
        told = head, room.layer, room.rotation, room.start, room.feature
        for one, other in zip(found, grow_head_tree(*told, shape, None), strict=True):
            assert torch.equal(one, other)
        assert mine.held == len(text)
        text += new


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_a_session_goes_on_from_a_tree_whatever_the_text_says_next(head, mode):
    # More of the text, the same again, taken back, and another text; level by level in between.
    both, _ = beside("eager", head)
    plain = both._sessions["head"]
    both, _ = beside(mode, head)
    how = proposer_of(head).trees.how
    both.prepare_trees("head", [3], how, behind=0, advance=quiet)
    mine = both._sessions["head"]
    texts = [[3, 1], [3, 1, 4], [3, 1, 4], [3, 1, 4, 5, 6, 7], [3, 1, 9], [*range(40)], [8, 8]]
    for text in texts:
        for session in (mine, plain):
            session.target.read(text[:-1], rows=1)
        expected = level_by_level(plain, text, 3, how)
        for one, other in zip(mine.tree(text, 3, how=how, told=Told()), expected, strict=True):
            assert torch.allclose(one, other, rtol=NEAR, atol=NEAR)
        again = level_by_level(mine, text, 3, how)
        assert again.ids.tolist() == expected.ids.tolist()


def level_by_level(session, text, levels, how) -> TreeGuesses:
    tree = how.begin()
    for level in range(levels):
        if level:
            tree.extend_beam()
        tree.grow(session.read(text, tree.beam, rows=tree.width).logits)
    return tree.best()


def test_each_guess_is_read_as_if_its_own_way_were_the_text(head):
    # The logits behind every guess of a tree are those of a chain along its way.
    read, how = [], TreeGrowing.of(head.ids, nodes=40, breadth=3, end_ids=())

    class Noted:
        """Trees that note the logits they are given."""

        def none_used(self, device):
            return None

        def begin(self, used):
            tree = how.begin(used)
            grow = tree.grow

            def noted(logits):
                read.append((tree, logits))
                grow(logits)

            tree.grow = noted
            return tree

        def read(self, levels):
            return how.read(levels)

    both, _ = beside("fixed", head)
    mine = both._sessions["head"]
    mine.target.read(PROMPT[:-1], rows=1)
    mine.tree(PROMPT, 4, how=Noted(), told=Told())
    both, _ = beside("eager", head)
    plain = both._sessions["head"]
    plain.target.read(PROMPT[:-1], rows=1)
    beam, rows = read[-1][0].beam, torch.cat([logits for _, logits in read])
    assert len(rows) == 1 + len(beam) == 10
    for guess in range(len(beam)):
        way, at = [], guess
        while at >= 0:
            way.insert(0, beam.ids[at])
            at = beam.parents[at]
        alone = plain.read(PROMPT, Block(way), rows=1).logits[0]
        assert torch.allclose(rows[1 + guess], alone, rtol=NEAR, atol=NEAR)


@torch.inference_mode()
def test_a_pair_sees_what_is_not_hidden(head):
    both, _ = beside("fixed", head)
    mine = both._sessions["head"]
    mine.target.read(PROMPT, rows=1)
    mine.read([*PROMPT, 9], rows=1)
    room, four = mine._room, torch.tensor([4])
    fed = {"ids": torch.tensor([7]), "features": mine._feature, "places": four, "positions": four}
    told = head, room.layer, room.rotation
    causal = feed_pairs(*told, **fed, keys=6)
    last = torch.tensor([[False, False, False, False, False, True]])
    assert torch.equal(feed_pairs(*told, **fed, keys=6, hidden=last), causal)
    assert not torch.allclose(feed_pairs(*told, **fed, keys=6, hidden=last.roll(1, 1)), causal)


def test_where_none_are_made_no_tree_is_asked_for(head):
    assert proposer_of(head, at_once=False).trees is None
    alone, trees, _ = grown("eager", head, levels=3, at_once=False)
    found, made, reader = grown("fixed", head, levels=3, at_once=False)
    assert reader.asked == 0
    same_trees(made, trees)
    assert told(found) == told(alone)


PENALISED = [
    Sampling(repetition_penalty=1.4, presence_penalty=0.6),
    Sampling(temperature=0.9, repetition_penalty=0.8, presence_penalty=-0.5, seed=4),
]


@pytest.mark.parametrize("kind", ["own", "eagle-3"])  # the latter guesses some tokens only
@pytest.mark.parametrize("sampling", PENALISED)
@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_under_penalties_trees_and_texts_are_those_of_level_by_level(
    mode, sampling, kind, tmp_path
):
    head = kinds_of_head(kind, tmp_path)
    tree = {"levels": 4, "nodes": 12, "breadth": 3, "sampling": sampling}
    alone, trees, _ = grown("eager", head, at_once=False, **tree)
    found, made, reader = grown(mode, head, **tree)
    same_trees(made, trees)
    assert told(found) == told(alone)
    assert reader.made > 3
    tree["sampling"] = Sampling(temperature=sampling.temperature, seed=sampling.seed)
    _, others, _ = grown("eager", head, at_once=False, **tree)
    assert [one.ids for one in others] != [one.ids for one in made]


@pytest.mark.parametrize("sampling", PENALISED)
def test_each_guess_is_penalised_by_the_text_and_its_own_way(sampling):
    # As the target's rows are: what was seen, and what was written behind a prompt of two.
    width, breadth, text = 30, 3, [4, 9, 7]
    ids = torch.arange(0, width, 2)
    spread = {"ids": ids, "nodes": 60, "breadth": breadth, "end_ids": ()}
    tree = TreeGrowing.of(**spread, sampling=sampling, width=width).begin(
        Penalties(sampling, 2).used(text, width, ids.device)
    )
    plain, chance = TreeGrowing.of(**spread).begin(), torch.Generator().manual_seed(5)
    for level in range(4):
        if level:
            tree.extend_beam()
            plain.extend_beam()
        logits = 2.0 * torch.randn(tree.width, len(ids), generator=chance)
        whole = torch.full((tree.width, width), -torch.inf)
        whole[:, ids] = logits
        plain.grow(Penalties(sampling, 2).apply(whole, text, plain.beam)[:, ids])
        tree.grow(logits)
    for one, other in zip(tree.best(), plain.best(), strict=True):
        assert torch.equal(one, other)
    assert len({int(token) for token in tree.best().ids}) > 5


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_a_tree_for_which_there_is_no_room_is_not_grown(head, mode):
    both, _ = beside(mode, head, capacity=20)
    how = proposer_of(head).trees.how  # of four levels nine guesses are read
    both.prepare_trees("head", [4, 40], how, behind=0, advance=quiet)
    mine, text = both._sessions["head"], [*range(12)]
    mine.target.read(text, rows=1)
    assert mine.tree(text, 4, how=how, told=Told()) is not None
    assert mine.tree([*text, 12], 4, how=how, told=Told()) is None
    assert mine.tree(text[:4], 40, how=how, told=Told()) is None


def test_levels_that_were_not_recorded_are_read_one_by_one(head):
    both, tapes = beside("taped", head)
    how = proposer_of(head).trees.how
    both.prepare_trees("head", [3], how, behind=0, advance=quiet)
    mine = both._sessions["head"]
    mine.target.read(PROMPT[:-1], rows=1)
    recorded = tapes.recorded
    assert mine.tree(PROMPT, 2, how=how, told=Told()) is None
    assert mine.tree(PROMPT, 3, how=how, told=Told()) is not None
    both.prepare_trees("head", [2, 3], how, behind=0, advance=quiet)
    assert tapes.recorded == recorded + 1
    assert mine.tree(PROMPT, 2, how=how, told=Told()) is not None


def test_a_room_that_forgets_what_it_recorded_grows_no_trees(head):
    both, tapes = beside("taped", head)
    how = proposer_of(head).trees.how
    both.prepare_trees("head", [3], how, behind=0, advance=quiet)
    mine = both._sessions["head"]
    mine.target.read(PROMPT[:-1], rows=1)
    assert mine.tree(PROMPT, 3, how=how, told=Told()) is not None
    replayed, room = tapes.replayed, mine._room
    assert replayed == 2  # a feed, and a tree
    room.forget()
    assert mine.tree(PROMPT, 3, how=how, told=Told()) is None
    assert tapes.replayed == replayed
    assert room.recorder is None
    assert not any(room._all_recorded)


def test_trees_of_equal_sizes_and_ends_share_a_recording(head):
    both, tapes = beside("taped", head)

    def recorded(**changes) -> int:
        how = proposer_of(head, **changes).trees.how
        both.prepare_trees("head", [3], how, behind=0, advance=quiet)
        return tapes.recorded

    first = recorded(end_ids=[5, 2])
    assert recorded(end_ids=[2, 5]) == first
    assert recorded(end_ids=[5, 2], sampling=Sampling(temperature=0.7, seed=3)) == first
    assert recorded(end_ids=[5]) == first + 1
    assert recorded(end_ids=[5], nodes=10) == first + 2
    assert recorded(end_ids=[5], breadth=2) == first + 3


class Refuses(Tape):
    """Records what feeds a text, but no tree."""

    def record(self, run):
        if isinstance(run, partial):
            return super().record(run)
        raise RuntimeError("too long")


def test_trees_grow_level_by_level_where_none_could_be_recorded():
    head = kinds_of_head("own", None)
    both, tapes = beside("taped", head, tape=Refuses)
    proposer = proposer_of(head)
    for _ in range(2):  # nor is it tried again
        both.prepare_trees("head", [4], proposer.trees.how, behind=4, advance=quiet)
    recorded, reader, rule = tapes.recorded, Counted(both), Watched(Sampling())
    assert recorded > 0
    found = run(make_lane(PROMPT, proposer=proposer, max_new_tokens=40, verifier=rule), reader)
    said = head.target.passes.said
    assert said == (
        "captured graphs; the head's trees level by level: they cannot be captured (too long)"
    )
    assert reader.asked > reader.made == 0
    assert tapes.replayed > 3  # how pairs of a text are fed
    alone, trees, _ = grown("eager", head, at_once=False, levels=4)
    same_trees(rule.drafts, trees)
    assert told(found) == told(alone)


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_passes_that_become_eager_grow_no_whole_trees_any_more(mode):
    head = kinds_of_head("own", None)
    both, _ = beside(mode, head)
    how = proposer_of(head).trees.how
    both.prepare_trees("head", [3], how, behind=0, advance=quiet)
    mine = both._sessions["head"]
    mine.target.read(PROMPT[:-1], rows=1)
    before = mine.tree(PROMPT, 3, how=how, told=Told())
    head.target.passes.fall_back("a test")
    assert mine.tree(PROMPT, 3, how=how, told=Told()) is None
    again = level_by_level(mine, PROMPT, 3, how)
    assert again.ids.tolist() == before.ids.tolist()


def test_a_trees_seconds_are_the_drafts(head):
    both, _ = beside("fixed", head)
    clock, answer = FakeClock(), both.answer

    def slow(request):
        found = answer(request)
        clock.spend({"WholeTree": 0.5, "Read": 0.125}.get(type(request).__name__, 0.0))
        return found

    both.answer = slow
    lane = make_lane(PROMPT, proposer=proposer_of(head), clock=clock, max_new_tokens=40)
    rounds = run(lane, both).rounds
    assert sum(1 for one in rounds if one.nodes) > 3
    for one in rounds[1:]:
        assert one.phases.draft_calls == (0.5 if one.nodes else 0.0)
        assert one.phases.draft == one.phases.draft_calls
        assert one.phases.verify == 0.125


@pytest.mark.parametrize("breadth", [1, 3])
def test_a_tree_is_grown_without_asking_the_device(breadth):
    # Tensors on `meta` have no values: to ask for one raises.
    ids = torch.arange(50, device="meta")
    tree = TreeGrowing.of(ids, nodes=7, breadth=breadth, end_ids=[3, 4]).begin()
    for level in range(3):
        if level:
            tree.extend_beam()
        tree.grow(torch.empty((tree.width, 50), device="meta"))
    found = tree.best()
    assert len(found.ids) == len(found.parents) == min(7, breadth + 2 * breadth**2)
    assert len(found.peaks) == 1 + len(tree.beam) == 1 + 2 * breadth


def test_nothing_of_a_tree_is_held_once_its_session_is_gone():
    gc.collect()
    gc.disable()  # memory of a card has to be free at once
    try:
        head = kinds_of_head("own", None)
        both, _ = beside("taped", head)
        how = proposer_of(head).trees.how
        both.prepare_trees("head", [3], how, behind=0, advance=quiet)
        room = weakref.ref(both._sessions["head"]._room)
        both._sessions["target"].read(PROMPT[:-1], rows=1)
        assert both._sessions["head"].tree(PROMPT, 3, how=how, told=Told()) is not None
        assert room() is not None
        both = None
        assert room() is None
    finally:
        gc.enable()
