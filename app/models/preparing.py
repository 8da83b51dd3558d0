"""Makes the models of a pair ready: fetch, check, choose a precision, load, prove."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast, get_args

import torch

from app.library.catalogue import Catalogue
from app.library.compatibility import compare
from app.library.entries import ModelEntry, PairEntry
from app.library.head_folder import HeadFacts, check_head, refuse_unfit
from app.library.preflight import FolderFacts, check
from app.library.sources import fetch
from app.models.loaded_head import LoadedHead
from app.models.loading import LoadedModel, load
from app.models.machine import choose_device, make_current
from app.models.pair import LoadedPair
from app.models.precision import settle_precision, why_not
from app.models.tokenizer import Tokenizer
from app.run.events import Progress
from app.run.preparation import Prepare
from app.run.problems import Problem
from app.run.settings import Precision

Report = Callable[[Progress], None]
Pause = Callable[[], None]


def load_pair(
    catalogue: Catalogue, entry: PairEntry, wanted: Prepare, *, report: Report, pause: Pause
) -> LoadedPair:
    """The pair, loaded and proven. Raises Problem if it cannot be, Cancelled when `pause` does."""
    device = choose_device(wanted.device)
    make_current(device)
    _refuse_untakable(wanted, entry, device)
    loader = _Loader(device, report, pause)
    target_entry = catalogue.model(entry.target)
    target_folder = loader.folder(target_entry)
    draft_warnings: tuple[str, ...] = ()
    draft_folder = None
    if entry.draft is not None:
        draft_folder = loader.folder(catalogue.model(entry.draft), needs_tokenizer=False)
        draft_warnings = _compatible(target_folder, draft_folder)
    head_warnings: tuple[str, ...] = ()
    head_facts = None
    if entry.head is not None:
        head_facts = loader.head(catalogue.model(entry.head))
        unfit = refuse_unfit(head_facts, target_folder)
        head_warnings = (unfit,) if unfit else ()
    tokenizer = Tokenizer(target_folder.folder)
    target, why = loader.load(target_entry, target_folder, wanted.precision)
    warnings = (f"{target.model.precision} is {why}.",) if why else ()
    draft = None
    if entry.draft is not None and draft_folder is not None:
        precision = wanted.draft_precision or entry.draft_precision
        draft_entry = catalogue.model(entry.draft)
        draft = loader.load_beside(target, draft_entry, draft_folder, wanted=precision)
    head = LoadedHead(head_facts, target.model) if head_facts else None
    return LoadedPair(
        wanted, target, draft, tokenizer, warnings, draft_warnings, head, head_warnings
    )


class _Loader:
    """Loads models onto one device, telling how far it has come."""

    def __init__(self, device: torch.device, report: Report, pause: Pause) -> None:
        self._device = device
        self._report = report
        self._pause = pause

    def folder(self, entry: ModelEntry, *, needs_tokenizer: bool = True) -> FolderFacts:
        """The model's folder, fetched if need be, and checked."""
        folder = fetch(entry, self._report, pause=self._pause)
        return check(folder, needs_tokenizer=needs_tokenizer)

    def head(self, entry: ModelEntry) -> HeadFacts:
        """The facts of a draft head, fetched if need be."""
        return check_head(fetch(entry, self._report, pause=self._pause))

    def load(
        self, entry: ModelEntry, folder: FolderFacts, precision: Precision | None
    ) -> tuple[LoadedModel, str]:
        """The loaded model, and why it has its precision if no one asked for it."""
        settled, why = settle_precision(folder, precision, self._device)
        try:
            return self._loaded(entry, folder, settled), why
        except Problem as refusal:
            # A card whose 4-bit library is broken shows it only now.
            open_ = precision is None and folder.quantised is None
            if not open_ or settled != "nf4" or self._device.type == "cpu":
                raise
            return self._loaded(entry, folder, "bf16"), f"used, as nf4 failed: {refusal.message}"

    def _loaded(self, entry: ModelEntry, folder: FolderFacts, precision: str) -> LoadedModel:
        self._report(Progress(f"loading {entry.title} in {precision}"))
        return load(
            folder, name=entry.title, precision=precision, device=self._device, pause=self._pause
        )

    def load_beside(
        self,
        target: LoadedModel,
        entry: ModelEntry,
        folder: FolderFacts,
        *,
        wanted: Precision | None,
    ) -> LoadedModel:
        """The draft model, in the target's precision unless another is wanted.

        The target itself if it is the same weights in the same precision.
        """
        beside = target.model.precision
        if wanted is None and folder.quantised is None and beside in get_args(Precision):
            wanted = cast(Precision, beside)
        settled = settle_precision(folder, wanted, self._device)[0]
        if folder.folder == target.folder.folder and settled == beside:
            return target
        return self.load(entry, folder, wanted)[0]


def _refuse_untakable(wanted: Prepare, entry: PairEntry, device: torch.device) -> None:
    """Raises Problem for a precision that the device cannot take, before anything is fetched."""
    asked = [wanted.precision]
    if entry.draft is not None:
        asked.append(wanted.draft_precision)
    for precision in asked:
        refusal = why_not(precision, device) if precision is not None else None
        if refusal is not None:
            raise refusal


def _compatible(target: FolderFacts, draft: FolderFacts) -> tuple[str, ...]:
    """What to know of the two together. Raises Problem if their ids mean different tokens."""
    found = compare(target.folder, draft.folder)
    if found.verdict == "refused":
        raise Problem(
            f"These two models cannot work as a pair: {found.reason}",
            "Choose a draft model of the target's own family, or the n-gram method.",
        )
    return found.warnings
