"""Published EAGLE heads before anything is loaded: what they are, and why they cannot be used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from app.library.catalogue import Catalogue
from app.library.checking import check_named
from app.library.eagle_folder import EagleForm
from app.library.entries import FolderSource, HubSource, ModelEntry, PairEntry
from app.library.head_folder import check_head, is_head, refuse_unfit
from app.library.inventory import listing
from app.library.preflight import check
from app.library.scan import scan
from app.library.sources import fetch
from app.run.problems import Problem
from hub_stand_in import HubStandIn
from published_heads import HEADS, HIDDEN, INSIDE, SHARED, SIZE, first_version, third_version

Make = Callable[..., Path]
VOCABULARY = 64
IDS = [token for token in range(VOCABULARY) if token % 5]


def third(folder: Path, **told: object) -> Path:
    return third_version(folder, VOCABULARY, ids=IDS, **told)


def form(folder: Path) -> EagleForm:
    described = check_head(folder).description
    assert isinstance(described, EagleForm)
    return described


def change_config(folder: Path, **changes: object) -> None:
    file = folder / "config.json"
    said = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({name: value for name, value in said.items() if value != "gone"}))


def change_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    held = load_file(folder / "model.safetensors")
    change(held)
    save_file(held, folder / "model.safetensors")


def in_speculators_layout(folder: Path, **told: object) -> Path:
    """An EAGLE-3 head as speculators writes it: the layer's own config apart, its name another."""
    third(folder)
    said = json.loads((folder / "config.json").read_text())
    said.pop("architectures")
    draft = said.pop("draft_vocab_size")
    whole = {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "draft_vocab_size": draft,
        "transformer_layer_config": said,
        "speculators_config": {"algorithm": "eagle3", "verifier": {"name_or_path": "org/large"}},
    }
    (folder / "config.json").write_text(json.dumps(whole | told))
    held = load_file(folder / "model.safetensors")
    renamed = {name.replace("midlayer.", "layers.0."): held[name] for name in held}
    save_file(renamed, folder / "model.safetensors")
    return folder


def test_what_a_folder_holds_is_known_by_its_config_or_its_header(
    tmp_path: Path, make_folder: Make
) -> None:
    assert form(first_version(tmp_path / "one", VOCABULARY)).kind == "eagle-1"
    assert form(third(tmp_path / "three")).kind == "eagle-3"
    plain = third(tmp_path / "unnamed")
    change_config(plain, architectures=["LlamaForCausalLM"], draft_vocab_size="gone")
    assert form(plain).kind == "eagle-3"
    assert form(plain).vocabulary == len(IDS)
    other = in_speculators_layout(tmp_path / "speculators")
    assert form(other).kind == "eagle-3"
    assert check_head(other).name == "EAGLE-3 head for org/large"
    model = make_folder("model of one layer")
    assert not is_head(model)
    with pytest.raises(Problem, match="holds no draft head"):
        check_head(model)
    assert not is_head(tmp_path / "nothing")
    (tmp_path / "config.json").write_text("no JSON")
    assert not is_head(tmp_path)


def test_sizes_come_from_config_and_header(tmp_path: Path) -> None:
    facts = check_head(third(tmp_path, fc_norm=True))
    described = facts.description
    assert isinstance(described, EagleForm)
    assert (described.heads, described.shared_heads, described.head_size) == (HEADS, SHARED, SIZE)
    assert (described.vocabulary, described.target_vocabulary) == (len(IDS), VOCABULARY)
    assert described.layers_of(36) == (2, 18, 33)
    read = 2 * HIDDEN * (HEADS + 2 * SHARED) * SIZE + HEADS * SIZE * HIDDEN + 3 * HIDDEN * INSIDE
    norms = 4 * HIDDEN + 3 * HIDDEN
    assert facts.size.weights == read + 3 * HIDDEN * HIDDEN + norms + len(IDS) * HIDDEN
    assert facts.size.kept == 2 * SHARED * SIZE
    assert facts.size.features == 3 * HIDDEN
    assert facts.stored == "F32"


