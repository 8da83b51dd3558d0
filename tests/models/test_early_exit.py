"""A target's first layers guess ahead of it: what they answer, and that they leave no trace."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import transformers

from app.decoding.drivers import Sessions
from app.decoding.proposers import Surroundings, make_proposer
from app.library.memory import Plan, estimate
from app.library.model_size import size_of
from app.library.preflight import check
from app.models.block import Block
from app.models.cache import STEP
from app.models.early_exit import EarlyExit
from app.models.first_layers import LayerList
from app.models.loading import load
from app.models.pair import DraftWidths
from app.models.proofs import prove_early_exit
from app.run.metrics import counts
from app.run.problems import Problem
from app.run.settings import Sampling
from tiny_kinds import KINDS, STATEFUL, WINDOW, write_kind
from toys import make_lane, run, tiny_llama, wrapped

CPU = torch.device("cpu")
LAYERS = 3
OF_KIND = {"gemma3": {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}}
TEXT = [(17 * place + 3) % 250 for place in range(2 * WINDOW)]


def loaded(folder, kind="llama", precision="fp32"):
    """A model of three layers as a run has it, and its folder."""
    folder = write_kind(folder, kind, num_hidden_layers=LAYERS, **OF_KIND.get(kind, {}))
    return load(check(folder), name="Target", precision=precision, device=CPU).model, folder


def shorter(folder, layers):
    """Another model, made of the same files with fewer layers."""
    whole = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    config = transformers.AutoConfig.from_pretrained(folder)
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    config.num_hidden_layers = layers
    made = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    assert not made.load_state_dict(whole.state_dict(), strict=False).missing_keys
    return made


def behind(beside, text, guesses):
    """The logits behind the text and behind each guess, one pass each: [guesses + 1, width]."""
    block = Block(device=CPU)
    rows = [beside.read(text, block, rows=1).logits[0]]
    for token in guesses:
        block.append(torch.tensor(token))
        rows.append(beside.read(text, block, rows=1).logits[0])
    return torch.stack(rows)


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_layers_answer_as_a_model_that_has_no_others(kind, tmp_path):
    model, folder = loaded(tmp_path / "m", kind)
    assert prove_early_exit(model).holds
    guesses = [5, 9, 200]
    for layers in (1, 2):
        session = model.open(64)
        session.read(TEXT[:-1], rows=1)
        mine = behind(EarlyExit(model, layers).open(session, 64), TEXT, guesses)
        expected = shorter(folder, layers)(torch.tensor([[*TEXT, *guesses]])).logits[0, -4:]
        assert torch.allclose(mine, expected, atol=1e-4)
        assert not torch.allclose(mine, session.read(TEXT, Block(guesses), rows=4).logits, atol=0.1)


@pytest.mark.parametrize(
    ("kind", "precision"),
    [*((kind, "fp32") for kind in KINDS), ("qwen3", "bf16"), ("llama", "int8")],
)
def test_what_they_guess_leaves_no_trace_in_the_target(kind, precision, tmp_path):
    # Rounds with guesses kept and thrown, and one without, beside a session that no one uses.
    model, _ = loaded(tmp_path / "m", kind, precision)
    text, session, alone = [*TEXT], model.open(64), model.open(64)
    beside = EarlyExit(model, 2).open(session, 64)
    for one in (session, alone):
        one.read(text[:-1], rows=1)
    for guesses, new in (([5, 6], [5, 9]), ([], [1]), ([7, 8, 9], [7, 8, 9, 2]), ([1], [4])):
        if guesses:
            behind(beside, text, guesses)
        rows = len(guesses) + 1
        answers = [one.read(text, Block(guesses), rows=rows).logits for one in (session, alone)]
        assert torch.equal(*answers)
        text.extend(new)
    assert beside.byte_count == 0
    assert session.byte_count == alone.byte_count > 0


def test_its_reads_are_of_a_token_each_from_the_first_round_on(tmp_path):
    # No pass over the prompt: keys and values of the text are the target's.
    target = tiny_llama(3, num_hidden_layers=3)
    fed = []
    forward = target.forward

    def watched(ids, cache, rows, tree=None):
        fed.append((cache.depth, len(ids)))
        return forward(ids, cache, rows, tree)

    target.forward = watched
    rounds = drafted(target, Sampling(), draft_length=3, tokens=12).rounds
    assert rounds[0].phases.draft_calls > rounds[0].phases.draft_prompt == 0
    assert {width for depth, width in fed if depth} == {1}
    assert {depth for depth, _ in fed} == {None, 1}


def drafted(target, sampling, *, draft_length=4, tokens=40, layers=1, options=None):
    """A run of the whole loop with the target's first layers."""
    width = target.width
    around = Surroundings(
        sampling=sampling,
        end_ids=(),
        prompt_length=3,
        device=CPU,
        draft_device=CPU,
        widths=DraftWidths(width, width, width),
        draft_context=512,
    )
    session = target.open(STEP * 8)
    reader = Sessions(
        {"target": session, "draft": EarlyExit(target, layers).open(session, STEP * 8)}
    )
    lane = make_lane(
        [5, 9, 2],
        proposer=make_proposer("early-exit", options or {}, around),
        sampling=sampling,
        draft_length=draft_length,
        max_new_tokens=tokens,
    )
    return run(lane, reader)


