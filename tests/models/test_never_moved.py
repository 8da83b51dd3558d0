"""A model that is quantised stays where it was loaded: moving it is what its library refuses."""

from __future__ import annotations

import pytest
import torch
from transformers import PreTrainedModel

from app.library.preflight import check
from app.models.loading import load
from app.models.warm import collect
from tiny_kinds import write_kind


@pytest.mark.parametrize("precision", ["nf4", "fp4", "llm-int8"])
def test_a_quantised_model_is_read_proved_and_let_go_without_being_moved(
    tmp_path, monkeypatch, precision
):
    def refuse(self, *args, **named):
        raise AssertionError("a quantised model was moved")

    for name in ("to", "cuda", "cpu", "half", "float"):
        monkeypatch.setattr(PreTrainedModel, name, refuse)
    folder = check(write_kind(tmp_path / "tiny", "llama", hidden_size=64, intermediate_size=128))
    loaded = load(folder, name="tiny", precision=precision, device=torch.device("cpu"))
    assert loaded.model.precision == precision
    session = loaded.model.open(8)
    assert session.read([1, 2, 3], rows=1).logits.shape == (1, loaded.model.width)
    assert loaded.rewinding.holds
    del session, loaded
    collect()
