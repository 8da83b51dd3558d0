"""Models that stay loaded from one run to the next, until another pair needs others."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass

import torch

from app.library.head_folder import HeadFacts
from app.library.preflight import FolderFacts
from app.models.loaded_head import LoadedHead
from app.models.loaded_mtp import LoadedMtp
from app.models.loading import LoadedModel
from app.models.machine import release_memory
from app.models.tokenizer import Tokenizer
from app.run.settings import Precision


@dataclass(frozen=True, slots=True)
class Wish:
    """A model as it is wanted in memory."""

    name: str
    folder: FolderFacts
    precision: Precision | None
    """None leaves the choice to this machine."""
    device: torch.device
    allow_offload: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """A loaded model, and the wish that it was loaded for."""

    wish: Wish
    loaded: LoadedModel
    why: str = ""
    """Why it has its precision, where no one asked for it."""

    def answers(self, wish: Wish, precision: str | None) -> bool:
        """Whether it is what is wished for now, in this precision (None: whatever was chosen)."""
        precisions = (self.wish.precision, self.loaded.model.precision)
        return (
            self.could_answer(wish)
            and precision in precisions
            and (wish.allow_offload or not self.loaded.model.offloaded)
        )

    def could_answer(self, wish: Wish) -> bool:
        """Whether it is the same model on the same device, in whatever precision."""
        mine = self.wish
        return (mine.name, mine.folder, mine.device) == (wish.name, wish.folder, wish.device)


class WarmModels:
    """What is loaded; each model is known again by its files, its precision and its device."""

    def __init__(self) -> None:
        self._models: list[Kept] = []
        self._tokenizer: tuple[FolderFacts, Tokenizer] | None = None
        self._head: tuple[HeadFacts, LoadedHead] | None = None
        self._mtp: LoadedMtp | None = None

    @property
    def models(self) -> tuple[LoadedModel, ...]:
        """The models that are loaded."""
        return tuple(kept.loaded for kept in self._models)

    def find(self, wish: Wish, precision: str | None) -> Kept | None:
        """The model that is wished for, if it is loaded in this precision."""
        return next((kept for kept in self._models if kept.answers(wish, precision)), None)

    def add(self, kept: Kept) -> None:
        """Keeps a model that was loaded just now."""
        self._models.append(kept)

    def keep_if(self, wanted: Callable[[Kept], bool]) -> None:
        """Lets go of every model that is not wanted, and gives its memory back."""
        left = [kept for kept in self._models if wanted(kept)]
        if len(left) == len(self._models):
            return
        if self._head and self._head[1].target not in [kept.loaded.model for kept in left]:
            self._head = None
        if self._mtp and self._mtp.target not in [kept.loaded.model for kept in left]:
            self._mtp = None
        self._models = left
        collect()

    def tokenizer(self, folder: FolderFacts) -> Tokenizer:
        """The tokenizer of a folder."""
        if self._tokenizer is None or self._tokenizer[0] != folder:
            self._tokenizer = (folder, Tokenizer(folder.folder))
        return self._tokenizer[1]

    def head(self, facts: HeadFacts | None, target: LoadedModel) -> LoadedHead | None:
        """A draft head beside its target; without one, none stays loaded. Raises Problem if it is
        broken, or made for another kind of target.
        """
        if facts is None:
            self._head = None
            return None
        if self._head is None or self._head[0] != facts or self._head[1].target != target.model:
            self._head = None
            self._head = (facts, LoadedHead(facts, target.model))
        return self._head[1]

    def mtp(self, target: LoadedModel) -> LoadedMtp:
        """A target's modules for multi-token prediction, which stay as long as it does: a study may
        ask for them every other run. Raises Problem for a target without any that can be read.
        """
        if self._mtp is None or self._mtp.target != target.model:
            self._mtp = None
            self._mtp = LoadedMtp(target)
        return self._mtp

    def release(self) -> None:
        """Lets go of everything; memory is free once whoever else holds a model lets go of it."""
        self._models, self._tokenizer, self._head, self._mtp = [], None, None, None
        collect()


def collect() -> None:
    """Frees what nothing refers to any more, and gives it back to its device."""
    gc.collect()
    release_memory()
