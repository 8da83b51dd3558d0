"""The lean pass over layers as they were loaded, beside transformers' own, as a card has it."""

import copy

import pytest
import torch
import transformers
from lean_kinds import KINDS, SIZES, made
from torch.utils._python_dispatch import TorchDispatchMode

from app.models import attention, lean_layers
from app.models.block import Block
from app.models.fixed.passes import Passes
from app.models.fixed.proof import prove_passes
from app.models.fixed.reader import FixedReader
from app.models.proofs import prove_early_exit, prove_rewinding, prove_rows_independent
from app.models.session import Session
from tapes import taped
from toys import wrapped

NEAR = {torch.float32: 1e-4, torch.bfloat16: 6e-2, torch.float16: 1e-2}
"""The length of a difference as a share of the answer's own: what rounding may make of it."""


def lean(kind, changes, dtype=torch.float32):
    """A model, and the same computed by a lean pass over its own layers."""
    reference = made(kind, **changes).to(dtype)
    model = wrapped(copy.deepcopy(reference))
    model.take_lean_pass()
    assert model.kernel == "lean pass"
    return wrapped(reference), model


def apart(mine, theirs):
    return float((mine.float() - theirs.float()).norm() / theirs.float().norm())


def read_alike(mine: Session, theirs: Session, near: float) -> None:
    """Texts and guesses that are thrown away, in passes of one, a few and many rows."""
    text = [(5 + 11 * place) % 96 for place in range(400)]
    start = 0
    for width in (3, 1, 1, 5, 40, 2, 64, 100, 9, 1):
        found = []
        for session in (mine, theirs):
            session.read(text[:start], Block([7, 7, 7]), rows=1)
            found.append(session.read(text[: start + width], rows=width).logits)
        assert apart(*found) < near, (start, width)
        start += width


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_logits_are_those_of_transformers(kind, changes, dtype):
    reference, model = lean(kind, changes, dtype)
    read_alike(model.open(300), reference.open(300), NEAR[dtype])


@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_in_bf16_it_rounds_hardly_more_than_transformers(kind, changes):
    exact = made(kind, **changes)
    reference, model = lean(kind, changes, torch.bfloat16)
    ids = torch.arange(64)
    due = exact(ids[None]).logits[0].detach()
    mine, theirs = (one.forward(ids, one.new_cache(64), 64) for one in (model, reference))
    assert apart(mine, due) < 1.25 * apart(theirs, due)


@pytest.mark.parametrize(("kind", "changes"), KINDS)
@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_fixed_passes_are_lean_too(kind, changes, mode):
    reference, model = lean(kind, changes)
    passes = taped()[0] if mode == "taped" else Passes("fixed")
    fixed = Session(FixedReader(model, passes), 300)
    fixed.prepare(9)
    read_alike(fixed, reference.open(300), NEAR[torch.float32])
    assert prove_passes(model, Passes("fixed")).holds


def test_what_loading_proves_holds():
    _, model = lean("qwen3", {"head_dim": 16})
    assert prove_rewinding(model).holds
    assert prove_rows_independent(model).holds
    assert prove_early_exit(model).holds


@pytest.mark.parametrize("layers", [(), (0, 2)])
def test_features_are_those_of_transformers_in_narrow_passes_and_in_wide_ones(layers):
    reference, model = lean("llama", {})
    text = [(5 + 11 * place) % 96 for place in range(110)]
    found = []
    for one in (model, reference):
        session = one.open(120, features=True, layers=layers)
        session.read(text[:100], rows=1)
        session.read(text, rows=3)
        found.append(session.features[: session.held])
    assert apart(*found) < NEAR[torch.float32]


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_weights_of_four_bits_are_multiplied_by_their_own_layers(kind):
    bitsandbytes = pytest.importorskip("bitsandbytes")
    sizes = {"hidden_size": 128, "intermediate_size": 192, "num_attention_heads": 8}
    model = made(kind, **sizes, initializer_range=0.1)
    for layer in model.model.layers:
        for name in lean_layers._LINEAR:
            plain = layer.get_submodule(name)
            held = bitsandbytes.nn.Linear4bit(
                plain.in_features,
                plain.out_features,
                bias=plain.bias is not None,
                compute_dtype=torch.bfloat16,
                quant_type="nf4",
            )
            held.load_state_dict(plain.to(torch.bfloat16).state_dict())
            layer.set_submodule(name, held.to("cpu"))
    reference = wrapped(model.to(torch.bfloat16).eval())
    model = wrapped(copy.deepcopy(reference.inner))
    model.take_lean_pass()
    assert model.kernel == "lean pass"
    read_alike(model.open(300), reference.open(300), NEAR[torch.bfloat16])


