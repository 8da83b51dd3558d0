"""Modules for multi-token prediction, against transformers' own code where it has some.

DeepSeek's and GLM's naming: transformers' `MtpModel` reads the same files and drafts with them.
Qwen3-Next's, Qwen3.5's and MiMo's: no library at hand computes them, so they are held against
plain torch, written here from the formulas.
"""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from mtp_formulas import drafted
from mtp_kinds import (
    DEEPSEEK_NAMED,
    LAYERS,
    write_deepseek_named,
    write_mimo_named,
    write_qwen_named,
)
from safetensors.torch import load_file, save_file
from transformers.cache_utils import MtpCache
from transformers.modeling_layers import MtpModel

from app.library.preflight import check
from app.models.block import Block
from app.models.loaded_mtp import LoadedMtp
from app.models.loading import load
from app.run.problems import Problem
from app.selftest.tiny_models import add_tensors

TEXT = [3, 9, 27, 17, 51, 25, 11, 200, 4, 9]


def loaded(folder):
    return load(check(folder), name="Tiny", precision="fp32", device=torch.device("cpu"))


def theirs(folder, modules):
    """The target and its modules as transformers reads them."""
    main = transformers.AutoModelForCausalLM.from_pretrained(folder)
    # Published checkpoints have their modules behind so many layers; this one behind two.
    patterns = [rf"model\.layers\.{LAYERS + number}\." for number in range(modules)]
    main._keys_to_ignore_on_load_unexpected = patterns
    return main, MtpModel.from_pretrained(main)


@torch.no_grad()
def their_drafts(main, mtp, text):
    """What transformers' modules draft behind a text: ids, and the logits of each, [depth, …]."""
    ids = torch.tensor([text])
    hidden = main.model(ids[:, :-1]).last_hidden_state
    places = torch.arange(1, len(text))[None]
    cache = MtpCache(config=main.config.get_mtp_config())
    drafted, logits, _ = mtp(ids[:, 1:], hidden, None, places, cache, full_input_ids=ids)
    return drafted[0].tolist(), logits[0]


def read(beside, text, guesses):
    """The logits behind a text and each of the guesses, as a round asks for them."""
    block = Block()
    found = [beside.read(text, block, rows=1).logits[0]]
    for guess in guesses:
        block.append(torch.tensor(guess))
        found.append(beside.read(text, block, rows=1).logits[0])
    return torch.stack(found)


@pytest.mark.parametrize("modules", [1, 2, 3])
@pytest.mark.parametrize("kind", DEEPSEEK_NAMED)
@torch.no_grad()
def test_drafts_are_those_of_transformers(tmp_path, kind, modules):
    write_deepseek_named(tmp_path, kind, modules)
    mine = loaded(tmp_path)
    mtp = LoadedMtp(mine)
    main, other = theirs(tmp_path, modules)
    assert mtp.depth == modules
    for length in (2, 3, 4, len(TEXT)):
        text = TEXT[:length]
        session = mtp.open_target(64)
        session.read(text[:-1], rows=1)
        drafted, logits = their_drafts(main, other, text)
        answers = read(mtp.open(session, 64), text, drafted[:-1])
        assert torch.allclose(answers, logits, atol=1e-4)
        assert float(logits.std()) > 0.1


