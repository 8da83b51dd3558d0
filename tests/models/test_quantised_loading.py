"""What bitsandbytes quantises on loading: tried on a CPU, whole, with the row proof's outcome."""

import pytest
import torch

from app.library.preflight import check
from app.models import proofs
from app.models.layer_proof import coupling_layer
from app.models.loading import load
from app.models.pair import LoadedPair
from app.models.proofs import prove_rows_independent
from app.run.identities import violations
from app.run.methods import Method
from app.run.preparation import Prepare
from toys import Guesses, make_lane, run, sessions, tiny_llama

CPU = torch.device("cpu")
DRAFT = Method.named("draft-model")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole")
    tiny_llama(1, hidden_size=64, intermediate_size=128).inner.save_pretrained(path)
    return check(path, needs_tokenizer=False)


def loaded(folder, precision):
    return load(folder, name="tiny", precision=precision, device=CPU)


@pytest.mark.parametrize("precision", ["nf4", "fp4", "llm-int8"])
def test_each_loads_rewinds_and_decodes(folder, precision):
    found = loaded(folder, precision)
    assert found.facts.precision == precision
    assert found.rewinding.holds
    model = found.model
    plain = run(make_lane([3, 1, 4], max_new_tokens=30), sessions(model))
    oracle = model.inner.generate(
        torch.tensor([[3, 1, 4]]),
        max_new_tokens=30,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )[0, 3:].tolist()
    assert plain.token_ids == oracle
    mixed = Guesses(lambda t, r: [*plain.token_ids[len(t) - 3 : len(t) - 3 + r % 4], 63, 62])
    fast = run(
        make_lane([3, 1, 4], proposer=mixed, draft_length=5, max_new_tokens=30), sessions(model)
    )
    assert violations(fast) == []
    assert len(fast.token_ids) == 30


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8", "nf4", "fp4"])
def test_rows_do_not_know_each_other(folder, precision):
    assert loaded(folder, precision).rows.holds


def test_llm_int8_couples_rows_though_no_text_of_this_model_shows_it(folder, monkeypatch):
    # Its columns of large numbers are chosen over all rows of a pass.
    found = loaded(folder, "llm-int8")
    assert not found.rows.holds
    assert "Linear8bitLt" in found.rows.note
    assert not found.facts.rows_independent
    monkeypatch.setattr(proofs, "coupling_layer", lambda inner, dtype: None)
    assert prove_rows_independent(found.model).holds


def test_such_a_pair_is_called_not_exactly_lossless(folder):
    coupled, sound = loaded(folder, "llm-int8"), loaded(folder, "nf4")

    def pair(target, draft):
        return LoadedPair(Prepare("tiny"), target, draft, tokenizer=None)

    assert not pair(coupled, sound).exact
    assert any("Not exactly lossless" in note for note in pair(coupled, sound).notes(DRAFT))
    assert pair(sound, coupled).exact  # the draft may answer as it likes
    assert not any("lossless" in note for note in pair(sound, coupled).notes(DRAFT))


def test_a_scale_over_a_whole_tensor_is_seen_in_a_layer_alone():
    class Coupled(torch.nn.Linear):
        def forward(self, x):
            step = x.abs().amax() / 127
            return super().forward((x / step).round() * step)

    model = tiny_llama(0).inner
    assert coupling_layer(model, torch.float32) is None
    model.model.layers[1].mlp.down_proj = Coupled(64, 32, bias=False)
    kind, apart = coupling_layer(model, torch.float32)
    assert kind == "Coupled"
    assert apart > 0.1