def test_a_copy_of_the_targets_embeddings_takes_no_memory_of_its_own(tmp_path: Path) -> None:
    copied = check_head(first_version(tmp_path / "copied", VOCABULARY))
    without = check_head(first_version(tmp_path / "without", VOCABULARY, own=False))
    assert copied.size == without.size
    own = {"embed_tokens.weight": torch.zeros(VOCABULARY, HIDDEN)}
    narrow = third(tmp_path / "narrow", tensors=own, target_hidden=2 * HIDDEN)
    alike = third(tmp_path / "alike", tensors=own)
    reads = 3 * HIDDEN * HIDDEN  # what the wider target's features take more in fc
    more = check_head(narrow).size.weights - check_head(alike).size.weights
    assert more == VOCABULARY * HIDDEN + reads


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_hidden_layers": 2}, "has 2 layers"),
        ({"hidden_act": "gelu"}, "the activation 'gelu'"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "positions of the kind 'dynamic'"),
        ({"rope_scaling": {"type": "linear"}}, "positions without factor"),
        ({"rope_theta": -1.0}, "positions without rope_theta"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "turn a part only"),
        ({"layer_types": ["sliding_attention"]}, "a sliding window"),
        ({"fc_norm": True, "norm_before_fc": True}, "both fc_norm and norm_before_fc"),
        ({"speculators_model_type": "dflash"}, "of the kind 'dflash'"),
        ({"speculators_model_type": "mtp"}, "of the kind 'mtp'"),
        ({"hidden_size": "gone"}, "does not say hidden_size"),
        ({"num_attention_heads": 0}, "does not say num_attention_heads"),
        ({"hidden_size": 48}, r"fc.weight of the shape \[32, 96\].* \[48, "),
        ({"vocab_size": 80}, r"t2d of the shape \[64\].* \[80\]"),
        ({"draft_vocab_size": 20}, r"lm_head.weight of the shape \[51, 32\]"),
        ({"intermediate_size": 64}, "gate_proj"),
        ({"eagle_aux_hidden_state_layer_ids": [1, 2]}, r"of another width \(32\)"),
        ({"norm_before_fc": True}, "lacks input_norm.weight"),
        ({"fc_norm": True}, "lacks fc_norm.0.weight"),
        ({"draft_vocab_size": "many"}, "does not read as expected"),
    ],
)
def test_a_config_that_cannot_be_run_is_refused_by_name(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    folder = third(tmp_path)
    change_config(folder, **changes)
    with pytest.raises(Problem, match=said) as refused:
        check_head(folder)
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda held: held.pop("norm.weight"), "lacks norm.weight"),
        (lambda held: held.pop("fc.weight"), "lacks fc.weight"),
        (lambda held: held.pop("midlayer.self_attn.k_proj.weight"), "lacks layers.0.self_attn.k"),
        (lambda held: held.update({"extra.weight": torch.ones(3)}), "holds extra.weight, which"),
        (lambda held: held.update({"d2t": torch.ones(9).long()}), r"d2t of the shape \[9\]"),
        (lambda held: (held.pop("d2t"), held.pop("t2d")), "guesses 51 of 64 tokens, but no d2t"),
        (lambda held: held.update({"fc.weight": torch.ones(4)}), "lacks fc.weight"),
    ],
)
def test_weights_that_are_no_such_head_are_refused_by_name(
    tmp_path: Path, change: Callable[[dict[str, torch.Tensor]], object], said: str
) -> None:
    folder = third(tmp_path)
    change_tensors(folder, change)
    with pytest.raises(Problem, match=said) as refused:
        check_head(folder)
    assert refused.value.remedy


def test_what_only_training_needs_may_be_there(tmp_path: Path) -> None:
    folder = third(tmp_path)
    more = {
        "verifier_norm.weight": torch.ones(HIDDEN),
        "midlayer.self_attn.rotary_emb.inv_freq": torch.ones(4),
    }
    change_tensors(folder, lambda held: held.update(more))
    assert not any("verifier" in name for name in form(folder).names)


