"""Graphs of a card keep their stream to themselves, and leave the card as it was: on a fake one."""

import gc
import warnings
from contextlib import contextmanager

import pytest
import torch

from app.models.fixed import capture_stream
from app.models.fixed.capture_stream import NoFreeStreamError
from app.models.fixed.passes import Passes
from app.models.fixed.reader import FixedReader
from app.models.fixed.recorder import CudaGraphs, Recordings, watch_waits
from app.models.session import Session
from toys import tiny_llama

CARD = torch.device("cuda", 0)


class FakeStream:
    device = CARD

    def __init__(self, handle):
        self.cuda_stream = handle

    def wait_stream(self, other):
        self.waited = [*getattr(self, "waited", []), other.cuda_stream]


class FakeGenerator:
    """As torch 2.11 has it: its state is told of captures, and a copy of it is of none."""

    def __init__(self, seed):
        self.state = {"seed": seed, "capturing": False}
        self.fails = False

    def clone_state(self):
        if self.fails:
            raise RuntimeError("Cannot call CUDAGeneratorImpl::clone_impl during capture")
        return FakeGenerator(self.state["seed"])

    def graphsafe_set_state(self, other):
        self.state = other.state

    def draw(self):
        if self.state["capturing"]:
            raise RuntimeError("Offset increment outside graph capture encountered unexpectedly.")
        return self.state["seed"]


class FakeCuda:
    """What torch does for graphs, as its Python and C++ code have it; its graphs run their run."""

    def __init__(self):
        self.current = FakeStream(0)
        self.pooled = [FakeStream(handle) for handle in range(1, 33)]
        self.handed_out = 0
        self.mode = 0
        self.warned = False
        self.gone = []
        """Of each graph that is gone its stream's handle, and the handles that were in use then."""
        self.half_recorded = set()
        self.released = []
        self.pools = 0
        self.fails_at_end = False
        self.unfit = set()
        """Handles of streams that no one else may be given."""
        self.generator = FakeGenerator(seed=7)

    def Stream(self, device):
        self.handed_out += 1
        return self.pooled[(self.handed_out - 1) % 32]

    @contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def device(self, device):
        yield

    def set_sync_debug_mode(self, mode):
        self.mode = {"default": 0, "warn": 1, "error": 2}.get(mode, mode)
        if not self.warned:
            self.warned = True
            warnings.warn("Synchronization debug mode is a prototype feature", stacklevel=1)

    def graph_pool_handle(self):
        self.pools += 1
        return (0, self.pools)

    def end(self, index, pool):
        if pool not in self.half_recorded:
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")
        self.half_recorded.remove(pool)


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()

    class Graph:
        stream = None

        def __del__(self):
            fake.gone.append((self.stream.cuda_stream, frozenset(capture_stream._in_use)))

        def replay(self):
            fake.current.replayed = self.stream

    class Capturing:
        """As torch.cuda.graph: where its capture cannot be ended, its stream stays the current."""

        def __init__(self, graph, *, pool, stream, capture_error_mode):
            self.graph, self.pool, self.stream = graph, pool, stream

        def __enter__(self):
            self.before, fake.current = fake.current, self.stream
            self.graph.stream = self.stream
            fake.half_recorded.add(self.pool)
            self.state = fake.generator.state
            self.state["capturing"] = True

        def __exit__(self, *problem):
            if fake.fails_at_end:
                raise RuntimeError("capture was invalidated")
            fake.half_recorded.remove(self.pool)
            self.state["capturing"] = False
            fake.current = self.before

    for name in ("Stream", "stream", "device", "set_sync_debug_mode", "graph_pool_handle"):
        monkeypatch.setattr(torch.cuda, name, getattr(fake, name))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: fake.current)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "default_generators", (fake.generator,))
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: fake.mode)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", Capturing)
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", fake.end, raising=False)
    monkeypatch.setattr(
        torch._C,
        "_cuda_releasePool",
        lambda index, pool: fake.released.append(pool),
        raising=False,
    )
    monkeypatch.setattr(capture_stream, "_failed", [])
    monkeypatch.setattr(capture_stream, "_taken", {})
    monkeypatch.setattr(capture_stream, "_in_use", set())
    yield fake
    gc.collect()
    assert capture_stream._in_use == fake.unfit