class Kernels(TorchDispatchMode):
    """Counts operations that make or change numbers: each is a kernel, or more, on a card."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        given = [arg.untyped_storage().data_ptr() for arg in args if isinstance(arg, torch.Tensor)]
        changed = func.overloadpacket.__name__.endswith("_")
        if isinstance(found, torch.Tensor) and (
            changed or found.untyped_storage().data_ptr() not in given
        ):
            self.names.append(func.overloadpacket.__name__)
        return found


def kernels_a_layer(lean, kind, **changes):
    """Operations that one more layer costs a fixed pass of five rows in bf16."""
    counted = []
    for layers in (2, 3):
        model = wrapped(made(kind, num_hidden_layers=layers, **changes).to(torch.bfloat16))
        if lean:
            model.take_lean_pass()
            assert model.kernel == "lean pass"
        session = Session(FixedReader(model, Passes("fixed")), 100)
        text = list(range(20))
        session.read(text, rows=1)
        session.read([*text, 5], Block([7] * 4), rows=5)  # what is made once is made
        with Kernels() as kernels:
            session.read([*text, 6], Block([8] * 4), rows=5)
        counted.append(len(kernels.names))
    return counted[1] - counted[0]


@pytest.mark.parametrize(
    ("kind", "changes", "most"), [("llama", {}, 24), ("qwen2", {}, 24), ("qwen3", {}, 26)]
)
def test_a_layer_costs_little_more_than_half_the_kernels(kind, changes, most):
    before, after = (kernels_a_layer(lean, kind, **changes) for lean in (False, True))
    assert after <= most < before, (before, after)
    assert after < 0.65 * before, (before, after)


@pytest.mark.parametrize(
    ("module", "broken"),
    [(attention, "attend_folded"), (lean_layers.functional, "rms_norm")],
)
def test_a_lean_pass_that_answers_differently_is_not_used(monkeypatch, module, broken):
    right = getattr(module, broken)
    model = wrapped(made("llama"))
    monkeypatch.setattr(module, broken, lambda *given: right(*given) * 1.1)
    model.take_lean_pass()
    assert model.kernel == "the lean pass answers differently and is not used"
    assert model._lean is None


def test_a_lean_pass_that_fails_is_not_used(monkeypatch):
    def fail(*given):
        raise RuntimeError("no such kernel\nat all")

    monkeypatch.setattr(lean_layers.functional, "rms_norm", fail)
    model = wrapped(made("llama"))
    model.take_lean_pass()
    assert model.kernel == "the lean pass cannot be computed (no such kernel)"
    assert model._lean is None
    assert model.forward(torch.arange(5), model.new_cache(5), 1).shape == (1, 96)


def test_layers_of_another_kind_keep_transformers_own_pass():
    class Other(torch.nn.Linear):
        pass

    model = wrapped(made("llama"))
    model.inner.model.layers[1].mlp.up_proj = Other(48, 80, bias=False)
    model.take_lean_pass()
    assert (model.kernel, model._lean) == ("", None)
    gemma = transformers.Gemma3TextConfig(**{**SIZES, "head_dim": 16, "sliding_window": 8})
    model = wrapped(transformers.Gemma3ForCausalLM(gemma).eval())
    model.take_lean_pass()
    assert (model.kernel, model._lean) == ("", None)