LAYOUTS = {
    "qwen3_next": lambda folder: write_qwen_named(folder, "qwen3_next"),
    "qwen3_5": lambda folder: write_qwen_named(folder, "qwen3_5_text"),
    "qwen3_5_moe": lambda folder: write_qwen_named(folder, "qwen3_5_moe_text", fused=True),
    "mimo": write_mimo_named,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@torch.no_grad()
def test_drafts_are_those_of_the_formulas(tmp_path, layout):
    LAYOUTS[layout](tmp_path)
    mine = loaded(tmp_path)
    mtp = LoadedMtp(mine)
    assert mtp.depth == 1
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    for length in (2, 3, len(TEXT)):
        text, guesses = TEXT[:length], [7, 30, 4]
        session = mtp.open_target(64)
        session.read(text[:-1], rows=1)
        answers = read(mtp.open(session, 64), text, guesses)
        logits = drafted(tmp_path, model, text, guesses)
        assert torch.allclose(answers, logits, atol=1e-4)
        assert float(logits.std()) > 0.1


@pytest.mark.parametrize("modules", [1, 3])
@torch.no_grad()
def test_its_own_guesses_leave_no_trace(tmp_path, modules):
    # Rounds with guesses kept and thrown, and one that it sits out: as if it read all at once.
    write_deepseek_named(tmp_path, "deepseek_v3", modules)
    mine = loaded(tmp_path)
    mtp = LoadedMtp(mine)
    text = TEXT[:3]
    session = mtp.open_target(64)
    session.read(text[:-1], rows=1)
    beside = mtp.open(session, 64)
    for guesses, new in (
        ([5, 6], [5, 9]),
        ([], [1]),
        ([7, 8, 9, 3, 2], [7, 8, 9, 2]),
        ([1], [4]),
        ([8, 8, 8, 8], [8, 8, 8, 8, 1]),
    ):
        if guesses:
            read(beside, text, guesses)
        session.read(text, Block(guesses), rows=len(guesses) + 1)
        text.extend(new)
        session.read(text[:-1], rows=1)
    fresh = mtp.open(session, 64)
    again, its = read(beside, text, [3, 5, 7, 9]), read(fresh, text, [3, 5, 7, 9])
    assert torch.allclose(again, its, atol=1e-4)
    assert beside.held == fresh.held == len(text)
    assert beside.byte_count == fresh.byte_count > 0


@torch.no_grad()
def test_another_text_is_read_from_where_it_differs(tmp_path):
    write_deepseek_named(tmp_path, "glm4_moe", 2)
    mine = loaded(tmp_path)
    mtp = LoadedMtp(mine)
    session = mtp.open_target(64)
    beside = mtp.open(session, 64)
    for text in ([1, 2, 3, 4, 5, 6], [1, 2, 3, 40, 5], [1, 2, 3, 40, 5, 7, 8], [1, 2]):
        session.read(text[:-1], rows=1)
        answers = read(beside, text, [9, 11, 13])
        assert torch.allclose(answers, read(mtp.open(session, 64), text, [9, 11, 13]), atol=1e-4)


@torch.no_grad()
def test_a_long_text_may_be_read_in_parts(tmp_path):
    write_deepseek_named(tmp_path, "deepseek_v3", 3)
    mine = loaded(tmp_path)
    mtp = LoadedMtp(mine)
    session = mtp.open_target(64)
    session.read(TEXT[:-1], rows=1)
    beside = mtp.open(session, 64)
    for upto in (2, 3, 7, 8):
        beside.read(TEXT, rows=1, upto=upto)
    answers = read(beside, TEXT, [9, 11, 13])
    assert torch.allclose(answers, read(mtp.open(session, 64), TEXT, [9, 11, 13]), atol=1e-4)
    assert beside.unread(TEXT) == 0


def rewritten(folder, change) -> None:
    """Changes the tensors of a folder's file of weights."""
    file = folder / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file, {"format": "pt"})


def to_eight_bits(tensors):
    name = "model.layers.2.self_attn.o_proj.weight"
    tensors[name] = tensors[name].to(torch.float8_e4m3fn)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (to_eight_bits, r"model\.layers\.2\.self_attn\.o_proj\.weight.* is stored as F8_E4M3"),
        (lambda tensors: tensors.pop("model.layers.2.hnorm.weight"), "feature_norm.weight"),
        (lambda tensors: tensors.pop("model.layers.2.mlp.experts.3.up_proj.weight"), "not whole"),
        (
            lambda tensors: tensors.update({"model.layers.2.enorm.weight": torch.ones(3)}),
            "embedding_norm.weight",
        ),
        (lambda tensors: tensors.pop("model.layers.2.eh_proj.weight"), "Tiny has no modules"),
    ],
)
def test_modules_that_cannot_be_read_are_told_of(tmp_path, change, told):
    write_deepseek_named(tmp_path, "deepseek_v3")
    rewritten(tmp_path, change)
    with pytest.raises(Problem, match=told):
        LoadedMtp(loaded(tmp_path))


def test_modules_of_another_kind_of_target_are_refused_by_its_name(tmp_path):
    write_mimo_named(tmp_path)
    file = tmp_path / "config.json"
    said = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**said, "model_type": "llama"}), encoding="utf-8")
    with pytest.raises(Problem, match="of the kind 'llama'"):
        LoadedMtp(loaded(tmp_path))


def test_they_compute_in_what_their_target_computes_in(tmp_path):
    write_deepseek_named(tmp_path, "deepseek_v3")
    target = load(check(tmp_path), name="Tiny", precision="bf16", device=torch.device("cpu"))
    mtp = LoadedMtp(target)
    session = mtp.open_target(64)
    session.read(TEXT[:-1], rows=1)
    logits = read(mtp.open(session, 64), TEXT, [5])
    assert logits.dtype == torch.bfloat16
    assert bool(torch.isfinite(logits).all())
    assert mtp.facts.precision == "bf16"
    assert mtp.facts.weight_bytes == 2 * mtp.facts.parameters


def test_weights_that_the_modules_take_are_not_told_of_as_unused(tmp_path):
    write_deepseek_named(tmp_path, "deepseek_v3")
    assert loaded(tmp_path).notes == ()
    add_tensors(tmp_path, {"model.layers.0.mlp.odd.weight": torch.ones(3)})
    assert "odd" in " ".join(loaded(tmp_path).notes)
