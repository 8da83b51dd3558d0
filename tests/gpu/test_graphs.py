"""Captured passes on a card: they answer as eager ones, never wait, and give their memory back."""

import gc

import pytest
import torch

from app.models.block import Block
from app.models.fixed.choice import choose_passes
from app.models.fixed.recorder import CudaGraphs, watch_waits
from app.models.session import Session
from app.models.warm import collect
from toys import tiny_llama, wrapped

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no graphics card for torch"),
]

NEAR = {torch.float32: 2e-3, torch.bfloat16: 0.5, torch.float16: 0.1}


@pytest.fixture(params=["transformers", "lean"])
def lean(request):
    return request.param == "lean"


@pytest.fixture(params=[torch.float32, torch.bfloat16, torch.float16])
def model(request, lean):
    torch.backends.cuda.matmul.allow_tf32 = False
    made = tiny_llama(1, num_attention_heads=4, num_key_value_heads=2)
    found = wrapped(made.inner.to("cuda", request.param))
    if lean:
        found.take_lean_pass()
        assert found.kernel == "lean pass"
    choose_passes(found, "auto")
    assert found.passes.said == "captured graphs"
    return found


@pytest.mark.parametrize("layers", [None, (0, 1)])
def test_captured_passes_answer_as_eager_ones(model, layers):
    wanted = {"features": layers is not None, "layers": layers or ()}
    fixed, eager = model.open(300, **wanted), Session(model, 300, **wanted)
    fixed.prepare(9)
    text = [(7 * place + 3) % 64 for place in range(240)]
    for step, guesses in enumerate((0, 3, 8, 1, 4, 8, 2, 0, 6, 5)):
        read = [*text, *range(3 * step)]
        ids = [(5 * place + step) % 64 for place in range(guesses)]
        mine, theirs = (
            one.read(read, Block(ids, device=model.device), rows=guesses + 1).logits
            for one in (fixed, eager)
        )
        assert torch.allclose(mine.float(), theirs.float(), atol=NEAR[model.dtype])
    if layers is not None:
        held = fixed.held
        mine, theirs = (one.features[:held].float() for one in (fixed, eager))
        assert torch.allclose(mine, theirs, atol=NEAR[model.dtype])


def test_no_captured_pass_waits_for_the_card(model):
    session = model.open(64)
    session.prepare(5)
    text = [1, 2, 3]
    session.read(text, rows=1)
    watch_waits("error")
    try:
        for step in range(4):
            block = Block([4, 5, 6, 7], device=model.device)
            session.read([*text, *range(8, 9 + step)], block, rows=5)
    finally:
        watch_waits("default")


def test_graphs_and_their_memory_go_with_the_session(model):
    collect()
    before = torch.cuda.memory_allocated()
    session = model.open(512)
    session.prepare(9)
    session.read([1, 2, 3], rows=1)
    assert torch.cuda.memory_allocated() > before
    gc.disable()
    try:
        del session
        torch.cuda.synchronize()
    finally:
        gc.enable()
    collect()
    assert torch.cuda.memory_allocated() <= before + (1 << 20)


def test_a_capture_that_cannot_be_ended_spoils_neither_draws_nor_graphs():
    card = torch.device("cuda", 0)
    held, room = torch.zeros(4, device=card), CudaGraphs(card)
    add = room.record(lambda: held.add_(1))  # done three times: twice to try, once as a graph
    before = torch.cuda.get_rng_state(card)

    def waits():
        held.add_(1)
        if torch.cuda.is_current_stream_capturing():
            torch.cuda.current_stream().synchronize()

    with pytest.raises(RuntimeError, match="captur"):
        room.record(waits)  # tried twice
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert torch.equal(torch.cuda.get_rng_state(card), before)
    drawn = torch.rand(64, device=card)
    assert len(drawn.unique()) > 1
    assert torch.multinomial(drawn, 1).item() < 64
    add()
    assert held.tolist() == [6.0] * 4
    double = room.record(lambda: held.mul_(2))
    double()
    add()
    assert held.tolist() == [97.0] * 4  # 6 doubled four times, and one more
