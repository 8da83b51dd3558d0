"""Modules for multi-token prediction, against transformers' own code where it has some.

DeepSeek's and GLM's naming: transformers' `MtpModel` reads the same files and drafts with them.
Qwen3-Next's, Qwen3.5's and MiMo's: no library at hand computes them, so they are held against
plain torch, written here from the formulas.
"""

from __future__ import annotations

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
from transformers.cache_utils import MtpCache
from transformers.modeling_layers import MtpModel

from app.library.preflight import check
from app.models.loaded_mtp import LoadedMtp
from app.models.loading import load
from app.models.session import Block

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
        session = mine.model.open(64, features=True)
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
        session = mine.model.open(64, features=True)
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
    session = mine.model.open(64, features=True)
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
    session = mine.model.open(64, features=True)
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
    session = mine.model.open(64, features=True)
    session.read(TEXT[:-1], rows=1)
    beside = mtp.open(session, 64)
    for upto in (2, 3, 7, 8):
        beside.read(TEXT, rows=1, upto=upto)
    answers = read(beside, TEXT, [9, 11, 13])
    assert torch.allclose(answers, read(mtp.open(session, 64), TEXT, [9, 11, 13]), atol=1e-4)
    assert beside.unread(TEXT) == 0
