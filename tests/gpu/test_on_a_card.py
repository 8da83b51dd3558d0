"""What only a graphics card can show; skipped without one.

Run there: python -m pytest -m gpu tests/gpu && python -m tests.benchmarks.decoding --device cuda
&& python -m tests.benchmarks.verification --device cuda
"""

import gc
from typing import get_args

import pytest
import torch
from mtp_kinds import write_mimo_named

from app.decoding.clock import clock_for
from app.decoding.drivers import Sessions
from app.decoding.proposers.draft_head import DraftHead, HeadSetup
from app.decoding.proposers.head_tree import HeadTree
from app.library.preflight import check
from app.models.language_model import LanguageModel
from app.models.loaded_mtp import LoadedMtp
from app.models.loading import load
from app.models.precision import settle_precision, why_not
from app.models.proofs import prove_rewinding, prove_rows_independent, prove_trees
from app.models.warm import collect
from app.run.identities import violations
from app.run.metrics import counts
from app.run.problems import Problem
from app.run.settings import Precision, Sampling
from tiny_kinds import write_kind
from toys import Guesses, draft_model, make_lane, run, sessions, tiny_head, tiny_llama, wrapped

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no graphics card for torch"),
]


def on_card(seed=1, *, noise=0.0, dtype=torch.float32) -> LanguageModel:
    return wrapped(tiny_llama(seed, noise=noise).inner.to("cuda", dtype))


def lane(prompt, *, sampling=Sampling(), tokens=40, **changes):
    clock = clock_for(torch.device("cuda"))
    return make_lane(
        prompt, sampling=sampling, clock=clock, device="cuda", max_new_tokens=tokens, **changes
    )


def drafting(sampling=Sampling()):
    made = draft_model(width=64, sampling=sampling, prompt_length=3)
    made._device = torch.device("cuda")
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_both_proofs_hold(dtype):
    model = on_card(dtype=dtype)
    assert prove_rewinding(model).holds
    assert prove_rows_independent(model).holds


@pytest.mark.parametrize("gamma", [1, 3, 8])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_greedy_text_is_the_plain_one_in_fp32(gamma, noise):
    torch.backends.cuda.matmul.allow_tf32 = False
    target, draft = on_card(1), on_card(1, noise=noise)
    plain = run(lane([3, 1, 4]), sessions(target))
    fast = run(lane([3, 1, 4], proposer=drafting(), draft_length=gamma), sessions(target, draft))
    assert violations(fast) == []
    assert fast.token_ids == plain.token_ids


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, top_p=0.9, seed=3)])
@pytest.mark.parametrize("places", [("cuda", "cpu"), ("cpu", "cuda"), ("cuda:0", "cuda:1")])
def test_target_and_draft_on_two_devices(places, sampling):
    if "cuda:1" in places and torch.cuda.device_count() < 2:
        pytest.skip("one card alone")
    torch.backends.cuda.matmul.allow_tf32 = False
    target, draft = (
        wrapped(tiny_llama(1, noise=noise).inner.to(place))
        for place, noise in zip(places, (0.0, 0.02), strict=True)
    )
    here = {"sampling": sampling, "clock": clock_for(target.device), "device": target.device}
    proposer = drafting(sampling)
    proposer._device = draft.device
    made = make_lane([3, 1, 4], proposer=proposer, draft_clock=clock_for(draft.device), **here)
    fast = run(made, sessions(target, draft))
    assert violations(fast) == []
    assert counts(fast).accepted
    assert all(round_.phases.draft_calls > 0 for round_ in fast.rounds if round_.drafted)
    if sampling.greedy:
        assert fast.token_ids == run(make_lane([3, 1, 4], **here), sessions(target)).token_ids


def test_weights_without_room_are_offloaded_where_that_is_allowed(tmp_path, monkeypatch):
    folder = check(write_kind(tmp_path / "tiny", "llama", hidden_size=256, intermediate_size=512))
    room = folder.weight_bytes // 2
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (int(room / 0.85), 1 << 40))
    card = torch.device("cuda", 0)
    parted = load(folder, name="tiny", precision="fp32", device=card, allow_offload=True)
    assert 0.2 < parted.model.offloaded < 1.0
    assert parted.rewinding.holds
    assert parted.model.device == card
    assert any("not those of this card" in note for note in parted.notes)


def test_released_models_give_the_cards_memory_back(tmp_path):
    folder = check(write_kind(tmp_path / "tiny", "llama", hidden_size=256, intermediate_size=512))
    gc.collect()
    before = torch.cuda.memory_allocated()
    loaded = load(folder, name="tiny", precision="fp32", device=torch.device("cuda", 0))
    assert torch.cuda.memory_allocated() > before + folder.weight_bytes // 2
    del loaded
    collect()
    assert torch.cuda.memory_allocated() <= before + (1 << 20)


