"""What one layer's attention costs behind a long text, by the way that its keys are summed over.

    python -m tests.benchmarks.attention [--device cuda] [--heads 32] [--shared 8] [--size 128]
        [--repeats 30]

A pass that a card replays has a mask: the queries of all heads that share a key become rows of one
head, which one part of the card goes through alone, key by key. A pass of one row that is computed
each time needs no mask, and its keys are shared out. The third way shares masked keys out: parts of
them become a batch, whose answers are weighed by the sums behind them. It is to be taken where it
is faster. Run it alone on the machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
from torch import Tensor

from app.models.attention import FoldedMasks, attend_folded
from app.models.machine import environment
from tests.benchmarks.timing import seconds_of, wait

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
ROWS = (1, 5)
_PART = 256
"""Keys of a part."""
_CALLS = 20
"""Behind each other in one measurement, as layers are."""


def folded(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """As passes of fixed shape attend."""
    return attend_folded(query, keys, values, mask, None, FoldedMasks())


def unmasked(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """As a pass of one row that sees every key."""
    return attend_folded(query, keys, values, None, None, FoldedMasks())


def in_parts(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """The same as `folded`, of parts of the keys side by side.

    What is hidden scores a number so low that it weighs nothing beside any that is not: a part that
    is hidden as a whole answers something, not "no number", and weighs nothing.
    """
    rows, heads, size = query.shape
    shared, length = keys.shape[1], keys.shape[2]
    group, parts = heads // shared, max(length // _PART, 1)
    asking = query.reshape(rows, shared, group, size).permute(1, 2, 0, 3).reshape(shared, -1, size)
    asking = asking.expand(parts, -1, -1, -1)
    asked, answers = (
        held[0].view(shared, parts, length // parts, size).transpose(0, 1)
        for held in (keys, values)
    )
    lowest = torch.finfo(mask.dtype).min / 4
    told = mask.clamp(min=lowest).repeat(group, 1).view(-1, parts, length // parts)
    told = told.transpose(0, 1)[:, None].expand(-1, shared, -1, -1)
    found, sums = _with_sums(asking, asked, answers, told)
    weights = torch.softmax(sums[..., : group * rows].float(), dim=0)[..., None]
    whole = (weights * found).sum(dim=0).to(query.dtype)
    return whole.view(shared, group, rows, size).permute(2, 0, 1, 3).reshape(rows, heads * size)


def _with_sums(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Attention [batch, heads, n, size], and the logarithms of the sums behind it [batch, heads, at
    least n].
    """
    ops = torch.ops.aten
    if query.device.type == "cuda":
        found = ops._scaled_dot_product_efficient_attention(query, keys, values, mask, True)
    else:
        found = ops._scaled_dot_product_flash_attention_for_cpu(query, keys, values, attn_mask=mask)
    return found[0], found[1]


Way = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
WAYS: dict[str, Way] = {"masked": folded, "unmasked": unmasked, "masked, in parts": in_parts}


def inputs(
    rows: int, length: int, *, heads: int, shared: int, size: int, device: torch.device
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A query [rows, heads, size], keys and values [1, shared, length, size], and a mask [rows,
    length] that leaves three quarters of them, one fewer by row.
    """
    numbers = torch.Generator().manual_seed(length + rows)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    query = torch.randn(rows, heads, size, generator=numbers)
    held = torch.randn(2, 1, shared, length, size, generator=numbers)
    seen = 3 * length // 4 - rows + 1 + torch.arange(rows)[:, None]
    mask = torch.zeros(rows, length).masked_fill_(torch.arange(length)[None] >= seen, -torch.inf)
    query, keys, values, mask = (one.to(device, dtype) for one in (query, *held, mask))
    return query, keys, values, mask


class Bench:
    """One layer on one device."""

    def __init__(self, device: torch.device, repeats: int) -> None:
        self._device = device
        self._repeats = repeats

    def show(self, rows: int, given: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
        """Prints what every way costs, and how far its answer is from the first one's."""
        first, taken = folded(*given), 0.0
        for name, way in WAYS.items():
            if name == "unmasked" and rows > 1:
                continue
            work = self._repeated(partial(way, *given))
            seconds = median(seconds_of(work, self._device) for _ in range(self._repeats)) / _CALLS
            taken = taken or seconds
            apart = float((way(*given).float() - first.float()).abs().max())
            said = "sees all keys" if name == "unmasked" else f"{apart:.1g} apart"
            length = given[1].shape[2]
            print(
                f"{rows} rows, {length} keys, {name}: {1e6 * seconds:.1f} us "
                f"({seconds / taken:.2f}x; {said})"
            )

    def _repeated(self, way: Callable[[], Tensor]) -> Callable[[], None]:
        """What does it some times; on a card as a graph, as layers are replayed."""

        def run() -> None:
            for _ in range(_CALLS):
                way()

        run()
        if self._device.type != "cuda":
            return run
        wait(self._device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        return graph.replay


def main() -> None:
    """Runs every measurement and prints it."""
    asked = _arguments()
    device = torch.device(asked.device)
    facts = environment(device)
    print(f"{facts.device}, {facts.threads} threads, torch {facts.packages['torch']}")
    print(
        f"{asked.heads} heads, {asked.shared} shared, {asked.size} numbers each; medians of ",
        end="",
    )
    print(f"{asked.repeats}, {_CALLS} calls behind each other")
    bench = Bench(device, asked.repeats)
    with torch.inference_mode():
        for rows in ROWS:
            for length in LENGTHS:
                shape = {"heads": asked.heads, "shared": asked.shared, "size": asked.size}
                bench.show(rows, inputs(rows, length, **shape, device=device))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What attention costs behind a long text.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--shared", type=int, default=8)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=30)
    return parser.parse_args()


if __name__ == "__main__":
    main()
