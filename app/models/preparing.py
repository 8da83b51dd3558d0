"""Makes the models of a pair ready: fetch, check, choose a precision, load, prove."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from app.library.catalogue import Catalogue
from app.library.entries import ModelEntry, PairEntry
from app.library.head_folder import HeadFacts, check_head, refuse_unfit
from app.library.preflight import FolderFacts, check
from app.library.sources import fetch
from app.models.draft_wish import WishedDraft, beside, wish_draft
from app.models.fixed.choice import choose_passes
from app.models.loaded_mtp import LoadedMtp
from app.models.loading import LoadedModel, load
from app.models.machine import choose_device, make_current
from app.models.pair import LoadedPair
from app.models.precision import settle_precision, why_not
from app.models.stages import Pause, Report, Stages
from app.models.tokenizer import Tokenizer
from app.models.warm import Kept, WarmModels, Wish
from app.run.preparation import Prepare
from app.run.problems import Damaged, DoesNotFit, Problem, release_frames
from app.run.settings import PassKind

Settled = tuple[str, str]
"""A precision, and why it is that one if no one asked for it."""


def load_pair(
    catalogue: Catalogue,
    entry: PairEntry,
    wanted: Prepare,
    *,
    warm: WarmModels,
    report: Report,
    pause: Pause,
) -> LoadedPair:
    """The pair, loaded and proven; what is warm and fits is used, and all else is let go first.

    Raises Problem if it cannot be, Cancelled when `pause` does.
    """
    devices = _devices(entry, wanted)
    make_current(devices[0])
    _refuse_untakable(wanted, entry, *devices)
    loader = _Loader(warm, report, pause)
    wishes = _wishes(catalogue, entry, wanted, loader=loader, devices=devices)
    wished = wishes.draft
    chosen = loader.make_room(wishes.target, wished.wish if wished else None)
    tokenizer = loader.tokenizer(wishes.target)
    target, why = loader.load(wishes.target, chosen)
    loader.choose_passes(target, wanted.passes)
    draft = loader.draft(wished, target, wanted.passes) if wished else None
    bridge = wished.bridge(target, draft) if wished and draft else None
    head = warm.head(wishes.head, target)
    mtp = loader.mtp(target) if wanted.mtp else None
    used = [one.model for one in (target, draft) if one is not None]
    warm.keep_if(lambda kept: kept.loaded.model in used)
    return LoadedPair(
        wanted,
        target,
        draft,
        tokenizer,
        warnings=(f"{target.model.precision} is {why}.",) if why else (),
        draft_warnings=wished.warnings if wished else (),
        head=head,
        head_warnings=(wishes.head_warning,) if wishes.head_warning else (),
        bridge=bridge,
        mtp=mtp,
    )


@dataclass(frozen=True, slots=True)
class _Wishes:
    """What a pair is to be made of: its files are on this machine, and go together."""

    target: Wish
    draft: WishedDraft | None
    head: HeadFacts | None
    head_warning: str
    """What to know of head and target together; empty for nothing."""


def _devices(entry: PairEntry, wanted: Prepare) -> tuple[torch.device, torch.device]:
    """The target's device, and the draft model's."""
    device = choose_device(wanted.device)
    elsewhere = wanted.draft_device or (entry.draft_device if entry.draft else None)
    return device, choose_device(elsewhere) if elsewhere else device


def _wishes(
    catalogue: Catalogue,
    entry: PairEntry,
    wanted: Prepare,
    *,
    loader: _Loader,
    devices: tuple[torch.device, torch.device],
) -> _Wishes:
    """Fetches and checks what the pair names, for the devices of target and draft model. Raises
    Problem for what cannot work together.
    """
    model = catalogue.model(entry.target)
    folder = loader.folder(model)
    target = Wish(model.title, folder, wanted.precision, devices[0], wanted.allow_offload)
    draft = None
    if entry.draft is not None:
        model = catalogue.model(entry.draft)
        draft = wish_draft(
            target,
            loader.folder(model, needs_tokenizer=False),
            name=model.title,
            precision=wanted.draft_precision or entry.draft_precision,
            device=devices[1],
        )
    head = loader.head(catalogue.model(entry.head)) if entry.head is not None else None
    return _Wishes(target, draft, head, refuse_unfit(head, folder) if head else "")


class _Loader:
    """Loads models beside those that are warm, telling how far it has come."""

    def __init__(self, warm: WarmModels, report: Report, pause: Pause) -> None:
        self._warm = warm
        self._report = report
        self._pause = pause
        self._stages = Stages(report, pause)

    def folder(self, entry: ModelEntry, *, needs_tokenizer: bool = True) -> FolderFacts:
        """The model's folder, fetched if need be, and checked."""
        folder = fetch(entry, self._report, pause=self._pause)
        self._stages.begin(f"checking {entry.title}")
        return check(folder, needs_tokenizer=needs_tokenizer)

    def head(self, entry: ModelEntry) -> HeadFacts:
        """The facts of a draft head, fetched if need be."""
        return check_head(fetch(entry, self._report, pause=self._pause))

    def mtp(self, target: LoadedModel) -> LoadedMtp:
        """The target's modules for multi-token prediction."""
        self._stages.begin(f"reading the MTP modules of {target.model.name}")
        return self._warm.mtp(target)

    def tokenizer(self, wish: Wish) -> Tokenizer:
        """The tokenizer of a model."""
        self._stages.begin(f"reading the tokenizer of {wish.name}")
        return self._warm.tokenizer(wish.folder)

    def make_room(self, target: Wish, draft: Wish | None) -> Settled:
        """Lets go of what neither of two wishes needs, before anything new is loaded; what the
        target's precision is to be.
        """
        wishes = [target, *([draft] if draft else [])]
        # What is free decides the precision, so that the certainly unneeded goes first.
        self._warm.keep_if(lambda kept: any(map(kept.could_answer, wishes)))
        chosen = self.settled(target)
        needed = [(target, chosen[0])]
        if draft is not None:
            draft = beside(draft, chosen[0])
            needed.append((draft, self.settled(draft)[0]))
        self._warm.keep_if(lambda kept: any(kept.answers(*one) for one in needed))
        return chosen

    def load(self, wish: Wish, chosen: Settled) -> tuple[LoadedModel, str]:
        """The loaded model, and why it has its precision if no one asked for it."""
        precision, why = chosen
        kept = self._warm.find(wish, precision)
        if kept is not None:
            return kept.loaded, why
        try:
            loaded = self._loaded(wish, precision)
        except Problem as refusal:
            # A card whose 4-bit library is broken shows it only now.
            open_ = wish.precision is None and wish.folder.quantised is None
            if not open_ or precision != "nf4" or wish.device.type == "cpu":
                raise
            if _hopeless(refusal, wish):
                raise
            release_frames(refusal)
            why = f"used, as nf4 failed: {refusal.message}"
            loaded = self._loaded(wish, "bf16")
        self._warm.add(Kept(wish, loaded, why))
        return loaded, why

    def draft(self, wished: WishedDraft, target: LoadedModel, passes: PassKind) -> LoadedModel:
        """The loaded draft model of a target. The same weights in the same precision are loaded
        once, and are both.
        """
        wish = beside(wished.wish, target.model.precision)
        loaded, _ = self.load(wish, self.settled(wish))
        self.choose_passes(loaded, passes)
        return loaded

    def choose_passes(self, loaded: LoadedModel, wanted: PassKind) -> None:
        """How the model's passes are computed; what has to be proved for that is tried."""
        model = loaded.model
        self._stages.begin(f"choosing how the passes of {model.name} are computed")
        choose_passes(model, wanted, ask=self._stages.ask)

    def settled(self, wish: Wish) -> Settled:
        """The precision of a wish, and why it is that one if no one asked for it."""
        kept = self._warm.find(wish, wish.precision)
        if kept is not None:
            return kept.loaded.model.precision, "" if wish.precision else kept.why
        return settle_precision(wish.folder, wish.precision, wish.device)

    def _loaded(self, wish: Wish, precision: str) -> LoadedModel:
        return load(
            wish.folder,
            name=wish.name,
            precision=precision,
            device=wish.device,
            allow_offload=wish.allow_offload,
            stages=self._stages,
        )


def _hopeless(refusal: Problem, wish: Wish) -> bool:
    """Whether what failed in nf4 must fail in bf16 too, which is larger but can be offloaded."""
    if isinstance(refusal, DoesNotFit):
        return not wish.allow_offload
    return isinstance(refusal, Damaged)


def _refuse_untakable(
    wanted: Prepare, entry: PairEntry, device: torch.device, draft_device: torch.device
) -> None:
    """Raises Problem for a precision that its device cannot take, before anything is fetched."""
    asked = [(wanted.precision, device)]
    if entry.draft is not None:
        asked.append((wanted.draft_precision or entry.draft_precision, draft_device))
    for precision, device in asked:
        refusal = why_not(precision, device) if precision is not None else None
        if refusal is not None:
            raise refusal
