"""Modules for multi-token prediction, found by the names of their tensors alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from mtp_kinds import write_mimo_named, write_qwen_named, write_target

from app import files
from app.library.catalogue import Catalogue, load_catalogue
from app.library.checking import check_named
from app.library.entries import FolderSource, ModelEntry, PairEntry
from app.library.mtp_layout import find_mtp, refuse_none
from app.library.own_catalogue import offer_pair
from app.run.problems import Problem

DEEPSEEK = [
    "model.layers.60.mlp.gate.weight",
    "model.layers.61.embed_tokens.weight",
    "model.layers.61.enorm.weight",
    "model.layers.61.hnorm.weight",
    "model.layers.61.eh_proj.weight",
    "model.layers.61.shared_head.norm.weight",
    "model.layers.61.shared_head.head.weight",
    "model.layers.61.mlp.experts.3.up_proj.weight",
]


def test_deepseeks_module_stands_behind_the_layers():
    found = find_mtp(DEEPSEEK, 61)
    assert found is not None
    assert found.modules == (
        {
            "embedding_norm.weight": "model.layers.61.enorm.weight",
            "feature_norm.weight": "model.layers.61.hnorm.weight",
            "joining.weight": "model.layers.61.eh_proj.weight",
            "norm.weight": "model.layers.61.shared_head.norm.weight",
            "block.mlp.experts.3.up_proj.weight": "model.layers.61.mlp.experts.3.up_proj.weight",
        },
    )
    assert [found.owns(name) for name in DEEPSEEK] == [False] + 7 * [True]
    # What is not read: copies of the target's own tables.
    assert len(found.names) == 5


def test_a_layer_too_many_is_no_module():
    # As where config.json has been changed to fewer layers.
    assert find_mtp(["model.layers.2.mlp.up_proj.weight"], 2) is None
    assert find_mtp(DEEPSEEK, 62) is None


def test_qwens_modules_share_what_stands_before_their_layers():
    parts = ("fc", "norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden")
    shared = [f"mtp.{part}.weight" for part in parts]
    layers = [f"mtp.layers.{number}.input_layernorm.weight" for number in (1, 0)]
    found = find_mtp([*shared, *layers], 48)
    assert found is not None
    assert [module["block.input_layernorm.weight"] for module in found.modules] == layers[::-1]
    assert {module["joining.weight"] for module in found.modules} == {"mtp.fc.weight"}
    assert len(found.names) == 6


def test_a_target_that_has_none_is_told_of_before_it_is_loaded(tmp_path: Path, home: Path):
    write_target(tmp_path / "plain", "qwen2")
    write_mimo_named(tmp_path / "own")
    for name, usable in (("plain", False), ("own", True)):
        model = ModelEntry(name, name, FolderSource(str(tmp_path / name)))
        pair = PairEntry("pair", "Pair", name, "mtp")
        found = check_named(Catalogue((model,), (pair,)), "pair")
        assert found.usable == usable
        assert ("plain has no modules for multi-token prediction" in found.together) != usable
        assert bool(found.remedy) != usable


def test_a_pair_offers_the_method_where_its_target_has_modules(tmp_path: Path, home: Path):
    file = files.user_catalogue()
    file.parent.mkdir(parents=True)
    write_target(tmp_path / "plain", "qwen2")
    write_qwen_named(tmp_path / "own", "qwen3_5_text")
    for name in ("plain", "own"):
        entry = ModelEntry(name, name, FolderSource(str(tmp_path / name)))
        made = offer_pair(file, load_catalogue([file]), entry, None, role=None)
        pair = load_catalogue([file]).pair(made)
        assert pair.method == "ngram"
        assert pair.offers("mtp") == (name == "own")
    assert PairEntry("pair", "Pair", "own", "mtp").offers("mtp")


def test_modules_of_a_kind_that_is_not_read_are_told_of_by_its_name(tmp_path: Path):
    write_mimo_named(tmp_path)
    config = tmp_path / "config.json"
    said = config.read_text(encoding="utf-8").replace('"model_type": "qwen2"', '"model_type": "x"')
    config.write_text(said, encoding="utf-8")
    with pytest.raises(Problem, match="of the kind 'x'"):
        refuse_none(tmp_path, "Target")
