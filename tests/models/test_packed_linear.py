"""Packed linear layers: the same answers, no second copy of the weights, and a way back."""

import copy
import sys

import pytest
import torch
from torch import nn

from app.models import packed_linear
from app.models.fused_linear import fuse
from app.models.int8_linear import INT8
from app.models.packed_linear import PACKED, PackedLinear, pack, why_not_packed
from own_process import called
from tests.models.load_peaks import peak_of_load
from toys import tiny_llama

DTYPES = [torch.float32, torch.bfloat16]


@pytest.fixture
def forgetful():
    """What this torch can do is tried anew, before and after."""
    why_not_packed.cache_clear()
    yield
    why_not_packed.cache_clear()


def test_this_torch_still_has_the_private_operators():
    # They may vanish from one release to the next: then models run on, slower, and this says why.
    assert why_not_packed(torch.float32) is None
    assert torch.ops.mkldnn._reorder_linear_weight.default
    assert torch.ops.mkldnn._linear_pointwise.default
    assert torch.ops.mkldnn._linear_pointwise.binary


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 3, 40])
def test_a_packed_layer_answers_as_a_plain_one(dtype, bias, rows):
    if why_not_packed(dtype):
        pytest.skip(why_not_packed(dtype))
    torch.manual_seed(rows)
    plain = nn.Linear(33, 70, bias=bias).to(dtype)
    x, other = torch.randn(2, rows, 33).to(dtype), torch.randn(2, rows, 70).to(dtype)
    packed = PackedLinear([plain], dtype)
    step = torch.finfo(dtype).eps
    with torch.no_grad():
        due = plain(x).double()
        for mine, expected in (
            (packed(x), due),
            (packed.plus(x, other), due + other),
        ):
            assert mine.dtype == dtype
            assert torch.allclose(mine.double(), expected, rtol=4 * step, atol=8 * step)
    assert torch.equal(packed.weight, plain.weight)


@pytest.mark.parametrize("bias", [True, False])
def test_fused_layers_answer_each_for_itself(bias):
    torch.manual_seed(1)
    names = ["q_proj", "k_proj", "v_proj"]
    plain = nn.ModuleDict({name: nn.Linear(12, 8 * n + 8, bias) for n, name in enumerate(names)})
    fused = copy.deepcopy(plain)
    fuse(fused, torch.float32)
    xs = torch.randn(4, 3, 12)
    # The same input in any order, then another in between: no answer may be a former one.
    for name, x in [(n, x) for x in xs for n in names] + [(n, x) for n in names[::-1] for x in xs]:
        assert torch.allclose(fused[name](x), plain[name](x), atol=1e-5)
    for name in names:
        assert torch.equal(fused[name].weight, plain[name].weight)
        assert not bias or torch.equal(fused[name].bias, plain[name].bias)
    assert len(list(fused.buffers())) == 1 + bias


@pytest.mark.parametrize("tied", [True, False])
def test_packing_keeps_the_embeddings_and_counts_as_before(tied):
    model = tiny_llama(3, tie_word_embeddings=tied)
    ids = torch.tensor([[5, 9, 2, 33, 1]])
    embeddings = model.inner.get_input_embeddings().weight.clone()
    before, count, weight_bytes = model.inner(ids).logits, model.parameters, model.weight_bytes
    model.pack(torch.float32)
    assert not any(type(module) is nn.Linear for module in model.inner.modules())
    assert torch.equal(model.inner.get_input_embeddings().weight, embeddings)
    assert torch.equal(model.inner.get_output_embeddings().weight, model.inner.lm_head.weight)
    assert torch.allclose(model.inner(ids).logits, before, rtol=1e-4, atol=1e-4)
    assert model.parameters == count
    assert model.width == 64
    assert model.weight_bytes == weight_bytes + (64 * 32 * 4 if tied else 0)


def test_layers_of_another_kind_are_left_alone():
    class Other(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(4, 4), Other(4, 4))
    assert pack(model, torch.float32) == PACKED
    assert [type(module) for module in model] == [PackedLinear, Other]


def test_without_the_operators_layers_stay_plain_and_the_reason_is_told(monkeypatch, forgetful):
    def gone(*arguments):
        raise AttributeError("'_OpNamespace' 'mkldnn' object has no attribute '_linear_pointwise'")

    monkeypatch.setattr(packed_linear, "_pointwise", gone)
    model = tiny_llama(3)
    reference = copy.deepcopy(model.inner)
    model.pack(torch.float32)
    assert model.kernel.startswith("plain, as this torch cannot pack weights")
    assert "_linear_pointwise" in model.kernel
    ids = torch.tensor([5, 9, 2])
    logits = model.forward(ids, model.new_cache(3), 3)
    assert torch.equal(logits, reference(ids[None]).logits[0])


def test_operators_that_answer_wrongly_are_not_used(monkeypatch, forgetful):
    right = packed_linear._pointwise
    monkeypatch.setattr(packed_linear, "_pointwise", lambda *given: right(*given) * 1.01)
    model = tiny_llama(3)
    model.pack(torch.float32)
    assert model.kernel.startswith("plain, as packed layers answer differently")


@pytest.fixture(scope="module", params=DTYPES, ids=str)
def folders(request, tmp_path_factory):
    """A small and a large model, stored in either way."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {
        "small": {"hidden_size": 64, "intermediate_size": 64, "vocab_size": 64},
        "large": {"hidden_size": 512, "intermediate_size": 2048, "vocab_size": 8192},
    }
    home = tmp_path_factory.mktemp("models")
    for name, changes in sizes.items():
        config = LlamaConfig(
            **changes,
            num_hidden_layers=12,
            num_attention_heads=8,
            num_key_value_heads=8,
            tie_word_embeddings=True,
        )
        LlamaForCausalLM(config).to(request.param).save_pretrained(home / name)
    return [home / name for name in sizes]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is counted as on Linux")
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_loading_never_holds_the_weights_twice(folders, precision):
    found = called(peak_of_load, *folders, precision)
    assert found["kernel"].startswith((PACKED, INT8))
    assert found["peak"] <= 1.4 * found["weights"]