def nothing():
    pass


def test_no_two_rooms_record_on_one_stream(cuda):
    rooms = [CudaGraphs(CARD) for _ in range(33)]
    assert cuda.handed_out == 0  # a stream is taken by what is recorded, not by what may be
    held = [room.record(nothing) for room in rooms[:32]]
    assert len({room._own.stream for room in rooms[:32]}) == 32
    with pytest.raises(NoFreeStreamError, match="every stream"):
        rooms[32].record(nothing)
    rooms[7] = held[7] = None
    held.append(rooms[32].record(nothing))
    assert rooms[32]._own.stream.cuda_stream == 8  # that of the one which is gone
    rooms.clear()
    held.clear()


def test_a_stream_that_is_free_again_is_taken_before_others_are(cuda):
    for _ in range(5):
        room = CudaGraphs(CARD)
        room.record(nothing)
        assert room._own.stream.cuda_stream == 1
    assert cuda.handed_out == 1
    other = CudaGraphs(torch.device("cuda", 1))
    other.record(nothing)
    assert other._own.stream.cuda_stream == 2  # a stream belongs to its card


def test_a_rooms_graphs_share_a_stream_and_a_pool(cuda):
    room = CudaGraphs(CARD)
    replays = [room.record(nothing) for _ in range(3)]
    assert (cuda.handed_out, cuda.pools) == (1, 1)
    assert room._own.stream.cuda_stream == 1
    assert len(replays) == 3


def test_a_stream_is_free_only_when_all_of_its_graphs_are_gone(cuda):
    room = CudaGraphs(CARD)
    first, second = room.record(nothing), room.record(nothing)
    room = None
    first = None  # its graph stays: with it torch would give back what the second writes to
    assert cuda.gone == []
    second()
    second = None
    assert cuda.gone == [(1, {1}), (1, {1})]  # in use until the last
    assert (first, second) == (None, None)


def test_a_failed_recording_leaves_stream_mode_and_pool_as_they_were(cuda):
    room, before = CudaGraphs(CARD), cuda.current
    kept = room.record(nothing)
    cuda.fails_at_end = True
    with pytest.raises(RuntimeError, match="invalidated"):
        room.record(nothing)
    assert cuda.current is before
    assert cuda.mode == 0
    assert cuda.half_recorded == set()
    assert cuda.released == [(0, 1)]
    assert cuda.gone == []  # else what `kept` writes to were no longer its own
    cuda.fails_at_end = False
    room.record(nothing)()
    kept()
    assert len(capture_stream._failed) == 1
    assert room._own.pool == (0, 2)
    cuda.unfit = {room._own.stream.cuda_stream}
    room = kept = None
    assert room is kept
    others = [CudaGraphs(CARD) for _ in range(31)]
    for other in others:
        other.record(nothing)
    with pytest.raises(NoFreeStreamError):  # there are 32, and one is not fit for anybody
        CudaGraphs(CARD).record(nothing)


def test_a_recording_that_memory_did_not_suffice_for_is_given_back_with_the_others(cuda):
    def full():
        if cuda.current.cuda_stream and cuda.mode == 0:
            raise torch.OutOfMemoryError

    room = CudaGraphs(CARD)
    kept = room.record(nothing)
    with pytest.raises(torch.OutOfMemoryError):
        room.record(full)
    assert capture_stream._failed == []
    assert cuda.gone == []
    room = kept = None
    assert cuda.gone == [(1, {1}), (1, {1})]
    assert (room, kept) == (None, None)


