"""`models scan`, `check`, `path` and `remove`, called as a person calls them."""

import json
import shutil

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models

from app.cli.commands import models as model_commands
from app.library.fitting import fit
from app.library.kept import converted_root
from app.library.memory import estimate
from app.models import devices
from app.run.preparation import DeviceMemory
from app.selftest.runs import PAIR
from app.selftest.tiny_models import write_tiny_pair
from tiny_kinds import write_kind


@pytest.fixture(autouse=True)
def person(monkeypatch, tmp_path):
    """A person who has no models in the usual places."""
    for variable in ("HOME", "USERPROFILE", "HF_HOME", "LLAMA_CACHE", "OLLAMA_MODELS"):
        monkeypatch.setenv(variable, str(tmp_path / "person"))
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def folder(tmp_path):
    """A tiny model of a person's own."""
    folder = tmp_path / "mine" / "tiny"
    folder.mkdir(parents=True)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 4}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    Tokenizer(models.BPE({"a": 0}, [])).save(str(folder / "tokenizer.json"))
    weights = np.zeros((4, 2), dtype=np.float32)
    save_file({"model.embed_tokens.weight": weights}, folder / "model.safetensors")
    return folder


def test_what_a_scan_prints_can_be_pasted(call, folder, tmp_path):
    done = call("models", "scan", str(folder.parent))
    assert done.code == 0
    for word in ("tiny (your folder)", str(folder), "LlamaForCausalLM", "float32", "Can be used."):
        assert word in done.out
    own = tmp_path / "home" / "config" / "models.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(done.out[done.out.index("\nmodels:\n") :], encoding="utf-8")
    assert call("models", "check", "tiny").code == 0
    assert call("models", "path", "tiny").out == f"{folder}\n"
    again = call("models", "scan", str(folder.parent))
    assert "Offered already, as tiny." in again.out
    assert "\nmodels:\n" not in again.out


def test_a_scan_as_json(call, folder):
    done = call("models", "scan", str(folder.parent), str(folder / "no such"), "--json")
    assert done.code == 0
    told = json.loads(done.out)
    assert [one["path"] for one in told["found"]] == [str(folder)]
    assert told["found"][0]["loads"] is True
    assert "There is no folder" in told["troubles"][0]


def test_a_check_fails_with_its_remedy(call, folder):
    (folder / "tokenizer.json").unlink()
    done = call("models", "check", str(folder))
    assert done.code == 1
    assert "Tokenizer files are missing" in done.out
    assert "Copy the tokenizer files" in done.out
    assert call("models", "check", "embedded").code == 1
    assert call("models", "check", "./no such").code == 1


def test_places_are_told(call, tmp_path):
    done = call("models", "path")
    assert done.code == 0
    for place in ("config/models.yaml", "cache/converted", "data/history.sqlite"):
        assert str(tmp_path / "home" / place) in done.out
    missing = call("models", "path", "embedded")
    assert missing.code == 1
    assert "models fetch" in missing.err


def test_removing_asks_unless_told_not_to(call, monkeypatch):
    kept = converted_root() / "gone-0123456789ab"
    kept.mkdir(parents=True)
    (kept / "model.safetensors").write_bytes(bytes(2_000_000))
    listed = call("models")
    assert "Kept on this disk: 2 MB converted" in listed.out
    assert "`foretoken models remove gone`" in listed.out
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert "Nothing was removed" in call("models", "remove", "gone").out
    assert kept.is_dir()
    done = call("models", "remove", "gone", "--yes")
    assert (done.code, done.out) == (0, "Removed 2 MB.\n")
    assert not kept.exists()
    assert call("models", "remove", "gone", "--yes").code == 1


def test_a_pair_is_not_removed(call):
    done = call("models", "remove", "embedded", "--yes")
    assert done.code == 1
    assert "smollm2-135m-instruct" in done.err
    nothing = call("models", "remove", "smollm2-135m-instruct", "--yes")
    assert (nothing.code, "keeps nothing" in nothing.out) == (0, True)


def test_a_comparison_ends_with_its_verdict(call, folder):
    done = call("models", "compare", str(folder), str(folder))
    assert done.code == 0
    for word in ("fits: all 1 ids", str(folder), "Chat template: neither", "the same model"):
        assert word in done.out
    (folder / "tokenizer.json").unlink()
    broken = call("models", "compare", str(folder), str(folder), "--json")
    assert broken.code == 1
    told = json.loads(broken.out)
    assert told["verdict"] == "cannot"
    assert "Tokenizer files are missing" in told["reason"]
    assert told["remedy"]
    assert told["target"]["folder"] == str(folder)


