"""The lean pass beside transformers' own, for every architecture that it claims to know."""

import copy

import pytest
import torch
from lean_kinds import KINDS, SIZES, made

from app.models import attention, language_model, lean_decoder, packed_linear
from app.models.block import Block
from app.models.packed_linear import why_not_packed
from app.models.proofs import prove_rewinding
from toys import tiny_llama, wrapped

LEAN = "prepacked for oneDNN, lean pass"


@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_logits_are_those_of_transformers(kind, changes):
    # Fed in passes of one, a few and many rows, with tokens taken back in between.
    reference = made(kind, **changes)
    model = wrapped(copy.deepcopy(reference))
    model.pack(torch.float32)
    assert model.kernel == LEAN
    text = [(5 + 11 * place) % 96 for place in range(700)]
    session = model.open(len(text))
    mine = []
    start = 0
    for width in (3, 1, 1, 5, 40, 2, 600, 1):
        session.read(text[:start], Block([7, 7, 7]), rows=1)
        mine.append(session.read(text[: start + width], rows=width).logits)
        start += width
    with torch.inference_mode():
        theirs = reference(torch.tensor([text[:start]])).logits[0]
        inner = model.inner(torch.tensor([text[:start]])).logits[0]
    near = {"rtol": 1e-3, "atol": 1e-3 * float(theirs.abs().max())}
    assert torch.allclose(torch.cat(mine), theirs, **near)
    assert torch.allclose(inner, theirs, **near)  # for training, which reads in batches


@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_texts_in_fp32_are_those_of_generate(kind, changes):
    reference = made(kind, **changes)
    model = wrapped(copy.deepcopy(reference))
    model.pack(torch.float32)
    text = [3, 14, 15, 92, 65]
    due = reference.generate(
        torch.tensor([text]),
        max_new_tokens=40,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        use_cache=False,  # its cache believes in windows that the model does not have
    )[0].tolist()
    session = model.open(64)
    while len(text) < len(due):
        text.append(int(session.read(text, rows=1).logits[-1].argmax()))
    assert text == due


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_rows_do_not_know_each_other_at_any_width(kind, changes, dtype):
    if why_not_packed(dtype):
        pytest.skip(why_not_packed(dtype))
    model = wrapped(made(kind, **changes))
    model.pack(dtype)
    assert model.kernel == LEAN
    assert prove_rewinding(model).holds
    text = list(range(20))
    for width in range(1, 10):
        answers = []
        for companions in ([30] * width, list(range(40, 40 + width))):
            session = model.open(64)
            session.read(text[:-1], rows=1)
            block = Block(companions[1:])
            answers.append(session.read(text, block, rows=width).logits[0])
        assert torch.equal(*answers), width


def test_bf16_is_near_fp32():
    if why_not_packed(torch.bfloat16):
        pytest.skip(why_not_packed(torch.bfloat16))
    reference = made("qwen3")
    model = wrapped(copy.deepcopy(reference))
    model.pack(torch.bfloat16)
    ids = torch.arange(60)
    mine = model.forward(ids, model.new_cache(60), 60).float()
    theirs = reference(ids[None]).logits[0].detach()
    assert float((mine - theirs).norm() / theirs.norm()) < 0.05


def test_a_kind_that_is_not_known_keeps_transformers_own_pass():
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    torch.manual_seed(0)
    config = Gemma3TextConfig(**{**SIZES, "head_dim": 16, "sliding_window": 8})
    reference = Gemma3ForCausalLM(config).eval()
    model = wrapped(copy.deepcopy(reference))
    model.pack(torch.float32)
    assert model.kernel == "prepacked for oneDNN"
    ids = torch.arange(12)
    mine = model.forward(ids, model.new_cache(12), 12)
    assert torch.allclose(mine, reference(ids[None]).logits[0], atol=1e-3)


def test_eager_attention_that_was_asked_for_is_kept():
    model = tiny_llama(0, attn_implementation="eager")
    model.pack(torch.float32)
    assert model.kernel == "prepacked for oneDNN"


@pytest.mark.parametrize(
    ("module", "broken"),
    [(lean_decoder, "rotate"), (attention, "attend_folded"), (attention, "_attend_whole")],
)
def test_a_lean_pass_that_answers_differently_is_not_used(monkeypatch, module, broken):
    # As when a new release of transformers changes what a layer computes.
    right = getattr(module, broken)
    monkeypatch.setattr(module, broken, lambda *given: right(*given) * 1.1)
    reference = made("llama")
    model = wrapped(copy.deepcopy(reference))
    model.pack(torch.float32)
    assert "not used" in model.kernel
    ids = torch.arange(12)
    mine = model.forward(ids, model.new_cache(12), 3)
    assert torch.allclose(mine, reference(ids[None]).logits[0, -3:], atol=1e-3)


def test_without_packed_layers_there_is_no_lean_pass(monkeypatch):
    for module in (packed_linear, language_model):
        monkeypatch.setattr(module, "why_not_packed", lambda dtype: "it is not wanted")
    model = tiny_llama(0)
    model.pack(torch.float32)
    assert model.kernel == "plain, as it is not wanted"
