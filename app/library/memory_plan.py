"""From a pair of the catalogue and what is asked of it to a plan whose memory can be computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import msgspec

from app.library.catalogue import Catalogue
from app.library.device_precision import (
    NONE_REFUSED,
    Refused,
    default_precision,
    device_kind,
    takes,
)
from app.library.entries import FolderSource, ModelEntry, PairEntry, WheelSource
from app.library.head_folder import check_head
from app.library.head_size import HeadSize
from app.library.local_folder import find_on_disk
from app.library.memory import DEVICE_KINDS, Plan
from app.library.model_size import ModelSize, size_of, size_of_shape
from app.library.sources import look
from app.library.wheel import member_here
from app.run.methods import Method
from app.run.preparation import DeviceMemory
from app.run.problems import Problem
from app.run.settings import OptionValue, PassKind, Precision
from app.run.tree_shape import shape_of


class PairSizes(msgspec.Struct, frozen=True):
    """A pair, and the sizes of its models: what is read from files once."""

    entry: PairEntry
    target: ModelSize
    draft: ModelSize | None
    head: HeadSize | None
    same_weights: bool


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a pair, as far as memory depends on it; None leaves it to the machine."""

    tokens: int
    """Of prompt and text together."""
    precision: Precision | None = None
    draft_precision: Precision | None = None
    device: str | None = None
    draft_device: str | None = None
    method: str | None = None
    """None: the pair's own."""
    method_options: dict[str, OptionValue] = {}
    """Those that are not as the method has them."""
    draft_length: int | None = None
    passes: PassKind = "auto"
    baseline: bool = True
    at_once: bool = True


def sizes_of(catalogue: Catalogue, pair: str) -> PairSizes:
    """The sizes of a pair. Raises Problem for an unknown pair, and for sizes that no one tells."""
    entry = catalogue.pair(pair)
    target = catalogue.model(entry.target)
    draft = catalogue.model(entry.draft) if entry.draft else None
    folder = look(catalogue.model(entry.head)) if entry.head else None
    return PairSizes(
        entry,
        model_size(target),
        model_size(draft) if draft else None,
        check_head(folder).size if folder else None,
        same_weights=draft is not None and draft.source == target.source,
    )


def plan_of(
    sizes: PairSizes,
    wish: Wish,
    devices: Sequence[DeviceMemory],
    *,
    refused: Refused = NONE_REFUSED,
) -> Plan:
    """The plan of a wish; what it leaves open is chosen as the engine would choose it, which takes
    nothing that a device is known to refuse. Raises Problem for a device or a method that no
    machine has.
    """
    for asked in (wish.device, wish.draft_device):
        if asked is not None and device_kind(asked) not in DEVICE_KINDS:
            raise Problem(f"{asked!r} is no device.", "Use cpu, cuda, cuda:1 or mps.")
    entry = sizes.entry
    method = Method.named(wish.method or entry.method)
    device = wish.device or (devices[0].name if devices else "cpu")
    elsewhere = wish.draft_device or entry.draft_device
    choice = _Choice(devices, refused)
    precision = wish.precision or choice.alone(sizes.target, device)
    draft_precision = wish.draft_precision or entry.draft_precision
    if draft_precision is None and sizes.draft is not None:
        named = sizes.target.held in (None, *get_args(Precision))
        draft_precision = choice.beside(
            precision if named else None, sizes.draft, elsewhere or device
        )
    return Plan(
        target=sizes.target,
        precision=precision,
        device=device,
        draft=sizes.draft,
        draft_precision=draft_precision or precision,
        draft_device=elsewhere or "",
        same_weights=sizes.same_weights,
        head=sizes.head,
        drafter=method.drafter,
        any_vocabulary=method.any_vocabulary,
        tree=shape_of(method.name, wish.method_options),
        tokens=wish.tokens,
        draft_length=entry.draft_length if wish.draft_length is None else wish.draft_length,
        passes=wish.passes,
        baseline=wish.baseline,
        at_once=wish.at_once,
    )


def model_size(entry: ModelEntry) -> ModelSize:
    """A model's sizes: from its files, else from its GGUF file, else from the catalogue.

    Raises Problem where none of these tells them.
    """
    folder = look(entry)
    if folder is not None:
        return size_of(folder)
    source = entry.source
    if isinstance(source, FolderSource):
        return size_of(find_on_disk(source.path))
    member = member_here(source) if isinstance(source, WheelSource) else None
    if member is not None:
        return size_of(member)
    if entry.shape is not None:
        return size_of_shape(entry.shape)
    raise Problem(
        f"{entry.title} is not on this machine, and the catalogue does not say its sizes.",
        f"Fetch it (`foretoken models fetch {entry.name}`): then they are known.",
    )


class _Choice:
    """Precisions that no one asked for."""

    def __init__(self, devices: Sequence[DeviceMemory], refused: Refused) -> None:
        self._free = {one.name: one.free_bytes for one in devices}
        self._refused = refused

    def beside(self, target: Precision | None, draft: ModelSize, device: str) -> Precision:
        """A draft model's: the target's if that has one of ours, unless the draft's own is fixed,
        or its device does not take the target's.
        """
        if target is None or draft.quantised is not None:
            return self.alone(draft, device)
        return target if takes(device, target, self._refused) else self.alone(draft, device)

    def alone(self, size: ModelSize, device: str) -> Precision:
        """A model's own: what its folder holds, else the default of the machine; where the folder
        holds none of ours, what is computed in.
        """
        if size.quantised is not None:
            return next((one for one in get_args(Precision) if one == size.held), "bf16")
        return default_precision(
            device_kind(device),
            size.shape.parameters,
            is_taken=lambda precision: takes(device, precision, self._refused),
            free_bytes=self._free.get(device),
        )
