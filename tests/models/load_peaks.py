"""What loading a model takes of memory at most, as Linux counts it; to be called in a process of
its own.
"""

import gc
from pathlib import Path

import psutil
import torch

from app.library.preflight import check
from app.models.loading import load_weights
from app.models.mapped_memory import return_free_memory


def peak_of_load(small, large, precision):
    """Bytes that loading `large` took at most, and what it then holds.

    A small model is loaded before: what libraries take once is not the model's.
    """
    _load(small, precision)
    gc.collect()
    return_free_memory()
    Path("/proc/self/clear_refs").write_text("5")
    before = psutil.Process().memory_info().rss
    model = _load(large, precision)
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    return {"peak": peak - before, "weights": model.weight_bytes, "kernel": model.kernel}


def _load(folder, precision):
    facts = check(folder, needs_tokenizer=False)
    return load_weights(facts, name="m", precision=precision, device=torch.device("cpu"))