def test_a_comparison_names_the_ids_and_the_special_tokens(call, folder, tmp_path):
    other = tmp_path / "mine" / "other"
    shutil.copytree(folder, other)
    Tokenizer(models.BPE({"b": 0}, [])).save(str(other / "tokenizer.json"))
    (other / "tokenizer_config.json").write_text('{"eos_token": "b"}', encoding="utf-8")
    done = call("models", "compare", str(folder), str(other))
    assert done.code == 0
    words = (
        "fits by text: id 0",
        "Methods for it: slem",
        "eos token",
        "b (0)",
        "'a' / 'b'",
        "0.0%",
    )
    for word in words:
        assert word in done.out


def test_a_comparison_tells_what_loading_both_finds(call, tmp_path):
    tiny, foreign = (tmp_path / "mine" / name for name in ("tiny", "foreign"))
    write_kind(tiny, "llama")
    write_kind(foreign, "mamba")
    told = call("models", "compare", str(tiny), str(tiny))
    assert "Load proofs: not tried (--load tries them)." in told.out
    done = call("models", "compare", str(tiny), str(foreign), "--load", "--device", "cpu", "--json")
    assert done.code == 1
    found = json.loads(done.out)
    assert found["verdict"] == "cannot"
    assert found["reason"].startswith("the draft keeps a state (mamba)")
    target, draft = found["proofs"]
    assert target.startswith("target, fp32 on cpu: rewinding tried: same answer, bit for bit; rows")
    assert draft.startswith("draft, fp32 on cpu: the model's state cannot be rewound")
    refused = call("models", "compare", str(tiny), str(tiny), "--load", "--precision", "fp16")
    assert "not tried, as it could not be loaded: fp16 crawls on a CPU" in refused.out


def test_fit_draws_a_bar_and_fails_for_what_does_not_fit(call, tmp_path, monkeypatch):
    write_tiny_pair()
    done = call("models", "fit", PAIR, "--context", "200", "--precision", "fp32")
    assert done.code == 0
    assert "cpu [" in done.out
    assert "Caches: " in done.out
    free = DeviceMemory("cpu", "CPU", 1_000_000, 2_000_000)
    monkeypatch.setattr(devices, "device_memory", lambda: (free,))
    done = call("models", "fit", PAIR, "--device", "cpu")
    assert done.code == 1
    assert "Does not fit: " in done.out


@pytest.mark.parametrize("option", ["--device", "--draft-device"])
def test_fit_for_a_device_that_no_machine_has_says_which_there_are(call, option):
    write_tiny_pair()
    done = call("models", "fit", PAIR, option, "nonsense")
    assert done.code == 1
    assert "'nonsense' is no device" in done.err
    assert "cuda:1" in done.err


def test_fit_takes_another_method_than_the_pairs_own(call):
    write_tiny_pair()
    assert call("models", "fit", PAIR, "--device", "cpu", "--method", "head-tree").code == 0
    refused = call("models", "fit", PAIR, "--device", "cpu", "--method", "wrong")
    assert refused.code == 1
    assert "head-tree" in refused.err


def test_fit_counts_a_draft_model_on_the_device_that_is_chosen_for_it(call, monkeypatch):
    write_tiny_pair()
    there = [DeviceMemory(name, name, 1 << 40, 1 << 40) for name in ("cuda:0", "cpu")]
    monkeypatch.setattr(devices, "device_memory", lambda: there)
    told = ["models", "fit", PAIR, "--precision", "bf16"]
    assert "cpu [" not in call(*told).out
    apart = call(*told, "--draft-device", "cpu")
    assert "cuda:0 [" in apart.out
    assert "cpu [" in apart.out


def test_fit_counts_the_lanes_one_after_the_other_as_the_terminal_runs_them(call, monkeypatch):
    write_tiny_pair()
    told = ["models", "fit", PAIR, "--context", "512", "--precision", "bf16"]
    free = DeviceMemory("cpu", "CPU", 1 << 40, 1 << 40)
    monkeypatch.setattr(devices, "device_memory", lambda: (free,))
    plans = []

    def look(plan, *known, **more):
        plans.append(plan)
        assert "fp16" in more["refused"]["cpu"]  # no change is proposed that this machine refuses
        return fit(plan, *known, **more)

    monkeypatch.setattr(model_commands, "fit_plan", look)
    assert call(*told).code == 0
    at_once = estimate(msgspec.structs.replace(plans[0], at_once=True))[0].total
    short = DeviceMemory("cpu", "CPU", at_once - 1, 1 << 40)
    monkeypatch.setattr(devices, "device_memory", lambda: (short,))
    assert call(*told).code == 0
