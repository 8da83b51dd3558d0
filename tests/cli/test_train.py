"""`foretoken train` on a tiny target: the curve, the head, stopping, going on, what it refuses."""

import json
import signal

import pytest
import yaml

from app import files
from app.library.catalogue import load_catalogue
from app.library.head_entry import head_entry
from app.library.head_folder import check_head
from app.training import gathering, training

QUICK = ("--target", "tiny-pair", "--minutes", "0.05", "--draft-vocab", "64", "--device", "cpu")


@pytest.fixture
def prompts(tmp_path):
    file = tmp_path / "own.txt"
    file.write_text("\n---\n".join(f"prompt {number} of many" for number in range(30)))
    return str(file)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A catalogue with a tiny target; held-out texts are short."""
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path / "home"))
    from app.selftest.tiny_models import write_tiny_pair

    catalogue = write_tiny_pair()
    monkeypatch.setattr(gathering, "_HELD_OUT_TOKENS", 16)
    monkeypatch.setattr(gathering, "SHARD", 16)
    text = catalogue.read_text()
    name = next(iter(yaml.safe_load(text)["pairs"]))
    catalogue.write_text(text.replace(f"  {name}:", "  tiny-pair:"))
    return catalogue


def test_it_tells_its_curve_and_how_to_use_the_head(call, tiny, prompts, tmp_path):
    out = tmp_path / "out"
    done = call("train", *QUICK, "--prompts", prompts, "--out", str(out))
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    head = "tokens min depth 1 depth 2 depth 3 depth 4 kept loss by depth"
    assert lines[1].split() == head.split()
    assert lines[2].split()[:2] == ["0", "0.0"]
    assert "Kept at depth 1" in done.out
    head = check_head(out / "head")
    assert head.description.target.title == "Tiny random model"
    entry = yaml.safe_load(done.out[done.out.index("models:") :])
    assert entry["pairs"]["tiny-head-2"]["head"] == "tiny-head-2"
    assert "writing" in done.err
    assert "teaching" in done.err


def test_json_stands_alone_on_stdout(call, tiny, prompts, tmp_path):
    done = call("train", *QUICK, "--prompts", prompts, "--out", str(tmp_path / "out"), "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["curve"][0]["tokens"] == 0
    assert found["best"] in found["curve"]
    assert yaml.safe_load(found["models_yaml"])["models"]["tiny-head-2"]["source"]


def test_what_it_says_can_be_pasted(tiny, tmp_path):
    catalogue = load_catalogue([tiny])
    out = tmp_path / "it's: odd" / "head"
    own = files.user_catalogue().with_name("own.yaml")
    for target in ("tiny-pair", "tiny", str(tiny.parent / "tiny")):
        own.write_text(head_entry(catalogue, target, out), encoding="utf-8")
        found = load_catalogue([tiny, own])
        assert found.faults == ()
        pair = found.pair("tiny-head-2")
        assert (pair.target, pair.head, pair.method) == ("tiny", "tiny-head-2", "ngram-else-head")
        assert found.model("tiny-head-2").source.path == str(out.resolve())


def test_ctrl_c_keeps_what_was_done(call, tiny, prompts, tmp_path, monkeypatch):
    out = tmp_path / "out"
    run, times = training.Course.run, []

    def stopped(self, *, report, point, pause):
        if not times:
            signal.raise_signal(signal.SIGINT)
        times.append(1)
        run(self, report=report, point=point, pause=pause)

    monkeypatch.setattr(training.Course, "run", stopped)
    arguments = ("train", *QUICK, "--prompts", prompts, "--out", str(out))
    done = call(*arguments)
    assert done.code == 130
    assert "the same command goes on" in done.err
    assert (out / "checkpoint.safetensors").is_file()
    assert call(*arguments).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--target", "nobody"), "no pair, no model and no folder"),
        (("--minutes", "0"), "no time"),
        (("--writing-share", "1"), "writing share"),
        (("--draft-vocab", "1"), "cannot guess"),
        (("--prompts", "missing.txt"), "cannot be read"),
        (("--disk-gib", "0.01"), "too little"),
    ],
)
def test_what_cannot_be_is_told(call, tiny, tmp_path, arguments, said):
    done = call("train", *QUICK, "--out", str(tmp_path / "out"), *arguments)
    assert done.code == 1
    assert said in done.err.replace("\n", " ")
    assert not (tmp_path / "out" / "texts").exists()