def test_a_head_that_comes_as_pickle_is_refused_with_the_way_out(tmp_path: Path) -> None:
    folder = third(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(Problem, match="only as pickle") as refused:
        check_head(folder)
    assert "weights_only=True" in refused.value.remedy
    cut = third(tmp_path / "cut")
    file = cut / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(Problem, match="cut short"):
        check_head(cut)


def target(make_folder: Make, name: str = "target", **changes: object) -> Path:
    config = {"num_hidden_layers": 1} | {key: changes.pop(key) for key in ["model_type"] if changes}
    return make_folder(name, hidden=HIDDEN, vocabulary=VOCABULARY, config=config)


def test_a_head_is_held_against_its_target(tmp_path: Path, make_folder: Make) -> None:
    one = check_head(first_version(tmp_path / "one", VOCABULARY))
    fit = check(target(make_folder))
    assert refuse_unfit(one, fit) == ""
    other = check(make_folder("other", hidden=16, vocabulary=VOCABULARY))
    with pytest.raises(Problem, match=r"features of 32 numbers .* has 16 and 64"):
        refuse_unfit(one, other)
    fewer = check(make_folder("fewer", hidden=HIDDEN, vocabulary=60))
    with pytest.raises(Problem, match="knows 64 tokens; this target has 32 and 60"):
        refuse_unfit(one, fewer)
    with pytest.raises(Problem, match=r"reads the inputs of the layers 2, 0, -2 .* has 1 layers"):
        refuse_unfit(check_head(third(tmp_path / "three")), fit)
    gemma = check(target(make_folder, "gemma", model_type="gemma3_text"))
    with pytest.raises(Problem, match="'gemma3_text'") as refused:
        refuse_unfit(one, gemma)
    assert "llama, mistral, qwen2, qwen3" in refused.value.remedy


def test_a_pair_with_a_published_head_is_checked_before_it_is_loaded(
    tmp_path: Path, make_folder: Make
) -> None:
    places = {
        "large": target(make_folder),
        "one": first_version(tmp_path / "one", VOCABULARY),
        "three": third(tmp_path / "three"),
    }
    models = tuple(ModelEntry(name, name, FolderSource(str(at))) for name, at in places.items())
    pairs = tuple(PairEntry(head, head, "large", "head", head=head) for head in ("one", "three"))
    fit = check_named(Catalogue(models, pairs), pairs[0].name)
    assert fit.usable
    assert fit.together == "Target and head fit each other."
    by_path = check_named(Catalogue(models, pairs), str(places["three"]))
    assert by_path.usable
    assert by_path.models[0].model is not None
    assert by_path.models[0].model.architecture == "EAGLE-3 head for three"


def test_published_heads_are_found_as_heads(tmp_path: Path, make_folder: Make) -> None:
    third(tmp_path / "all" / "three")
    first_version(tmp_path / "all" / "one", VOCABULARY)
    target(make_folder, "all/target")
    nothing = Catalogue((), ())
    found = scan((tmp_path / "all",), nothing, pause=lambda: None)
    kinds = {one.title: one.kind for one in found.found}
    assert kinds == {"three": "draft head", "one": "draft head", "target": "safetensors folder"}
    heads = {row.title: row.is_head for row in listing(nothing, found.found)}
    assert heads == {"three": True, "one": True, "target": False}


def test_a_head_is_fetched_from_the_hub_like_a_model(hub: HubStandIn, tmp_path: Path) -> None:
    folder = third(tmp_path / "head")
    hub.put("org/head", {file.name: file.read_bytes() for file in folder.iterdir()})
    entry = ModelEntry("head", "Head", HubSource("org/head"), kind="eagle-3")
    (row,) = listing(Catalogue((entry,), ()))
    assert row.is_head
    assert row.standing == "to be fetched"
    fetched = fetch(entry, lambda progress: None, pause=lambda: None)
    assert form(fetched).kind == "eagle-3"
    (row,) = listing(Catalogue((entry,), ()))
    assert row.standing == "ready"


def test_a_head_on_the_hub_as_pickle_is_not_fetched(hub: HubStandIn, tmp_path: Path) -> None:
    folder = third(tmp_path / "head")
    config = (folder / "config.json").read_bytes()
    hub.put("org/head", {"config.json": config, "pytorch_model.bin": b"pickle"})
    entry = ModelEntry("head", "Head", HubSource("org/head"), kind="eagle-3")
    with pytest.raises(Problem, match="only as pickle"):
        fetch(entry, lambda progress: None, pause=lambda: None)
