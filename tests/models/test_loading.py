"""Folders whose weights and config.json do not belong together."""

import json

import pytest
import torch

from app.library.preflight import check
from app.models.loading import load
from app.run.problems import Problem
from toys import tiny_llama


def edited(path, **changes):
    """F2 in a folder, its config.json changed by hand."""
    tiny_llama(0).inner.save_pretrained(path)
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    (path / "config.json").write_text(json.dumps({**config, **changes}), encoding="utf-8")
    return check(path, needs_tokenizer=False)


def loaded(folder):
    where = torch.device("cpu")
    return load(folder, name="tiny", precision="fp32", device=where)


def test_a_whole_folder_has_no_notes(tmp_path):
    assert loaded(edited(tmp_path)).notes == ()


def test_weights_that_config_does_not_ask_for_are_told_of(tmp_path):
    # C19: one layer fewer writes nonsense, and nothing else would say why.
    notes = loaded(edited(tmp_path, num_hidden_layers=1)).notes
    assert len(notes) == 1
    assert "model.layers.1." in notes[0]


def test_what_the_check_of_the_folder_found_is_told(tmp_path):
    folder = edited(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    assert any(
        "pickled" in note for note in loaded(check(folder.folder, needs_tokenizer=False)).notes
    )


@pytest.mark.parametrize("changes", [{"num_hidden_layers": 3}, {"intermediate_size": 128}])
def test_weights_that_are_missing_or_of_another_shape_are_refused(tmp_path, changes):
    with pytest.raises(Problem) as caught:
        loaded(edited(tmp_path, **changes))
    assert "ignore_mismatched_sizes" not in caught.value.message
    assert "belong together" in caught.value.remedy


def test_more_layers_than_weights_are_refused_before_they_are_made(tmp_path):
    # Made first, a thousand million layers would take all memory there is.
    for layers in (10**9, 10**30, -1):
        with pytest.raises(Problem, match="layers, but the weights hold"):
            edited(tmp_path, num_hidden_layers=layers)


@pytest.mark.parametrize("changes", [{"num_attention_heads": 0}, {"hidden_act": "loud"}])
def test_whatever_a_config_makes_the_library_raise_is_a_problem(tmp_path, changes):
    with pytest.raises(Problem, match="cannot be loaded in fp32") as caught:
        loaded(edited(tmp_path, **changes))
    assert caught.value.remedy
