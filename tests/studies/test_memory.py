"""The memory that a run takes, measured in a process of its own, beside what was computed."""

import os
import shutil
import sys

import pytest
import yaml

from app import files
from app.library.head_folder import check_head
from app.library.memory import Plan, estimate
from app.library.model_size import size_of
from app.run.methods import Method
from app.run.settings import RunSettings
from own_process import called
from tests.studies.memory_of_run import memory_of_run
from tests.tiny_kinds import write_kind

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="memory is counted as on Linux"
)
TEXT = "one two three four five six. " * 40
LARGE = {
    "llama": {
        "rows": 4096,
        "hidden_size": 512,
        "intermediate_size": 2048,
        "num_hidden_layers": 10,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
    },
    "qwen3": {
        "rows": 8192,
        "hidden_size": 384,
        "intermediate_size": 1536,
        "num_hidden_layers": 12,
        "num_attention_heads": 6,
        "head_dim": 64,
        "tie_word_embeddings": False,
    },
    "gpt_neox": {
        "rows": 4096,
        "hidden_size": 512,
        "intermediate_size": 2048,
        "num_hidden_layers": 10,
        "num_attention_heads": 8,
    },
}
"""Models of some 100 to 200 MB in fp32."""


def is_near(computed: int, peak: int) -> bool:
    """Whether a run takes at most a tenth more than was computed, and not much less: what passes in
    bf16 take for a moment differs by processor (an Intel one without instructions for it took up to
    13 % less than an AMD one).
    """
    return 0.9 * peak <= computed <= 1.2 * peak


def measured(folder, models, **said):
    """What is found for a pair `large`, in a process that ran a pair `small` before."""
    pairs = {
        size: {"title": size, "method": "ngram", **found} for size, found in models["pairs"].items()
    }
    sources = {
        name: {"title": name, "source": {"folder": str(path)}}
        for name, path in models["models"].items()
    }
    catalogue = folder / "models.yaml"
    catalogue.write_text(yaml.safe_dump({"models": sources, "pairs": pairs}))
    os.sync()  # a page that is still to be written cannot be let go of
    fixed = {"raw": True, "ignore_end_of_text": True, "order": "interleaved", "detail": "full"}
    settings = RunSettings(pair="large", draft_length=8, **fixed, **said)
    return called(memory_of_run, catalogue, settings, "small")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", LARGE)
def test_the_estimate_is_near_the_measured_peak(tmp_path, kind, precision):
    large = write_kind(tmp_path / "large", kind, max_position_embeddings=1024, **LARGE[kind])
    small = write_kind(tmp_path / "small", kind, max_position_embeddings=1024)
    models = {
        "models": {"large": large, "small": small},
        "pairs": {"large": {"target": "large"}, "small": {"target": "small"}},
    }
    said = {"prompt": TEXT[:900], "max_new_tokens": 24, "method": "ngram"}
    peaks: list[int] = []
    for _ in range(3):  # looking now and then can miss the moment: the highest of three is held to
        found = measured(tmp_path, models, precision=precision, **said)
        plan = Plan(
            target=size_of(large), precision=precision, tokens=found["tokens"], draft_length=8
        )
        held = estimate(plan)[0]
        assert held.caches == found["caches"]
        peaks.append(found["peak"])
        if is_near(held.total, max(peaks)):
            return
    pytest.fail(f"{held.total} was computed, and at most {max(peaks)} measured")


@pytest.fixture(scope="module")
def target(tmp_path_factory, embedded_folder):
    """A copy of the embedded model: pages that other processes map too cannot be let go of."""
    folder = tmp_path_factory.mktemp("embedded")
    yield shutil.copytree(embedded_folder, folder / "target")
    shutil.rmtree(folder)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_embedded_pair_takes_what_was_computed_and_little_more_than_it_needs(
    tmp_path, target, precision
):
    head = files.resource("heads/smollm2-135m-instruct")
    small = write_kind(tmp_path / "small", "llama", max_position_embeddings=1024)
    models = {
        "models": {"large": target, "head": head, "small": small},
        "pairs": {"large": {"target": "large", "head": "head"}, "small": {"target": "small"}},
    }
    found = measured(
        tmp_path,
        models,
        precision=precision,
        prompt=TEXT,
        max_new_tokens=48,
        method="ngram-else-head",
    )
    method = Method.named("ngram-else-head")
    plan = Plan(
        target=size_of(target),
        precision=precision,
        head=check_head(head).size,
        drafter=method.drafter,
        tokens=found["tokens"],
        draft_length=8,
    )
    held = estimate(plan)[0]
    assert held.caches == found["caches"]
    assert is_near(held.total, found["peak"]), (held.total, found["peak"])
    assert found["peak"] <= 1.4 * (found["weights"] + found["caches"])