def test_a_copy_is_nearly_always_right_in_bf16():
    target, draft = on_card(3, dtype=torch.bfloat16), on_card(3, dtype=torch.bfloat16)
    fast = run(lane([5, 9, 2], proposer=drafting(), tokens=101), sessions(target, draft))
    assert counts(fast).acceptance_rate > 0.8


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, seed=3)])
def test_a_head_drafts_beside_its_target(dtype, sampling):
    target = on_card(2, dtype=dtype)
    proposer, both = head_drafting(target, sampling)
    fast = run(lane([3, 1, 4], proposer=proposer, sampling=sampling), both)
    assert violations(fast) == []
    assert counts(fast).drafted > 20
    if dtype == torch.float32 and sampling.greedy:
        assert fast.token_ids == run(lane([3, 1, 4]), sessions(target)).token_ids


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, seed=3)])
def test_a_head_drafts_trees_beside_its_target(dtype, sampling):
    target = on_card(2, dtype=dtype)
    assert prove_trees(target).holds
    proposer, both = head_drafting(target, sampling, tree=True)
    fast = run(lane([3, 1, 4], proposer=proposer, sampling=sampling), both)
    assert violations(fast) == []
    assert counts(fast).nodes > counts(fast).drafted > 20
    if dtype == torch.float32 and sampling.greedy:
        assert fast.token_ids == run(lane([3, 1, 4]), sessions(target)).token_ids


def head_drafting(target, sampling, *, tree=False):
    """The head proposer for a target on the card, and sessions for both."""
    head = tiny_head(target)
    make, shape = (HeadTree, {"nodes": 12, "breadth": 3}) if tree else (DraftHead, {})
    proposer = make(
        sampling=sampling, ids=head.ids, width=target.width, prompt_length=3, end_ids=(), **shape
    )
    session = target.open(256, features=True)
    return proposer, Sessions({"target": session, "head": head.open(session, 256)})


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, seed=3)])
def test_a_targets_own_modules_draft_beside_it(tmp_path, sampling):
    torch.backends.cuda.matmul.allow_tf32 = False
    target, proposer, both = mtp_drafting(tmp_path, sampling)
    fast = run(lane([3, 1, 4], proposer=proposer, sampling=sampling), both)
    assert violations(fast) == []
    assert counts(fast).drafted > 20
    if sampling.greedy:
        assert fast.token_ids == run(lane([3, 1, 4]), sessions(target)).token_ids


def mtp_drafting(folder, sampling):
    """A target with a module on the card, its proposer, and sessions for both."""
    write_mimo_named(folder)
    loaded = load(check(folder), name="tiny", precision="fp32", device=torch.device("cuda"))
    target, mtp = loaded.model, LoadedMtp(loaded)
    proposer = DraftHead(
        HeadSetup(sampling=sampling, ids=mtp.ids, width=target.width, prompt_length=3, end_ids=())
    )
    session = target.open(256, features=True)
    return target, proposer, Sessions({"target": session, "head": mtp.open(session, 256)})


def test_phases_add_up_to_the_round():
    repetition = run(lane([3, 1, 4], proposer=drafting()), sessions(on_card(1), on_card(2)))
    for round_ in repetition.rounds[1:]:
        phases = round_.phases
        assert phases.draft > 0
        assert phases.verify > 0
        assert phases.outside_models < phases.total


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole")
    tiny_llama(1, hidden_size=128, intermediate_size=256).inner.save_pretrained(path)
    return check(path, needs_tokenizer=False)


@pytest.mark.parametrize("precision", get_args(Precision))
def test_every_precision_loads_proves_and_decodes(folder, precision):
    device = torch.device("cuda")
    refusal = why_not(precision, device)
    if precision == "int8":
        assert "CPU only" in refusal.message
        return
    assert refusal is None, refusal
    torch.backends.cuda.matmul.allow_tf32 = False
    found = load(folder, name="tiny", precision=precision, device=device)
    assert found.rewinding.holds, found.rewinding.note
    assert found.rows.holds == (precision != "llm-int8"), found.rows.note
    plain = run(lane([3, 1, 4]), sessions(found.model))
    mixed = Guesses(lambda t, r: [*plain.token_ids[len(t) - 3 : len(t) - 3 + r % 4], 63, 62])
    fast = run(lane([3, 1, 4], proposer=mixed, draft_length=5), sessions(found.model))
    assert violations(fast) == []
    assert len(fast.token_ids) == len(plain.token_ids) == 40
    if precision == "fp32":  # others round by width, so that near ties may flip
        assert fast.token_ids == plain.token_ids


@pytest.mark.parametrize("precision", ["nf4", "fp4", "llm-int8"])
def test_what_bitsandbytes_saved_writes_the_same_text(folder, precision, tmp_path):
    device = torch.device("cuda")
    before = load(folder, name="tiny", precision=precision, device=device)
    before.model.inner.save_pretrained(tmp_path)
    saved = check(tmp_path, needs_tokenizer=False)
    assert settle_precision(saved, None, device)[0] == precision
    after = load(saved, name="tiny", precision=precision, device=device)
    texts = [run(lane([3, 1, 4]), sessions(one.model)).token_ids for one in (before, after)]
    assert texts[0] == texts[1]


def test_out_of_memory_is_a_problem_and_memory_returns():
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    model = on_card(1)
    free, _ = torch.cuda.mem_get_info()
    hog = torch.empty(int(free * 0.98), dtype=torch.uint8, device="cuda")
    with pytest.raises(Problem, match="memory"):
        model.open(1 << 28).read([1, 2, 3], rows=1)
    del hog, model
    gc.collect()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() <= before + (1 << 20)
