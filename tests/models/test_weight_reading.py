"""Reading weights holds little beside what it makes of them, in a process of its own."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize

from app.library.preflight import check
from app.models.weight_reading import read_model
from own_process import called
from tests.models.load_peaks import peak_of_load
from tests.tiny_kinds import KINDS, write_kind

CPU = torch.device("cpu")
WRITING = """
import json, sys
from pathlib import Path
import psutil
from app.library.gguf_metadata import GgufFile
from app.library.gguf_weights import Heads, write_weights

file = GgufFile(Path(sys.argv[1]))
Path("/proc/self/clear_refs").write_text("5")
before = psutil.Process().memory_info().rss
quiet = {"report": lambda progress: None, "pause": lambda: None}
write_weights(file, Path(sys.argv[2]), heads=Heads(8, 8), **quiet)
lines = Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
print(json.dumps(peak - before))
"""
LIBRARIES = 32 << 20
"""Bytes that libraries take in passing, whatever the model is."""


def said(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="memory is counted as on Linux"
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A small and a large model."""
    home = tmp_path_factory.mktemp("models")
    sizes = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 16}
    small = write_kind(home / "small", "llama", hidden_size=64)
    return small, write_kind(home / "large", "llama", rows=16384, **sizes)


@linux
@pytest.mark.parametrize("precision", ["nf4", "bf16", "fp32"])
def test_a_load_holds_at_most_two_tensors_beside_the_model(folders, precision):
    largest = 16384 * 512 * 4
    found = called(peak_of_load, *folders, precision)
    stored = sum(file.stat().st_size for file in check(folders[1]).weight_files)
    assert stored > found["weights"] + 2 * largest + LIBRARIES or precision == "fp32"
    assert found["peak"] <= found["weights"] + 2 * largest + LIBRARIES


@linux
def test_a_conversion_never_holds_a_whole_tensor(tmp_path):
    writer = GGUFWriter(tmp_path / "large.gguf", "llama")
    numbers = np.random.default_rng(0).standard_normal((16384, 1024), dtype=np.float32)
    kind = GGMLQuantizationType.Q4_1
    for name in ("token_embd.weight", "blk.0.attn_q.weight", "blk.0.ffn_up.weight"):
        writer.add_tensor(name, quantize(numbers, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    grown = said(WRITING, tmp_path / "large.gguf", tmp_path / "model.safetensors")
    assert grown < numbers.nbytes


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_tensor_by_tensor_is_what_the_library_loads(tmp_path, kind):
    folder = write_kind(tmp_path / kind, kind)
    facts = check(folder)
    mine, told = read_model(facts, mapped=False, device_map={"": CPU}, dtype=torch.float32)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert type(mine) is type(theirs)
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    weights = theirs.state_dict()
    assert weights.keys() == mine.state_dict().keys()
    assert all(torch.equal(weights[name], value) for name, value in mine.state_dict().items())