@pytest.mark.parametrize("length", range(1, 9))
@pytest.mark.parametrize("penalties", [{}, {"repetition_penalty": 1.2, "presence_penalty": 0.4}])
def test_greedy_texts_are_those_without_guesses(length, penalties):
    target, sampling = tiny_llama(4, num_hidden_layers=3), Sampling(**penalties)
    plain = run(
        make_lane([5, 9, 2], sampling=sampling, max_new_tokens=40),
        Sessions({"target": target.open(128)}),
    )
    found = drafted(target, sampling, draft_length=length)
    assert found.token_ids == plain.token_ids
    assert {token.source for round_ in found.rounds for token in round_.thrown} <= {"early-exit"}
    assert counts(found).drafted


@pytest.mark.parametrize("layers", [1, 2])
def test_it_guesses_what_transformers_early_exit_guesses(layers, tmp_path):
    # theirs: the model with fewer layers, in a cache of its own, up to the first wrong guess.
    model, folder = loaded(tmp_path / "m", "llama")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    theirs.generation_config = transformers.GenerationConfig(pad_token_id=0)
    prompt = torch.tensor([TEXT])
    asked = {"max_new_tokens": 24, "do_sample": False}
    written = theirs.generate(prompt, assistant_early_exit=layers, **asked)[0].tolist()
    session = model.open(64)
    beside = EarlyExit(model, layers).open(session, 64)
    theirs.config.num_hidden_layers = layers
    kept = 0
    for end in range(len(TEXT) + 1, len(written) - 3, 3):
        text = written[:end]
        session.read(text[:-1], rows=1)
        guesses = theirs.generate(torch.tensor([text]), max_new_tokens=3, do_sample=False)
        guesses = guesses[0, end:].tolist()
        assert behind(beside, text, guesses)[:3].argmax(dim=-1).tolist() == guesses
        kept += guesses[0] == written[end]
    theirs.config.num_hidden_layers = LAYERS
    assert written == theirs.generate(prompt, **asked)[0].tolist()


def test_no_pass_of_the_first_layers_asks_the_device_for_a_value():
    # Tensors on `meta` have none: whatever would wait for a card raises here.
    meta = torch.device("meta")
    target = wrapped(tiny_llama(num_hidden_layers=3).inner.to(meta))
    session, text = target.open(64), [3, 1, 4, 1]
    session.read(text[:-1], rows=1)
    beside = EarlyExit(target).open(session, 64)
    for committed in ([1, 2, 9], [5]):
        block = Block(device=meta)
        for _ in range(3):
            block.append(beside.read(text, block, rows=1).logits[-1].argmax())
        session.read(text, block, rows=4)
        block.settle([1, 2, 3])  # the round's one copy home
        text += committed


