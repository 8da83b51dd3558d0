"""`models fetch`, `login`, `logout`, `check --hash` and `remove` for models of the Hub."""

import getpass
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import keyring
import numpy as np
import pytest
from keyring.backends import fail
from safetensors.numpy import save
from tokenizers import Tokenizer, models

from app.library.hub_cache import repository_folder
from hub_stand_in import TOKEN, sha256
from own_keyring import using

WEIGHTS = "model.safetensors"
OWN = "models:\n  tiny:\n    title: Tiny\n    source:\n      hub: org/name\n"


@pytest.fixture
def model(hub, tmp_path):
    """A tiny model on the hub, offered by a person's own catalogue."""
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    (config / "models.yaml").write_text(OWN, encoding="utf-8")
    told = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 4}
    files = {
        "config.json": json.dumps(told).encode(),
        "tokenizer.json": Tokenizer(models.BPE({"a": 0}, [])).to_str().encode(),
        WEIGHTS: save({"embed": np.zeros((4, 200), dtype=np.float32)}),
    }
    hub.put("org/name", files)
    return files


def pipe_in(monkeypatch, text):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_gated_model_is_fetched_after_a_login(call, hub, model, monkeypatch):
    hub.gated.add("org/name")
    refused = call("models", "fetch", "tiny")
    assert refused.code == 1
    assert "`foretoken models login`" in refused.err
    pipe_in(monkeypatch, f"{TOKEN}\n")
    done = call("models", "login")
    assert (done.code, "for the account someone" in done.out) == (0, True)
    fetched = call("models", "fetch", "tiny")
    assert fetched.code == 0
    folder = Path(fetched.out.strip().removeprefix("tiny: "))
    assert (folder / WEIGHTS).read_bytes() == model[WEIGHTS]
    assert "Downloading org/name" in fetched.err
    for said in (refused, done, fetched):
        assert TOKEN not in said.out + said.err


def test_a_token_that_the_hub_does_not_know_is_not_kept(call, hub, monkeypatch):
    pipe_in(monkeypatch, "hf_wrong_token")
    done = call("models", "login")
    assert done.code == 1
    assert "does not accept" in done.err
    assert keyring.get_keyring().kept == {}


def test_offline_a_token_is_kept_unchecked(call, hub, monkeypatch):
    hub.stop()
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_environment")
    pipe_in(monkeypatch, TOKEN)
    done = call("models", "login")
    assert (done.code, "unchecked" in done.out, "HF_TOKEN" in done.err) == (0, True, True)
    gone = call("models", "logout")
    assert (gone.out, "HF_TOKEN" in gone.err) == ("The token is gone.\n", True)
    assert "no token" in call("models", "logout").out
    assert keyring.get_keyring().kept == {}


def test_a_typed_token_is_asked_for_without_an_echo(call, hub, monkeypatch):
    class Typed(io.StringIO):
        def isatty(self):
            return True

    def refuse(prompt):
        warnings.warn("Can not control echo on the terminal.", getpass.GetPassWarning, stacklevel=2)

    monkeypatch.setattr("sys.stdin", Typed(TOKEN))
    monkeypatch.setattr("getpass.getpass", refuse)
    assert "would show the token" in call("models", "login").err
    monkeypatch.setattr("getpass.getpass", lambda prompt: f" {TOKEN}\n")
    done = call("models", "login")
    assert done.code == 0
    assert list(keyring.get_keyring().kept.values()) == [TOKEN]
    assert TOKEN not in done.out + done.err


def test_without_a_keyring_login_names_the_other_ways(call, hub, monkeypatch):
    pipe_in(monkeypatch, TOKEN)
    with using(fail.Keyring()):
        done = call("models", "login")
    assert done.code == 1
    for way in ("no keyring", "HF_TOKEN", "hf auth login"):
        assert way in done.err


def test_hashes_are_checked_only_when_asked_for(call, hub, model):
    folder = Path(call("models", "fetch", "tiny").out.strip().removeprefix("tiny: "))
    assert "as the Hub has them: " in call("models", "check", "tiny", "--hash").out
    weights = (folder / WEIGHTS).resolve()
    spoilt = bytearray(weights.read_bytes())
    spoilt[-1] ^= 1
    weights.write_bytes(spoilt)
    assert call("models", "check", "tiny").code == 0
    found = call("models", "check", "tiny", "--hash")
    assert found.code == 1
    assert f"not as the Hub has them: {WEIGHTS}" in found.out


def test_a_model_of_the_hub_is_removed_after_a_question(call, hub, model, monkeypatch):
    call("models", "fetch", "tiny")
    assert "in the Hub's shared cache" in call("models").out
    pipe_in(monkeypatch, "n\n")
    asked = call("models", "remove", "tiny")
    assert "Nothing was removed" in asked.out
    assert "other programs use too" in asked.err
    assert repository_folder("org/name").exists()
    assert call("models", "remove", "tiny", "--yes").code == 0
    assert not repository_folder("org/name").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal's Ctrl+C is no signal there")
def test_ctrl_c_pauses_and_says_how_to_go_on(call, hub, model, tmp_path):
    held = threading.Event()
    hub.next(WEIGHTS, cut=1000, hold=held)
    partial = repository_folder("org/name") / "blobs" / f"{sha256(model[WEIGHTS])}.incomplete"
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "models", "fetch", "tiny"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "FORETOKEN_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not hub.gets(WEIGHTS) and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    held.set()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "`foretoken models fetch tiny` goes on from there" in err
    assert out == ""
    assert partial.read_bytes() == model[WEIGHTS][:1000]
    assert call("models", "fetch", "tiny").code == 0
    assert hub.gets(WEIGHTS)[-1].headers["range"] == "bytes=1000-"
