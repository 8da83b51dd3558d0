"""Whether a run fits into the memory that is free, and the cheapest change that makes it fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import msgspec

from app.library.device_precision import NONE_REFUSED, Refused, takes
from app.library.memory import Held, Plan, estimate
from app.library.model_size import ModelSize
from app.run.preparation import DeviceMemory
from app.run.settings import Precision
from app.run.sizes import bytes_in_words

Verdict = Literal["fits", "tight", "does not fit"]
"""`tight`: it fits, but takes nearly all that is free."""

_TIGHT = 0.9
"""The share of the free memory from which on a run is tight."""
_SHORTEST = 512
"""Tokens below which no shorter context is proposed."""
_SMALLER: tuple[Precision, ...] = ("fp32", "bf16", "nf4")
"""Precisions to be proposed, each smaller than the one before."""


class Fit(msgspec.Struct, frozen=True):
    """How a run stands to the memory that is free."""

    verdict: Verdict
    held: tuple[Held, ...]
    devices: tuple[DeviceMemory, ...]
    """Those that the run uses, in the same order; one that is not known is left out."""
    change: str = ""
    """What would make it fit, at the least cost; empty where it fits, or where nothing would."""

    @property
    def sentence(self) -> str:
        """The verdict, what it rests on, and what to do."""
        if not self.devices:
            needs = bytes_in_words(sum(one.total for one in self.held))
            return f"Needs {needs}; what is free is not known."
        needs = "; ".join(_need(held, device) for held, device in _pairs(self.held, self.devices))
        if self.verdict == "fits":
            return f"Fits: {needs}."
        if self.verdict == "tight":
            return f"Tight: {needs}. Close other programs if it fails."
        way = f"It would fit with {self.change}." if self.change else "Choose a smaller model."
        return f"Does not fit: {needs}. {way}"


def fit(
    plan: Plan,
    devices: Sequence[DeviceMemory],
    *,
    refused: Refused = NONE_REFUSED,
) -> Fit:
    """The verdict on a plan, beside what is free on these devices. Nothing is proposed that a
    device is known to refuse.
    """
    held = estimate(plan)
    verdict = _verdict(held, devices)
    used = tuple(device for _, device in _pairs(held, devices))
    change = ""
    if verdict == "does not fit":
        change = next(
            (
                words
                for words, other in _changes(plan, devices, refused)
                if _verdict(estimate(other), devices) != "does not fit"
            ),
            "",
        )
    return Fit(verdict, held, used, change)


def numbered(device: str) -> str:
    """A device by the name that machines tell it by: "cuda" means the first card."""
    return "cuda:0" if device == "cuda" else device


def _verdict(held: Sequence[Held], devices: Sequence[DeviceMemory]) -> Verdict:
    """The worst of all devices; one that is not known is taken to have room."""
    shares = [one.total / max(device.free_bytes, 1) for one, device in _pairs(held, devices)]
    worst = max(shares, default=0.0)
    return "does not fit" if worst > 1 else "tight" if worst > _TIGHT else "fits"


def _pairs(
    held: Sequence[Held], devices: Sequence[DeviceMemory]
) -> list[tuple[Held, DeviceMemory]]:
    """What is held on each device that is known; "cuda" means the first card."""
    known = {device.name: device for device in devices}
    asked = [(one, numbered(one.device)) for one in held]
    return [(one, known[name]) for one, name in asked if name in known]


def _changes(
    plan: Plan, devices: Sequence[DeviceMemory], refused: Refused
) -> Iterator[tuple[str, Plan]]:
    """What a person could change instead, in words, the cheapest to them first."""
    replace = msgspec.structs.replace
    tokens = min(plan.tokens, plan.target.shape.context_length or plan.tokens)
    while tokens // 2 >= _SHORTEST:
        tokens //= 2
        yield f"a context of {tokens:,} tokens", replace(plan, tokens=tokens)
    shortest = replace(plan, tokens=tokens)
    beside = f" and a context of {tokens:,} tokens" if tokens < plan.tokens else ""
    if plan.baseline and plan.at_once:
        yield (
            "a run in the terminal, whose lanes go one after the other",
            replace(plan, at_once=False),
        )
    targets = [
        one for one in _below(plan.target, plan.precision) if takes(plan.device, one, refused)
    ]
    drafts = [
        one
        for one in (_below(plan.draft, plan.draft_precision) if plan.draft else ())
        if takes(plan.drafts_on, one, refused)
    ]
    for precision in drafts:
        yield (
            f"the draft model in {precision}",
            replace(plan, draft_precision=precision),
        )
    for precision in targets:
        yield f"the target in {precision}", replace(plan, precision=precision)
        yield f"the target in {precision}{beside}", replace(shortest, precision=precision)
    for precision in targets if "nf4" in drafts else ():
        smallest = replace(shortest, precision=precision, draft_precision="nf4")
        yield f"the target in {precision}, the draft model in nf4{beside}", smallest
    asked = {plan.precision, plan.draft_precision} if plan.draft else {plan.precision}
    for device in devices:
        there = all(takes(device.name, one, refused) for one in asked)
        if device.name != plan.device and there:
            yield f"the device {device.name}", replace(plan, device=device.name, draft_device="")


def _below(size: ModelSize, precision: Precision) -> tuple[Precision, ...]:
    """The smaller precisions that a model can be held in; none for weights that stay as they are,
    and no second quantisation for those that are widened.
    """
    if size.held is not None:
        return ()
    twice = ("nf4",) if size.quantised is not None else ()
    order = [one for one in _SMALLER if one in get_args(Precision) and one not in twice]
    sizes: dict[str, int] = {"fp32": 0, "nf4": 2, "fp4": 2}
    place = sizes.get(precision, 1)
    return tuple(order[place + 1 :])


def _need(held: Held, device: DeviceMemory) -> str:
    needs, free = bytes_in_words(held.total), bytes_in_words(device.free_bytes)
    said = f"{needs} of {free} that are free on {device.title}"
    if not device.ours_bytes:
        return said
    ours = bytes_in_words(device.ours_bytes)
    return (
        f"{said}, counting {ours} of models loaded now, which are let go where they are in the way"
    )
