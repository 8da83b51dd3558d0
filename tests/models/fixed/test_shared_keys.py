"""Heads that share a key attend without a copy of it, and as the library's own attention does."""

import pytest
import torch
import transformers
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from app.models.block import Block
from app.models.fixed.passes import Passes
from app.models.fixed.reader import FixedReader
from app.models.fixed.shared_keys import shared_keys
from app.models.session import Session
from tiny_kinds import write_kind
from toys import tiny_llama, wrapped

HEADS, SHARED, SIZE, KEYS = 6, 2, 8, 40


class Sizes(TorchDispatchMode):
    """Notes how many keys' worth of numbers every operation made anew."""

    def __init__(self):
        super().__init__()
        self.made = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        given = [arg.untyped_storage().data_ptr() for arg in args if isinstance(arg, torch.Tensor)]
        if isinstance(found, torch.Tensor) and found.untyped_storage().data_ptr() not in given:
            self.made.append(found.numel())
        return found


class Module:
    num_key_value_groups = HEADS // SHARED
    is_causal = True


def asked(rows, **changes):
    """What a layer asks of attention: query, keys, values, a mask, and words beside."""
    torch.manual_seed(rows)
    query = torch.randn(1, HEADS, rows, SIZE)
    key, value = torch.randn(2, 1, SHARED, KEYS, SIZE)
    hidden = torch.rand(rows, KEYS) < 0.5
    hidden[:, 0] = False
    mask = torch.zeros(1, 1, rows, KEYS).masked_fill_(hidden, float("-inf"))
    return (Module(), query, key, value, mask), {"scaling": 0.3, **changes}


def attention():
    return ALL_ATTENTION_FUNCTIONS.get_interface("sdpa", None)


@pytest.mark.parametrize("rows", [1, 2, 5, 33, 64])
def test_it_answers_as_the_librarys_own_and_makes_no_copy_of_keys(rows):
    given, told = asked(rows, position_ids=torch.arange(rows), sliding_window=4)
    due, _ = sdpa_attention_forward(*given, **told)
    with torch.inference_mode(), shared_keys(), Sizes() as sizes:
        mine, weights = attention()(*given, **told)
    assert weights is None
    assert mine.shape == due.shape == (1, rows, HEADS, SIZE)
    assert torch.allclose(mine, due, atol=1e-6)
    if rows < KEYS // 4:  # else what belongs to the rows is as large
        assert max(sizes.made) < HEADS * KEYS * SIZE


def test_a_mask_is_laid_out_once_for_all_layers_of_a_pass():
    given, told = asked(5)
    with torch.inference_mode(), shared_keys(), Sizes() as sizes:
        for _ in range(4):
            attention()(*given, **told)
    assert sizes.made.count(HEADS // SHARED * 5 * KEYS) == 1


@pytest.mark.parametrize(
    "changes",
    [{"position_bias": torch.ones(1, 1, 5, KEYS)}, {"dropout": 0.0, "is_causal": False}],
)
def test_whatever_else_is_asked_for_is_the_librarys_to_answer(changes):
    given, told = asked(5, **changes)
    due, _ = sdpa_attention_forward(*given, **told)
    with shared_keys():
        mine, _ = attention()(*given, **told)
    assert torch.allclose(mine, due, atol=1e-6)


def test_softcapping_is_the_librarys_to_answer_or_to_refuse():
    """transformers 5.24 refuses it; 5.17 passes over it."""

    def outcome(attend) -> Tensor | str:
        given, told = asked(5, softcap=30.0)
        try:
            return attend(*given, **told)[0]
        except ValueError as refusal:
            return str(refusal)

    due = outcome(sdpa_attention_forward)
    with shared_keys():
        mine = outcome(attention())
    if isinstance(due, str):
        assert mine == due
    else:
        assert torch.equal(mine, due)


def test_outside_such_passes_it_is_the_librarys_own_bit_for_bit():
    given, told = asked(5)
    with shared_keys():
        pass
    due, _ = sdpa_attention_forward(*given, **told)
    assert torch.equal(attention()(*given, **told)[0], due)


def copied(model, *, rows: int, keys: int) -> int:
    """Operations of a fixed pass that make as many numbers as the keys of all heads are."""
    capacity = keys - 64
    session = Session(FixedReader(model, Passes("fixed")), capacity)
    text = list(range(20)) * (capacity // 20 - 1)
    session.read(text, rows=1)
    text.append(5)
    with Sizes() as sizes:
        session.read(text, Block([7] * (rows - 1)), rows=rows)
    config = model.inner.config
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    whole = config.num_attention_heads * size * 500
    return sum(made >= whole for made in sizes.made)


@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen3", "gemma3"])
def test_models_of_the_library_copy_no_key_in_a_fixed_pass(kind, tmp_path):
    folder = write_kind(tmp_path / kind, kind, max_position_embeddings=1024)
    model = wrapped(transformers.AutoModelForCausalLM.from_pretrained(folder).eval())
    assert copied(model, rows=5, keys=640) == 0


def test_the_count_of_copies_sees_those_of_the_library(monkeypatch):
    from app.models.fixed import shared_keys as place

    monkeypatch.setattr(place, "_fits", lambda *given: False)
    model = tiny_llama(
        0, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=1024
    )
    assert copied(model, rows=5, keys=640) >= 2 * model.layers
