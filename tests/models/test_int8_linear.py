"""Linear layers in 8 bits: exact sums of whole numbers, and rows that do not know each other."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from app.library.preflight import check
from app.models import int8_linear, packed_linear
from app.models.fused_linear import fuse
from app.models.int8_linear import INT8, Int8Linear, linear_share, quantised_by_row
from app.models.loading import load
from app.models.packed_linear import pack, why_not_packed
from app.models.precision import why_not
from app.models.proofs import prove_rewinding, prove_rows_independent
from app.run.identities import violations
from app.run.metrics import counts
from app.run.problems import Problem
from toys import Guesses, make_lane, run, sessions, tiny_llama

CPU = torch.device("cpu")

pytestmark = pytest.mark.skipif(
    why_not_packed(torch.int8) is not None, reason=str(why_not_packed(torch.int8))
)


@pytest.fixture
def forgetful():
    """What this torch can do is tried anew, before and after."""
    why_not_packed.cache_clear()
    yield
    why_not_packed.cache_clear()


def by_tensor(x):
    """One scale for all rows of a pass, as dynamic quantisation usually has it."""
    steps = (x.abs().amax() / 127).expand(*x.shape[:-1], 1)
    return (x / steps).round().to(torch.int8), steps


def in_numpy(x, weight, bias):
    """What the layer has to answer, and how far that may be from the plain layer, both [n, out]."""
    # In 32 bits up to here: which of two whole numbers is nearer hangs on the last of them.
    weight_step = np.abs(weight).max(1) / np.float32(127)
    step = np.abs(x).max(1, keepdims=True) / np.float32(127)
    whole = np.rint(x / step).astype(np.int64) @ np.rint(weight.T / weight_step).astype(np.int64)
    rounded_off = (
        np.abs(x) @ np.ones_like(weight.T) * weight_step / 2
        + np.ones_like(x) @ np.abs(weight.T) * step / 2
        + x.shape[1] * step * weight_step / 4
    )
    return whole * step.astype(np.float64) * weight_step + bias, rounded_off


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 3, 40])
def test_answers_are_exact_sums_within_the_rounding_of_8_bits(bias, rows):
    torch.manual_seed(rows)
    plain = nn.Linear(33, 70, bias=bias)
    x, other = torch.randn(rows, 33), torch.randn(rows, 70)
    given = plain.bias.detach().numpy() if bias else 0.0
    due, rounded_off = in_numpy(x.numpy(), plain.weight.detach().numpy(), given)
    held = Int8Linear([plain])
    assert np.allclose(held(x).numpy(), due, rtol=1e-4, atol=1e-4)
    assert np.allclose(held.plus(x, other).numpy(), due + other.numpy(), rtol=1e-4, atol=1e-4)
    apart = np.abs(held(x).numpy() - plain(x).detach().numpy())
    assert (apart <= rounded_off + 1e-5).all()
    assert apart.max() > 1e-4
    steps = plain.weight.detach().abs().amax(1, keepdim=True) / 127
    assert ((held.weight - plain.weight).abs() <= steps / 2 * 1.0001).all()


def test_a_row_does_not_know_its_companions_and_by_tensor_it_would(monkeypatch):
    # Companions a thousand times as large: a common scale leaves the first row next to nothing.
    torch.manual_seed(0)
    held = Int8Linear([nn.Linear(64, 48)])
    row, others = torch.randn(1, 64), torch.randn(4, 64)

    def answers():
        return [held(torch.cat([row, size * others]))[0] for size in (0.001, 1.0, 1000.0)]

    small, like, large = answers()
    assert torch.equal(small, like)
    assert torch.equal(like, large)
    assert torch.equal(like, held(row)[0])
    monkeypatch.setattr(int8_linear, "quantised_by_row", by_tensor)
    small, like, large = answers()
    assert (large - like).abs().max() > 0.1


def test_the_row_proof_holds_and_by_tensor_it_would_not(monkeypatch):
    model = tiny_llama(2)
    model.pack(torch.int8)
    assert model.kernel == f"{INT8}, lean pass"
    assert prove_rewinding(model).holds
    assert prove_rows_independent(model).holds
    monkeypatch.setattr(int8_linear, "quantised_by_row", by_tensor)
    proof = prove_rows_independent(model)
    assert not proof.holds
    assert "guesses after it" in proof.note


def test_rows_are_the_same_in_passes_of_any_width_where_heads_share_their_keys():
    # Whole numbers are summed exactly; so many keys more or less must not round otherwise.
    model = tiny_llama(5, hidden_size=96, num_attention_heads=6)
    model.pack(torch.int8)
    text = [(7 + 5 * place) % 64 for place in range(70)]
    answers = {}
    for width in (1, 2, 5, 10, 30):
        session = model.open(80)
        session.read(text[:10], rows=1)
        answers[width] = torch.cat(
            [
                session.read(text[: start + width], rows=width).logits
                for start in range(10, 70, width)
            ]
        )
    for width in (2, 5, 10, 30):
        assert torch.allclose(answers[width], answers[1], atol=1e-5), width


def test_memory_that_no_one_has_written_to_changes_nothing():
    model = tiny_llama(5)
    model.pack(torch.int8)
    due = model.open(40).read([1, 2, 3, 4, 5], rows=2).logits
    session = model.open(40)
    session.read([9], rows=1)
    with torch.inference_mode():
        for layer in session._cache.inner.layers:
            layer.keys[:, :, layer._written :] = float("nan")
            layer.values[:, :, layer._written :] = float("nan")
    assert torch.equal(session.read([1, 2, 3, 4, 5], rows=2).logits, due)


def test_greedy_text_with_guesses_is_the_plain_one():
    model = tiny_llama(1)
    model.pack(torch.int8)
    plain = run(make_lane([3, 1, 4], max_new_tokens=60), sessions(model))
    mixed = Guesses(lambda t, r: [*plain.token_ids[len(t) - 3 : len(t) - 3 + r % 4], 63, 62])
    fast = run(
        make_lane([3, 1, 4], proposer=mixed, draft_length=5, max_new_tokens=60), sessions(model)
    )
    assert violations(fast) == []
    assert counts(fast).accepted > 10
    assert fast.token_ids == plain.token_ids


def test_rows_of_zeros_are_zeros_and_what_is_no_number_stays_none():
    plain = nn.Linear(8, 4, bias=False)
    x = torch.ones(3, 8)
    x[1], x[2, 5] = 0.0, float("nan")
    answer = Int8Linear([plain])(x)
    assert (answer[1] == 0).all()
    assert answer[2].isnan().all()
    assert answer[0].isfinite().all()


def test_fused_layers_answer_as_each_alone():
    torch.manual_seed(1)
    names = ["q_proj", "k_proj", "v_proj"]
    plain = nn.ModuleDict({name: nn.Linear(12, 8 * n + 8) for n, name in enumerate(names)})
    fused, apart = copy.deepcopy(plain), copy.deepcopy(plain)
    fuse(fused, torch.int8)
    pack(apart, torch.int8)
    x = torch.randn(4, 12)
    for name in names:
        assert torch.allclose(fused[name](x), apart[name](x), atol=1e-5)
        assert torch.equal(fused[name].weight, apart[name].weight)


def test_weights_take_a_byte_each_and_the_rest_stays_in_fp32():
    model = tiny_llama(3, hidden_size=128, intermediate_size=256)
    linear = [m for m in model.inner.modules() if type(m) is nn.Linear]
    weights, rows = sum(m.weight.numel() for m in linear), sum(m.out_features for m in linear)
    before = model.weight_bytes
    model.pack(torch.int8)
    assert model.dtype == torch.float32
    assert model.weight_bytes == before - 3 * weights + (4 + 8) * rows


def test_without_the_operator_int8_is_refused_with_the_reason(monkeypatch, forgetful):
    def gone(*arguments):
        raise AttributeError("'_OpNamespace' 'onednn' object has no attribute 'qlinear_pointwise'")

    monkeypatch.setattr(int8_linear, "_pointwise", gone)
    refusal = why_not("int8", CPU)
    assert "qlinear_pointwise" in refusal.message
    assert "bf16 or fp32" in refusal.remedy


def test_an_operator_whose_sums_overflow_is_not_used(monkeypatch, forgetful):
    # Processors without the instructions add pairs of products in 16 bits, which cut off.
    right = int8_linear._pointwise
    monkeypatch.setattr(int8_linear, "_pointwise", lambda *given: right(*given).clamp(-200, 200))
    assert "answer differently" in why_not("int8", CPU).message


def test_a_processor_without_a_quick_kernel_is_told_of(monkeypatch, forgetful):
    monkeypatch.setattr(packed_linear, "slowness_of_int8", lambda: 130.0)
    refusal = why_not("int8", CPU)
    assert "130 times as long" in refusal.message
    assert refusal.remedy == "Choose bf16 or fp32."


def test_a_pass_is_given_as_bytes_without_a_sign(monkeypatch):
    """Two signed sides run in a reference kernel on most processors, hundreds of times slower."""
    given = []
    right = int8_linear._pointwise
    monkeypatch.setattr(int8_linear, "_pointwise", lambda *it: given.append(it) or right(*it))
    Int8Linear([nn.Linear(3, 2)])(torch.tensor([[-127.0, 0.0, 127.0]]))
    ((numbers, _, zero, *_),) = given
    assert (numbers.dtype, zero) == (torch.uint8, 128)
    assert numbers.tolist() == [[1, 128, 255]]


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_int8_is_for_a_cpu_and_says_what_serves_elsewhere(device):
    refusal = why_not("int8", torch.device(device))
    assert "CPU only" in refusal.message
    assert ("nf4" if device == "cuda" else "bf16") in refusal.remedy


def test_a_model_of_few_linear_layers_is_refused(tmp_path):
    # GPT-2 has layers of a kind of its own, which would all stay in fp32.
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=2)
    model = GPT2LMHeadModel(config)
    assert linear_share(model) == 0
    assert linear_share(tiny_llama(0).inner) > 0.9
    model.save_pretrained(tmp_path)
    with pytest.raises(Problem, match="linear layers") as caught:
        load(
            check(tmp_path, needs_tokenizer=False),
            name="small",
            precision="int8",
            device=CPU,
        )
    assert "bf16" in caught.value.remedy


def test_numbers_come_out_between_the_ends():
    x = torch.tensor([[0.0, -2.0, 1.0, 0.5]])
    numbers, steps = quantised_by_row(x)
    assert numbers.tolist() == [[0, -127, 64, 32]]  # 63.5 goes to the even number, 31.75 up
    assert float(steps) == pytest.approx(2 / 127)
