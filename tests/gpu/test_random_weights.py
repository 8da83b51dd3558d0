"""Random weights on a graphics card; skipped without one."""

import pytest
import torch

from app.library.random_shapes import RANDOM_SHAPES
from app.models.random_pair import random_pair
from app.models.stages import unseen
from app.models.warm import collect
from app.run.random_bench import RandomBench
from app.run.random_figures import random_figures
from app.studies.device_limits import busy_seconds
from app.studies.random_bench import bench_random

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no graphics card for torch"),
]
CARD = torch.device("cuda", 0)


def test_a_quantised_model_is_never_in_memory_as_a_whole_before():
    collect()
    before, shape = torch.cuda.memory_allocated(), RANDOM_SHAPES["llama-1b"]
    found = random_pair(shape, None, precision="nf4", device=CARD, passes="eager", stages=unseen())
    held = torch.cuda.memory_allocated() - before
    # The table of embeddings is the largest weight; it and a copy of it in 16 bits may be there.
    table = 2 * shape.vocabulary * shape.hidden
    assert held == pytest.approx(found.read_bytes, rel=0.1)
    assert found.peak_bytes - before < held + 2 * table
    assert held < 0.5 * 2 * shape.parameters
    assert {one.device for one in found.plain.parameters()} == {CARD}


def test_a_card_is_at_work_for_a_part_of_a_pass():
    found = random_pair(RANDOM_SHAPES["tiny"], None, precision="bf16", device=CARD, stages=unseen())
    seconds, missing = busy_seconds(found.pair.target.model, pause=lambda: None)
    assert missing == ""
    assert 1e-6 < seconds < 0.1


@pytest.mark.parametrize("precision", ["nf4", "bf16", "fp16", "fp32"])
def test_the_whole_bench(precision):
    wanted = RandomBench("tiny", precision=precision, device="cuda", tokens=24, repeats=1)
    found = bench_random(wanted, report=lambda progress: None, pause=lambda: None)
    figures = {one.name: one for one in random_figures(found)}
    assert all(one.value is not None for one in figures.values())
    assert 0.0 <= figures["idle_share"].value < 1.0
    assert figures["bandwidth"].value > 1e11
    assert found.same_tokens > 0
