"""What our loop costs: beside transformers' own generate, and beside the passes that it asks for.

    python -m tests.benchmarks.decoding [--precision bf16] [--tokens 64] [--pairs 7] [--device cpu]

Measures on the embedded pairs; run it alone on the machine. Prints ratios, medians and ranges.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from statistics import median
from typing import Any

import torch
import transformers

from app import files
from app.library.catalogue import load_catalogue
from app.models.machine import environment
from app.models.precision import DTYPES
from app.run.metrics import (
    decode_speed,
    phase_seconds,
    share_outside_models,
    total_seconds,
)
from app.run.preparation import Prepare
from app.run.record import Repetition, RunRecord
from app.run.settings import RunSettings, Sampling
from app.studies.workbench import Workbench
from tests.benchmarks.timing import median_interval, seconds_of

PROMPT = (
    "Write a long story about a lighthouse keeper who finds a map in a bottle. Begin with: The "
    "lighthouse keeper found a bottle, and in the bottle was a map."
)


def main() -> None:
    """Runs every measurement and prints it."""
    arguments = _arguments()
    bench = Bench(arguments.precision, arguments.device, arguments.tokens)
    facts = environment(torch.device(arguments.device or "cpu"))
    print(
        f"{facts.platform}, {facts.device}, {facts.threads} threads, "
        + ", ".join(f"{name} {version}" for name, version in facts.packages.items())
    )
    bench.against_generate(arguments.pairs)
    if arguments.only_generate:
        return
    bench.outside_models("greedy, light", "embedded", Sampling())
    nucleus = Sampling(temperature=0.8, top_p=0.9, seed=1)
    bench.outside_models("top-p 0.9, light", "embedded", nucleus)
    bench.outside_models("greedy, light", "embedded-nf4-draft", Sampling())
    bench.outside_models("top-p 0.9, light", "embedded-nf4-draft", nucleus)


class Bench:
    """The embedded pairs on a workbench, in one precision."""

    def __init__(self, precision: str, device: str | None, tokens: int) -> None:
        self._bench = Workbench(load_catalogue([files.shipped_catalogue()]))
        self._precision = precision
        self._device = device
        self._tokens = tokens

    def against_generate(self, pairs: int) -> None:
        """Plain decoding in our loop and in generate, alternated: tokens a second, as a ratio."""
        record = self._record(self._settings("embedded", Sampling(), method="nothing"))
        ids = record.prompt_ids
        ratios = []
        for pair in range(pairs):
            ways: list[Callable[[], float]] = [self._ours, lambda: self._theirs(ids)]
            first = pair % 2
            taken = {way: ways[way]() for way in (first, 1 - first)}
            ratios.append(taken[1] / taken[0])
        low, high = median_interval(ratios)
        print(
            f"plain lane / generate, {self._precision}, {self._tokens} tokens: "
            f"{median(ratios):.3f}x (95 % interval of the median {low:.3f}-{high:.3f}, "
            f"{pairs} pairs, range {min(ratios):.3f}-{max(ratios):.3f})"
        )

    def outside_models(self, title: str, pair: str, sampling: Sampling) -> None:
        """The share of a speculative round that no model call accounts for."""
        method = "ngram" if pair == "embedded" else "draft-model"
        lane = self._lane(self._settings(pair, sampling, method=method))
        phases = phase_seconds(lane)
        rounds = len(lane.rounds)
        parts = ", ".join(
            f"{name} {1000 * getattr(phases, name) / rounds:.2f}"
            for name in ("draft_prompt", "draft", "verify", "decide", "rest")
        )
        share = share_outside_models(lane) or 0.0
        print(
            f"{pair} ({method}), {title}, {self._precision}: outside model calls {share:.1%}; "
            f"ms a round: {parts}; {decode_speed(lane):.1f} tok/s"
        )

    def _ours(self) -> float:
        lane = self._lane(self._settings("embedded", Sampling(), method="nothing"))
        assert len(lane.token_ids) == self._tokens
        return total_seconds(lane) or 0.0

    def _theirs(self, ids: tuple[int, ...]) -> float:
        model = self._plain()
        model.generation_config.eos_token_id = None
        prompt = torch.tensor([ids], device=model.device)
        written: list[torch.Tensor] = []
        taken = seconds_of(lambda: written.append(self._generated(model, prompt)), model.device)
        assert written[0].shape[1] == len(ids) + self._tokens
        return taken

    @torch.inference_mode()
    def _generated(self, model: Any, prompt: torch.Tensor) -> torch.Tensor:
        return model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=self._tokens,
            do_sample=False,
            pad_token_id=0,
        )

    @cache  # noqa: B019 - there is one bench, as long as the program
    def _plain(self):
        """The model as transformers alone runs it: nothing packed, its own pass."""
        wanted = Prepare("embedded", self._precision, None, self._device)  # type: ignore[arg-type]
        pair = self._bench.loaded(wanted, report=lambda progress: None, pause=lambda: None)
        target = pair.target.model
        if not target.kernel:
            return target.inner
        dtype = DTYPES[target.precision]
        return transformers.AutoModelForCausalLM.from_pretrained(target.folder, dtype=dtype).eval()

    def _settings(self, pair: str, sampling: Sampling, *, method: str) -> RunSettings:
        return RunSettings(
            pair=pair,
            prompt=PROMPT,
            method=method,
            sampling=sampling,
            max_new_tokens=self._tokens,
            ignore_end_of_text=True,
            precision=self._precision,  # type: ignore[arg-type]
            device=self._device,
            baseline=False,
        )

    def _lane(self, settings: RunSettings) -> Repetition:
        return self._record(settings).repetitions("speculative")[0]

    def _record(self, settings: RunSettings) -> RunRecord:
        events: list = []
        self._bench.run(
            "bench",
            settings,
            emit=events.append,
            report=lambda progress: None,
            pause=lambda: None,
        )
        record = RunRecord.begin(events[0])
        for event in events:
            record.apply(event)
        return record


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--device", default=None)
    parser.add_argument("--only-generate", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
