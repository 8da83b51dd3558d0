"""A head before its first lesson has its target's last layer, however that is held."""

import pytest
import torch

from app.training.beginning import begin_head
from lessons import random_texts, target
from toys import wrapped

SIZES = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
}


def made(kind):
    """A random target of a kind, its biases and norms disturbed."""
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**SIZES)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return wrapped(model)


def expected(layer, norm):
    """The weights of a layer by the names of a head's parts."""
    found = {"norm.weight": norm.weight}
    names = {"input_layernorm": "input_norm", "post_attention_layernorm": "between_norm"}
    for name, value in layer.named_parameters():
        parent, _, rest = name.partition(".")
        found[f"{names[parent]}.{rest}" if parent in names else rest] = value
    return {name: value.detach().clone() for name, value in found.items()}


@pytest.mark.parametrize("kind", ["Llama", "Mistral", "Qwen2", "Qwen3"])
@pytest.mark.parametrize("dtype", [None, torch.float32, torch.bfloat16])
def test_it_has_the_targets_last_layer(kind, dtype):
    model = made(kind)
    due = expected(model.inner.model.layers[-1], model.inner.model.norm)
    if dtype is not None:
        model.pack(dtype)
    head = begin_head(model.inner, 16, random_texts(made(kind), 4))
    held = dict(head.named_parameters())
    assert held.keys() - {"fc.weight"} == due.keys()
    for name, value in due.items():
        near = 1e-2 if dtype == torch.bfloat16 else 0.0
        assert held[name].dtype == torch.float32
        assert (held[name] - value).abs().max() <= near * value.abs().max(), name


def test_its_first_matrix_is_the_best_linear_guess():
    model = target(num_hidden_layers=1)
    head = begin_head(model.inner, 16, random_texts(model, 60))
    # With one layer, what it reads of a token is the token's embedding, whatever came before.
    due = torch.cat([torch.eye(32), torch.zeros(32, 32)], dim=1)
    assert (head.fc.weight - due).abs().max() < 0.02


def test_weights_in_four_bits_are_unpacked():
    bitsandbytes = pytest.importorskip("bitsandbytes")
    model = made("Llama")
    plain = model.inner.model.layers[-1].mlp.down_proj
    packed = bitsandbytes.nn.Linear4bit(96, 64, bias=False, quant_type="nf4")
    packed.weight = bitsandbytes.nn.Params4bit(
        plain.weight.detach().clone(), requires_grad=False, quant_type="nf4"
    )
    model.inner.model.layers[-1].mlp.down_proj = packed.to("cpu")
    assert packed.weight.quant_state is not None
    head = begin_head(model.inner, 16, random_texts(made("Llama"), 4))
    apart = (head.down_proj.weight - plain.weight).abs().mean() / plain.weight.abs().mean()
    assert apart < 0.25