def test_a_third_of_the_layers_guesses_unless_told_otherwise():
    for count, expected in ((2, 1), (3, 1), (30, 10), (32, 10)):
        target = SimpleNamespace(layers=count, name="Target", device=CPU, width=7)
        assert EarlyExit(target).layers == expected
    assert EarlyExit(target, 31).name == "the first 31 of 32 layers of Target"


def test_the_ids_that_can_be_guessed_are_made_once():
    found = EarlyExit(tiny_llama(num_hidden_layers=3))
    assert found.ids is found.ids
    assert found.ids.tolist() == list(range(found.target.width))


def test_the_lean_pass_guesses_without_cutting_the_layers_of_transformers(tmp_path, monkeypatch):
    model, _ = loaded(tmp_path / "m")
    assert model._lean is not None
    session = model.open(64)
    session.read(TEXT[:-1], rows=1)
    uncut = behind(EarlyExit(model, 1).open(session, 64), TEXT, [5, 9])
    monkeypatch.setattr(LayerList, "cut_to", lambda *_: pytest.fail("the layers were cut"))
    again = behind(EarlyExit(model, 1).open(session, 64), TEXT, [5, 9])
    assert torch.equal(uncut, again)


def test_an_early_exit_is_tried_once_for_a_loaded_model(tmp_path, monkeypatch):
    folder = write_kind(tmp_path / "m", "llama", num_hidden_layers=LAYERS)
    target = load(check(folder), name="Target", precision="fp32", device=CPU)
    assert target.early_exit.holds
    monkeypatch.setattr("app.models.loading.prove_early_exit", lambda _: pytest.fail("again"))
    assert target.early_exit.holds


@pytest.mark.parametrize("layers", [3, 40])
def test_more_layers_than_can_be_left_out_of_are_refused(layers):
    with pytest.raises(Problem, match=f"{layers} layers are to guess, and tiny has 3 in all"):
        EarlyExit(tiny_llama(num_hidden_layers=3), layers)


def test_a_model_whose_layers_cannot_be_told_apart_is_refused():
    target = tiny_llama()
    target.inner.model.layers = torch.nn.Sequential(*target.inner.model.layers)
    assert LayerList.of(target.inner, target.layers) is None
    assert "cannot be told apart" in prove_early_exit(target).note


def test_a_model_of_one_layer_is_refused():
    found = prove_early_exit(tiny_llama(num_hidden_layers=1))
    assert (found.holds, found.note) == (False, "it has one layer")


@pytest.mark.parametrize("kind", STATEFUL)
def test_a_model_with_a_state_is_refused(kind, tmp_path):
    folder = write_kind(tmp_path / "m", kind)
    model = load(check(folder), name="Target", precision="fp32", device=CPU).model
    assert not prove_early_exit(model).holds


def test_a_pass_that_is_broken_off_leaves_all_layers_in_place():
    target = tiny_llama(num_hidden_layers=3)
    layers = target.inner.model.layers

    def broken_off():
        with LayerList.of(target.inner, 3).cut_to(1):
            assert len(target.inner.model.layers) == 1
            raise RuntimeError("broken off")

    with pytest.raises(RuntimeError, match="broken off"):
        broken_off()
    assert target.inner.model.layers is layers


def test_it_takes_no_memory_of_its_own(tmp_path):
    size = size_of(write_kind(tmp_path / "m", "llama"))
    plans = [
        Plan(target=size, precision="fp32", drafter=drafter, tokens=100)
        for drafter in ("nothing", "early-exit")
    ]
    assert estimate(plans[0]) == estimate(plans[1])
