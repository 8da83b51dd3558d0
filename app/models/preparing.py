"""Makes the models of a pair ready: fetch, check, choose a precision, load, prove."""

from __future__ import annotations

import torch

from app.library.catalogue import Catalogue
from app.library.entries import ModelEntry, PairEntry
from app.library.head_folder import HeadFacts, check_head, refuse_unfit
from app.library.preflight import FolderFacts, check
from app.library.sources import fetch
from app.models.draft_wish import beside, wish_draft
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
    device = choose_device(wanted.device)
    elsewhere = wanted.draft_device or (entry.draft_device if entry.draft else None)
    draft_device = choose_device(elsewhere) if elsewhere else device
    make_current(device)
    _refuse_untakable(wanted, entry, device, draft_device)
    loader = _Loader(warm, report, pause)
    target_entry = catalogue.model(entry.target)
    target_folder = loader.folder(target_entry)
    target_wish = Wish(
        target_entry.title, target_folder, wanted.precision, device, wanted.allow_offload
    )
    wished = None
    if entry.draft is not None:
        draft_entry = catalogue.model(entry.draft)
        wished = wish_draft(
            target_wish,
            loader.folder(draft_entry, needs_tokenizer=False),
            name=draft_entry.title,
            precision=wanted.draft_precision or entry.draft_precision,
            device=draft_device,
        )
    head_warnings: tuple[str, ...] = ()
    head_facts = None
    if entry.head is not None:
        head_facts = loader.head(catalogue.model(entry.head))
        unfit = refuse_unfit(head_facts, target_folder)
        head_warnings = (unfit,) if unfit else ()
    chosen = loader.make_room(target_wish, wished.wish if wished else None)
    tokenizer = loader.tokenizer(target_wish)
    target, why = loader.load(target_wish, chosen)
    loader.choose_passes(target, wanted.passes)
    warnings = (f"{target.model.precision} is {why}.",) if why else ()
    draft, bridge = None, None
    if wished is not None:
        # The same weights in the same precision are loaded once, and are both.
        draft_wish = beside(wished.wish, target.model.precision)
        draft = loader.load(draft_wish, loader.settled(draft_wish))[0]
        loader.choose_passes(draft, wanted.passes)
        bridge = wished.bridge(target, draft)
    head = warm.head(head_facts, target)
    mtp = loader.mtp(target) if wanted.mtp else None
    used = [one.model for one in (target, draft) if one is not None]
    warm.keep_if(lambda kept: kept.loaded.model in used)
    return LoadedPair(
        wanted,
        target,
        draft,
        tokenizer,
        warnings,
        wished.warnings if wished else (),
        head,
        head_warnings,
        bridge,
        mtp,
    )


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
