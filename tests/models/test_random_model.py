"""Models of random weights: as transformers has them, made one by one, counted as they are held."""

import gc
import weakref

import msgspec
import pytest
import torch
from transformers import LlamaForCausalLM

from app.library.random_shapes import RANDOM_SHAPES
from app.models.precision import loading_arguments
from app.models.random_model import _Random, parameters_on_meta, random_inner
from app.models.random_pair import Numbers, random_pair
from app.models.read_bytes import read_bytes
from app.models.stages import Stages, unseen
from app.run.problems import Cancelled

CPU = torch.device("cpu")
TINY, DRAFT = RANDOM_SHAPES["tiny"], RANDOM_SHAPES["tiny-draft"]


def made(precision="fp32", shape=TINY):
    return random_inner(shape, CPU, **loading_arguments(precision, CPU))


@pytest.mark.parametrize("shape", RANDOM_SHAPES.values(), ids=lambda shape: shape.name)
def test_transformers_has_as_many_weights_as_the_formula(shape):
    assert parameters_on_meta(shape) == shape.parameters


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("tied", [True, False])
def test_a_made_model_has_them_all_on_its_device(kind, tied):
    shape = msgspec.structs.replace(TINY, kind=kind, tied=tied)
    inner = made(shape=shape)
    assert inner.num_parameters() == shape.parameters
    assert {one.device.type for one in (*inner.parameters(), *inner.buffers())} == {"cpu"}
    assert not inner.training


def test_its_numbers_are_sane_and_the_same_each_time():
    inner, again = made(), made()
    layer = inner.model.layers[1]
    assert float(layer.mlp.down_proj.weight.detach().std()) == pytest.approx(256**-0.5, rel=0.03)
    assert float(layer.self_attn.q_proj.weight.detach().std()) == pytest.approx(128**-0.5, rel=0.03)
    assert torch.equal(layer.input_layernorm.weight, torch.ones(128))
    ids = torch.arange(9)[None]
    with torch.inference_mode():
        one, other = inner(input_ids=ids).logits, again(input_ids=ids).logits
    assert torch.equal(one, other)
    assert 0.5 < float(one.std()) < 2.0
    first, second = (inner.model.layers[i].mlp.up_proj.weight for i in (0, 1))
    assert not torch.equal(first, second)


def test_rotary_tables_are_those_of_a_model_made_by_transformers_itself():
    inner = made()
    theirs = LlamaForCausalLM(inner.config).model.rotary_emb.inv_freq
    assert torch.equal(inner.model.rotary_emb.inv_freq, theirs)


def test_nf4_quantises_every_linear_layer_but_the_output():
    inner = made("nf4")
    kinds = [type(layer).__name__ for layer in inner.modules() if hasattr(layer, "in_features")]
    assert kinds.count("Linear4bit") == 7 * TINY.layers
    assert kinds.count("Linear") == 1
    weight = inner.model.layers[0].mlp.up_proj.weight
    assert (weight.quant_state.quant_type, weight.quant_state.nested) == ("nf4", True)
    assert inner.lm_head.weight is inner.model.embed_tokens.weight
    assert inner.lm_head.weight.dtype == torch.bfloat16
    assert torch.isfinite(inner(input_ids=torch.arange(9)[None]).logits).all()


def test_what_is_quantised_is_let_go_of_before_the_next_is_made(monkeypatch):
    living, most, make = [], [], _Random._made

    def watched(self):
        gc.collect()
        most.append(sum(one() is not None for one in living))
        weight = make(self)
        if self._name.endswith("proj.weight"):
            living.append(weakref.ref(weight))
        return weight

    monkeypatch.setattr(_Random, "_made", watched)
    made("nf4")
    assert len(living) == 7 * TINY.layers
    assert max(most) <= 1


def test_bytes_read_a_token_count_tables_only_where_they_are_the_output():
    table = 512 * 128
    assert read_bytes(made()) == 4 * TINY.parameters
    assert read_bytes(made("bf16")) == 2 * TINY.parameters
    apart = msgspec.structs.replace(TINY, tied=False)
    assert read_bytes(made(shape=apart)) == 4 * (apart.parameters - table)
    assert apart.parameters - table == TINY.parameters


def test_bytes_of_nf4_are_half_of_a_byte_and_the_scales():
    # 128 x 128 (q, o), 64 x 128 (k, v), 3 of 256 x 128: a scale of a byte for 64 weights, and a
    # scale of four bytes for 256 of these, of each layer by itself.
    layers = [128 * 128] * 2 + [64 * 128] * 2 + [256 * 128] * 3
    scales = [-(-size // 64) for size in layers]
    quantised = sum(size // 2 for size in layers) + sum(s + 4 * -(-s // 256) for s in scales)
    rest = 2 * (512 * 128 + (2 * 4 + 1) * 128)
    assert read_bytes(made("nf4")) == 4 * quantised + rest


def test_a_pair_is_proven_as_loaded_models_are():
    found = random_pair(TINY, DRAFT, precision="fp32", device=CPU, stages=unseen())
    target, draft = found.pair.target, found.pair.draft
    assert all(one.holds for one in (target.rewinding, target.rows, draft.rewinding))
    assert target.facts.parameters == TINY.parameters
    assert "random" in " ".join(target.notes)
    assert found.pair.widths.shared_ids == 512
    assert found.read_bytes == 4 * TINY.parameters
    assert found.peak_bytes is None
    ids = torch.arange(7)
    with torch.inference_mode():
        theirs = found.plain(input_ids=ids[None]).logits[0]
    ours = target.model.open(8).read(ids.tolist(), rows=7).logits
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_making_it_can_be_stopped_at_a_weight():
    told = []

    def pause():
        if told and told[-1].total:
            raise Cancelled

    with pytest.raises(Cancelled):
        random_pair(TINY, None, precision="nf4", device=CPU, stages=Stages(told.append, pause))
    assert told[-1].unit == "tensors"


def test_ids_are_written_as_numbers():
    numbers = Numbers(512)
    assert len(numbers) == 512
    assert numbers.decode([3, 14, 1]) == " 3 14 1"
    assert numbers.encode_prompt("3 14 1") == [3, 14, 1]