def test_nothing_is_collected_while_a_run_is_recorded(cuda):
    collects = []
    CudaGraphs(CARD).record(lambda: collects.append(gc.isenabled()))
    assert collects == [True, True, False]
    assert gc.isenabled()


def test_only_the_first_run_of_a_room_is_tried_twice_before_it_is_recorded(cuda):
    room, runs = CudaGraphs(CARD), []
    for number in range(3):
        room.record(lambda number=number: runs.append((number, cuda.mode)))
    # Freely, and with waits forbidden; then recorded, which is watched by torch itself.
    assert runs == [(0, 0), (0, 2), (0, 0), (1, 2), (1, 0), (2, 2), (2, 0)]


def test_a_failed_recording_leaves_the_cards_generator_able_to_draw(cuda):
    room = CudaGraphs(CARD)
    cuda.fails_at_end = True
    with pytest.raises(RuntimeError, match="invalidated"):
        room.record(nothing)
    cuda.unfit = {1}
    assert cuda.generator.draw() == 7
    cuda.fails_at_end = False
    room.record(nothing)
    assert cuda.generator.draw() == 7


@pytest.mark.parametrize("lacking", ["a method", "leave"])
def test_a_generator_that_cannot_be_renewed_does_not_hide_what_failed(cuda, monkeypatch, lacking):
    cuda.fails_at_end = cuda.generator.fails = True
    if lacking == "a method":
        monkeypatch.delattr(FakeGenerator, "clone_state")
    with pytest.raises(RuntimeError, match="invalidated"):
        CudaGraphs(CARD).record(nothing)
    cuda.unfit = {1}


def test_torchs_generators_have_what_renews_them():
    own = torch.Generator().manual_seed(3)
    torch.rand(5, generator=own)
    copy = own.clone_state()
    assert torch.equal(torch.rand(5, generator=copy), torch.rand(5, generator=own))
    assert callable(own.graphsafe_set_state)  # only a card's can do it


def test_a_run_that_waits_is_refused_before_anything_is_recorded(cuda):
    def waits():
        if cuda.mode == 2:
            raise RuntimeError("called a synchronizing CUDA operation")

    before = cuda.current
    with pytest.raises(RuntimeError, match="synchronizing"):
        CudaGraphs(CARD).record(waits)
    assert (cuda.mode, cuda.current) == (0, before)
    assert cuda.gone == []
    assert before.waited == [1]  # what was begun before it was refused is done first


def test_what_cannot_be_recorded_is_the_last_that_is_tried():
    held, tried = Recordings(None), []

    def record(shape):
        tried.append(shape)
        if shape == 2:
            raise RuntimeError("too long")
        held[shape] = nothing

    quiet = {"record": record, "advance": lambda done, total: None}
    assert held.complete([0], **quiet) == ""
    assert held.complete([0, 1, 2, 3], **quiet) == "they cannot be captured (too long)"
    assert held.complete([3], **quiet) == "they cannot be captured (too long)"
    assert held.complete([1, 0], **quiet) == ""
    assert (tried, list(held)) == ([0, 1, 2], [0, 1])


def test_watching_waits_is_quiet_however_strict_warnings_are(cuda):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch_waits("error")
        watch_waits("default")
    assert (cuda.warned, cuda.mode) == (True, 0)


def test_a_model_without_a_free_stream_reads_eagerly_for_this_run(cuda):
    model = tiny_llama()
    taken = [CudaGraphs(CARD) for _ in range(32)]
    held = [room.record(nothing) for room in taken]
    passes = Passes("graphs", recorder=lambda: CudaGraphs(CARD))
    with passes.kept():
        session = Session(FixedReader(model, passes), 64)
        session.prepare(2)
        assert passes.said == (
            "eager: its passes cannot be captured (every stream of the card has graphs already)"
        )
        session.read([1, 2, 3], rows=1)
        del session
    assert passes.said == "captured graphs"
    assert len(held) == 32
