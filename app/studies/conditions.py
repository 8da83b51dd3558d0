"""What the machine did while the lanes ran, and the flags that this raises.

Looked at between lanes, never inside one: what is read costs time. Load is a difference of
counters, so that nothing that happened in between is missed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import psutil
import torch

from app.models.card import CardState, card_state
from app.models.language_model import LanguageModel
from app.run.flags import Flag
from app.run.sizes import bytes_in_words

FALL = 0.15
"""A clock that falls by more than this share of its highest was lowered."""

OTHER_LOAD = 0.10
"""Other programs may use so much of a processor, or of a card, before a run is flagged."""

SLIP_S = 2.0
"""The clock on the wall may run so much ahead of the other, or behind, between two looks."""

HELD = 0.10
"""Where a card's load by others cannot be read: the share of its memory that they may hold."""


@dataclass(frozen=True)
class Moment:
    """The machine at one moment; None for what cannot be read."""

    seconds: float = 0.0
    """On a clock that never goes back, which all figures are timed by."""
    wall: float = 0.0
    """On the clock on the wall, which goes on while a machine sleeps, and can be set."""
    busy: float = 0.0
    """Processor seconds that all programs have used since the machine started."""
    own: float = 0.0
    """Processor seconds that this program's processes have used."""
    clock_mhz: float | None = None
    """Of the processor's fastest core."""
    plugged: bool | None = None
    """Whether the machine has mains; None where it has no battery."""
    cards: tuple[CardState, ...] = ()
    """Every card that a model of the run lies on."""


@dataclass
class Conditions:
    """Watches the machine during one run."""

    look: Callable[[], Moment]
    processors: int
    models: tuple[LanguageModel, ...] = ()
    card_bytes: tuple[int, ...] = ()
    """Memory of each card that a model lies on."""
    on_cpu: bool = True
    """Whether one of the models is computed by the processor."""
    _seen: list[Moment] = field(default_factory=list)

    def sample(self) -> None:
        """Looks at the machine now: before the first lane, and at each lane's end."""
        self._seen.append(self.look())

    def flags(self) -> tuple[Flag, ...]:
        """Everything that figures of this run have to be read with in mind."""
        cards = range(len(self.card_bytes))
        found = [
            _battery(self._seen),
            *(self._card_throttled(number) for number in cards),
            _throttled(self._seen) if self.on_cpu else None,
            _slept(self._seen),
            *(self._card_load(number) for number in cards),
            self._processor_load() if self.on_cpu else None,
            _offloaded(self.models),
        ]
        return tuple(flag for flag in found if flag is not None)

    def _processor_load(self) -> Flag | None:
        if len(self._seen) < 2:
            return None
        first, last = self._seen[0], self._seen[-1]
        others = (last.busy - first.busy) - (last.own - first.own)
        share = others / max((last.seconds - first.seconds) * self.processors, 1e-9)
        if share <= OTHER_LOAD:
            return None
        return Flag("other load", f"other programs took {100 * share:.0f} % of the processor")

    def _card_throttled(self, number: int) -> Flag | None:
        seen = [moment.cards[number] for moment in self._seen]
        reasons = dict.fromkeys(reason for card in seen for reason in card.throttled_by)
        return Flag("throttled", f"by {' and '.join(reasons)}") if reasons else None

    def _card_load(self, number: int) -> Flag | None:
        cards = [moment.cards[number] for moment in self._seen]
        used = [card.used_elsewhere for card in cards if card.used_elsewhere is not None]
        if used:
            if max(used) <= OTHER_LOAD:
                return None
            return Flag("other load", f"another program used {100 * max(used):.0f} % of the card")
        held = max((card.held_elsewhere or 0 for card in cards), default=0)
        if held <= HELD * self.card_bytes[number]:
            return None
        return Flag(
            "other load", f"other programs hold {bytes_in_words(held)} of the card's memory"
        )


_UNTOLD = (AttributeError, OSError, NotImplementedError, RuntimeError)
"""What psutil raises where a system does not tell: a container without /sys, say."""


def watch(devices: Sequence[torch.device], models: tuple[LanguageModel, ...]) -> Conditions:
    """A watch over this machine for a run of these models, which lie on these devices."""
    cards = [device for device in devices if device.type == "cuda"]
    return Conditions(
        look=lambda: look(cards),
        processors=psutil.cpu_count() or 1,
        models=models,
        card_bytes=tuple(torch.cuda.get_device_properties(card).total_memory for card in cards),
        on_cpu=len(cards) < len(devices),
    )


def look(cards: Sequence[torch.device] = ()) -> Moment:
    """This machine now, with the state of these cards."""
    times = psutil.cpu_times()._asdict()
    counted = ("user", "nice", "system", "irq", "softirq", "interrupt", "dpc")
    return Moment(
        seconds=time.perf_counter(),
        wall=time.time(),
        busy=sum(times.get(name, 0.0) for name in counted),
        own=_own_seconds(),
        clock_mhz=_clock_mhz(),
        plugged=_plugged(),
        cards=tuple(map(card_state, cards)),
    )


def _own_seconds() -> float:
    """Processor seconds of this process, its children, and the window that started it."""
    roots = [psutil.Process()]
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid:
        with contextlib.suppress(psutil.Error):  # a window that has just ended
            roots.append(psutil.Process(parent.pid))
    family = {process.pid: process for root in roots for process in [root, *_children(root)]}
    total = 0.0
    for process in family.values():
        with contextlib.suppress(psutil.Error):  # one that has just ended
            times = process.cpu_times()
            total += times.user + times.system
    return total


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _clock_mhz() -> float | None:
    """The clock of the fastest core; one that idles says nothing of those that work."""
    try:
        clocks = [core.current for core in psutil.cpu_freq(percpu=True)]
    except _UNTOLD:
        return None
    return max(clocks, default=0.0) or None


def _plugged() -> bool | None:
    try:
        battery = psutil.sensors_battery()
    except _UNTOLD:
        return None
    return None if battery is None else battery.power_plugged


def _battery(seen: list[Moment]) -> Flag | None:
    return Flag("battery") if any(moment.plugged is False for moment in seen) else None


def _slept(seen: list[Moment]) -> Flag | None:
    """A gap between two looks that both clocks do not tell alike."""
    slips = [
        (later.wall - earlier.wall) - (later.seconds - earlier.seconds)
        for earlier, later in pairwise(seen)
    ]
    slip = max(slips, key=abs, default=0.0)
    if abs(slip) <= SLIP_S:
        return None
    way = "ahead" if slip > 0 else "back"
    return Flag("slept", f"its clock went {abs(slip):.0f} s {way} beside the one that times runs")


def _throttled(seen: list[Moment]) -> Flag | None:
    """A clock that fell between ends of lanes, at which the processor has just been at work."""
    clocks = [moment.clock_mhz for moment in seen[1:] if moment.clock_mhz is not None]
    high = max(clocks, default=0.0)
    after = clocks[clocks.index(high) :] if clocks else []
    low = min(after, default=0.0)
    if not high or low >= (1.0 - FALL) * high:
        return None
    return Flag("throttled", f"its clock fell from {high:.0f} to {low:.0f} MHz")


def _offloaded(models: tuple[LanguageModel, ...]) -> Flag | None:
    shares = {model.name: model.offloaded for model in models if model.offloaded}
    if not shares:
        return None
    told = (f"{100 * share:.0f} % of the weights of {name}" for name, share in shares.items())
    return Flag("offloaded", " and ".join(told))
