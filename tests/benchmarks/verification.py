"""What deciding costs apart from the models: whole verdicts, and ways to cut a nucleus.

    python -m tests.benchmarks.verification [--device cuda] [--width 151936] [--drafted 4]
        [--repeats 30]

For each rule and sampling prints the median of a round's verdict with its copy home, and how many
operations torch was asked for (and on a card, how many kernels ran); then the ways to find where a
nucleus ends, as ratios to the first. A card sorts every row today (`_keep_top_p`); the way by
halving asks the host nothing either, and is to be taken if it is faster there. Run it alone on the
machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from app.decoding.contracts import Draft, TargetRows
from app.decoding.decision import bring_home
from app.decoding.loop import draws_on
from app.decoding.sampling import warp
from app.decoding.shared_noise import SharedNoise
from app.decoding.verifiers import make_verifier
from app.models.block import Block
from app.models.machine import environment
from app.run.rules import RULES
from app.run.settings import Sampling
from tests.benchmarks.timing import seconds_of, wait

SAMPLINGS = {
    "greedy": Sampling(),
    "T 0.8": Sampling(temperature=0.8),
    "top-p 0.9": Sampling(temperature=0.8, top_p=0.9),
    "top-k 40, top-p 0.9": Sampling(temperature=0.8, top_k=40, top_p=0.9),
}
_HALVINGS = 30
"""Between the bits of 0.0 and those of 1.0."""
_ONE = 0x3F800000
"""The bits of 1.0 in fp32."""


def by_sorting(law: Tensor, p: float) -> Tensor:
    """The least probability [rows, 1] that is kept of laws [rows, width], all rows sorted."""
    values = torch.sort(law, dim=-1, descending=True).values
    inside = values.cumsum(dim=-1) - values < p
    return torch.where(inside, values, torch.inf).amin(dim=-1, keepdim=True)


def by_halving(law: Tensor, p: float) -> Tensor:
    """A threshold [rows, 1] that keeps the same tokens: the least number above which less than p
    lies. Of fp32 laws; numbers that are not negative are in the order of their bits.
    """
    bits = law.view(torch.int32)
    low = bits.new_zeros((len(law), 1))
    high = bits.new_full((len(law), 1), _ONE)
    for _ in range(_HALVINGS):
        middle = (low + high) >> 1
        enough = torch.where(bits > middle, law, 0.0).sum(dim=-1, keepdim=True) < p
        high = torch.where(enough, middle, high)
        low = torch.where(enough, low, middle + 1)
    return high.view(torch.float32)


def by_asking(law: Tensor, p: float, short: int = 2048) -> Tensor:
    """As by sorting, of a short list first, unless that is too short: which has to be asked."""
    values = torch.topk(law, min(short, law.shape[-1]), dim=-1).values
    if not bool((values.sum(dim=-1) >= p).all()):
        return by_sorting(law, p)
    inside = values.cumsum(dim=-1) - values < p
    return torch.where(inside, values, torch.inf).amin(dim=-1, keepdim=True)


WAYS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "sorting": by_sorting,
    "halving": by_halving,
    "asking": by_asking,
}


class Operations(TorchDispatchMode):
    """Counts the operations that torch is asked for, but for views."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


class Bench:
    """Rows of logits on one device."""

    def __init__(self, device: torch.device, *, width: int, drafted: int, repeats: int) -> None:
        self._device = device
        self._width = width
        self._drafted = drafted
        self._repeats = repeats
        generator = torch.Generator().manual_seed(1)
        noise = torch.randn(drafted + 1, width, generator=generator)
        self._rows = {
            "peaked": (6.0 * noise).to(device),
            "wide": noise.to(device),
            "in bf16": (3.0 * noise).bfloat16().float().to(device),
        }

    def verdicts(self) -> None:
        """Every rule at every sampling: a chain of guesses that were drawn."""
        for title, sampling in SAMPLINGS.items():
            law = None if sampling.greedy else warp(self._rows["wide"][1:], sampling)
            for name, rule in RULES.items():
                # At temperature 0 most rules are the greedy one, which is no other's.
                own = name == "greedy" or not rule.greedy_at_zero
                if own if sampling.greedy else name != "greedy":
                    self._show(f"{name}, {title}", partial(self._decide, name, sampling, law))

    def nuclei(self) -> None:
        """Every way to find where a nucleus ends, beside sorting."""
        for kind, logits in self._rows.items():
            law = torch.softmax(logits, dim=-1)
            kept = {name: law >= way(law, 0.9) for name, way in WAYS.items()}
            first = 0.0
            for name, way in WAYS.items():
                taken = self._show(f"nucleus, {kind}, by {name}", partial(way, law, 0.9))
                first = first or taken
                apart = int((kept[name] != kept["sorting"]).sum())
                print(f"    {taken / first:.2f}x of sorting; {apart} tokens kept otherwise")

    def _decide(self, rule: str, sampling: Sampling, law: Tensor | None) -> Any:
        draft = Draft(Block(list(range(self._drafted)), device=self._device), law)
        rows = TargetRows(self._rows["peaked"], sampling)
        draws = draws_on([0.5] * (self._drafted + 1), self._device, SharedNoise(1, 4))
        verifier = make_verifier(rule, sampling, draft_length=self._drafted)
        return bring_home(draft, rows, verifier.verify(draft, rows, draws), detail="light")

    def _show(self, title: str, work: Callable[[], Any]) -> float:
        """Prints what a piece of work costs; its median in seconds."""
        work()
        seconds = median(seconds_of(work, self._device) for _ in range(self._repeats))
        with Operations() as asked:
            work()
        kernels = f", {self._kernels(work)} kernels" if self._device.type == "cuda" else ""
        print(f"{title}: {1e6 * seconds:.0f} us, {asked.count} operations{kernels}")
        return seconds

    def _kernels(self, work: Callable[[], Any]) -> int:
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            work()
            wait(self._device)
        return sum(one.device_type == torch.autograd.DeviceType.CUDA for one in seen.events())


def main() -> None:
    """Runs every measurement and prints it."""
    asked = _arguments()
    device = torch.device(asked.device)
    facts = environment(device)
    print(f"{facts.device}, {facts.threads} threads, torch {facts.packages['torch']}")
    print(f"{asked.drafted} guesses, {asked.width} tokens, medians of {asked.repeats}")
    bench = Bench(device, width=asked.width, drafted=asked.drafted, repeats=asked.repeats)
    with torch.inference_mode():
        bench.verdicts()
        bench.nuclei()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What deciding costs apart from the models.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--width", type=int, default=151_936)
    parser.add_argument("--drafted", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=30)
    return parser.parse_args()


if __name__ == "__main__":
    main()
