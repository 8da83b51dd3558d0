"""What memory a pair takes that is loaded and run; to be called in a process of its own."""

import gc
from pathlib import Path

import msgspec
import psutil
import torch

from app.library.catalogue import load_catalogue
from app.models.mapped_memory import return_free_memory
from app.run.events import LaneEnded
from app.studies.workbench import Workbench, preparation


def resident():
    return psutil.Process().memory_info().rss


def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")


def run(bench, settings):
    quiet = {"report": lambda progress: None, "pause": lambda: None}
    forget_peak()
    pair = bench.loaded(preparation(settings), **quiet)
    loading, loaded = peak(), resident()
    events = []
    bench.run("run", settings, emit=events.append, costing=False, **quiet)
    heads = [pair.head.facts.weight_bytes] if pair.head else []
    ends = [event for event in events if isinstance(event, LaneEnded)]
    assert all(end.finish == "length" for end in ends), ends
    return {
        "loading": loading,
        "loaded": loaded,
        "peak": max(loading, peak()),
        "weights": sum([*(model.weight_bytes for model in pair.models), *heads]),
        "caches": sum(end.cache_bytes for end in ends),
        "tokens": len(events[0].prompt_ids) + settings.max_new_tokens,
        "kernels": [model.kernel for model in pair.models],
    }


def memory_of_run(catalogue, settings, small):
    """Bytes by name: at most while loading and running, and what models and caches hold of them.

    A small pair of the same kinds is run before: what libraries take once is not the pair's.
    """
    torch.set_num_threads(1)
    bench = Workbench(load_catalogue([catalogue]))
    warm = msgspec.structs.replace(
        settings, pair=small, method="ngram", prompt=settings.prompt[:600]
    )
    run(bench, warm)
    bench.release()
    gc.collect()
    return_free_memory()
    before = resident()
    found = run(bench, settings)
    for name in ("loading", "loaded", "peak"):
        found[name] -= before
    return found
