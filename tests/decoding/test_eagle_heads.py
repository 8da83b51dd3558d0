"""Published heads in the whole loop: right pairs, the baseline's text, the target's law."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from scipy.stats import chi2

from app.decoding.drivers import Sessions
from app.decoding.proposers.draft_head import DraftHead, HeadSetup
from app.library.head_folder import check_head
from app.models.loaded_head import LoadedHead
from app.run.identities import violations
from app.run.metrics import counts
from app.run.record import Repetition
from app.run.settings import Sampling
from published_heads import HIDDEN, first_version, third_version, write
from toys import make_lane, run, tiny_llama

PENALTIES = {"repetition_penalty": 1.3, "presence_penalty": 0.4}


def target_of(vocabulary: int, **changes):
    return tiny_llama(
        4,
        vocabulary=vocabulary,
        hidden_size=HIDDEN,
        num_hidden_layers=3,
        tie_word_embeddings=False,
        **changes,
    )


def table_target(rows):
    """A target whose logits behind a token are a row of a table, whatever came before."""
    target = target_of(len(rows))
    inner = target.inner
    with torch.no_grad():
        inner.model.embed_tokens.weight.copy_(torch.eye(len(rows), HIDDEN))
        for layer in inner.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        inner.lm_head.weight.zero_()
        # The final norm makes a token's one 1 the square root of the width.
        inner.lm_head.weight[:, : len(rows)] = rows.T / HIDDEN**0.5
    return target


def head_of(kind: str, folder: Path, target, ids, *, seed: int = 0) -> LoadedHead:
    """A random head; an EAGLE-3 head guesses from `ids`."""
    if kind == "eagle-1":
        first_version(folder, target.width, seed=seed)
    else:
        third_version(folder, target.width, ids=ids, seed=seed)
    return LoadedHead(check_head(folder), target)


def decoded(target, head=None, *, length=4, tokens=40, prompt=(1, 5), sampling=None) -> Repetition:
    """A run with the head, or without one."""
    sampling = sampling or Sampling()
    if head is None:
        lane = make_lane(prompt, sampling=sampling, max_new_tokens=tokens)
        found = run(lane, Sessions({"target": target.open(tokens + 16)}))
    else:
        proposer = DraftHead(
            HeadSetup(
                sampling=sampling, ids=head.ids, width=target.width, prompt_length=2, end_ids=()
            )
        )
        session = head.open_target(tokens + 16)
        sessions = Sessions({"target": session, "head": head.open(session, tokens + 16)})
        lane = make_lane(
            prompt,
            proposer=proposer,
            sampling=sampling,
            draft_length=length,
            max_new_tokens=tokens,
            context=tokens + 16,
        )
        found = run(lane, sessions)
    assert violations(found) == []
    return found


@pytest.mark.parametrize("penalised", [False, True])
@pytest.mark.parametrize("kind", ["eagle-1", "eagle-3"])
def test_the_greedy_text_is_the_baselines_at_every_length(tmp_path, kind, penalised):
    sampling = Sampling(**(PENALTIES if penalised else {}))
    target = target_of(12)
    ids = [0, 1, 2, 4, 5, 7, 8, 10, 11]
    expected = decoded(target, sampling=sampling).token_ids
    kept = thrown = 0
    for length in range(1, 9):
        head = head_of(kind, tmp_path, target, ids, seed=length)
        found = decoded(target, head, length=length, sampling=sampling)
        assert found.token_ids == expected, f"at length {length}"
        made = counts(found)
        kept, thrown = kept + made.accepted, thrown + made.drafted - made.accepted
    assert kept > 0
    assert thrown > 0


WIDTH = 16
FOLLOWER = [(5 * token + 3) % WIDTH for token in range(WIDTH)]


def walk() -> torch.Tensor:
    """A table in which each token has one follower; the walk goes through all of them."""
    rows = torch.zeros(WIDTH, WIDTH)
    rows[torch.arange(WIDTH), FOLLOWER] = 12.0
    return rows


def without_layer(folder: Path, head: Path) -> None:
    """The same head, but its layer adds nothing: its input is its output."""

    tensors = load_file(head / "model.safetensors")
    for name in tensors:
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            tensors[name].zero_()
        if "norm" in name:
            tensors[name].fill_(1.0)
    write(folder, json.loads((head / "config.json").read_text()), tensors)


@pytest.mark.parametrize("shift", [0, 1])
def test_an_eagle_1_head_sees_the_token_that_it_shall_see(tmp_path, shift):
    # It hands the newest token on, which the target's output rows turn into what follows that.

    target = table_target(walk())
    first_version(tmp_path, WIDTH, bias=False, own=False)
    without_layer(tmp_path, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["fc.weight"] = torch.cat([torch.eye(HIDDEN), torch.zeros(HIDDEN, HIDDEN)], dim=1)
    tensors["fc.weight"] = tensors["fc.weight"].roll(shift, dims=0)
    write(tmp_path, json.loads((tmp_path / "config.json").read_text()), tensors)
    head = LoadedHead(check_head(tmp_path), target)
    found = decoded(target, head, prompt=(1, FOLLOWER[1]))
    made = counts(found)
    assert made.drafted >= 20
    assert made.accepted == (0 if shift else made.drafted)


@pytest.mark.parametrize("shift", [0, 1])
def test_an_eagle_3_head_sees_the_token_that_it_shall_see(tmp_path, shift):
    # It hands on what went into a layer for the token before the newest: its output rows know what
    # follows what follows that. What it feeds back stands still, so a second guess would be wrong.

    target = table_target(walk())
    third_version(tmp_path, WIDTH, ids=list(range(WIDTH)))
    without_layer(tmp_path, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["fc.weight"] = torch.cat([torch.eye(HIDDEN), torch.zeros(HIDDEN, 2 * HIDDEN)], dim=1)
    rows = torch.zeros(WIDTH, HIDDEN)
    for token in range(WIDTH):
        rows[FOLLOWER[FOLLOWER[token]], token] = 1.0
    tensors["lm_head.weight"] = rows.roll(shift, dims=0)
    write(tmp_path, json.loads((tmp_path / "config.json").read_text()), tensors)
    head = LoadedHead(check_head(tmp_path), target)
    found = decoded(target, head, length=1, prompt=(1, FOLLOWER[1]))
    made = counts(found)
    assert made.drafted >= 15
    assert made.accepted == (0 if shift else made.drafted)


LAW = torch.tensor(
    [[0.1, 0.7, 0.15, 0.05], [0.05, 0.15, 0.7, 0.1], [0.1, 0.1, 0.2, 0.6], [0.65, 0.1, 0.05, 0.2]]
)


@pytest.mark.parametrize("kind", ["eagle-1", "eagle-3"])
def test_what_is_drawn_follows_the_targets_law_whatever_the_head_can_guess(tmp_path, kind):
    # The EAGLE-3 head never guesses the token 2: its law is spread over the target's other ids.
    target = table_target(LAW.log())
    head = head_of(kind, tmp_path, target, [0, 1, 3])
    sampling = Sampling(temperature=1.0, seed=3)
    found = decoded(target, head, length=3, tokens=800, prompt=(1, 3), sampling=sampling)
    made = counts(found)
    assert 0 < made.accepted < made.drafted
    guessed = {token.id for round_ in found.rounds for token in round_.thrown if token.source}
    assert (2 in guessed) == (kind == "eagle-1")
    pairs = torch.zeros(4, 4)
    for before, after in itertools.pairwise(found.token_ids):
        pairs[before, after] += 1
    expected = pairs.sum(1, keepdim=True) * LAW
    assert float(((pairs - expected) ** 2 / expected).sum()) < chi2.ppf(1 - 1e-4, 12)
