"""A proposer of every method with the tiny models that it asks, on any device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from mtp_kinds import write_mimo_named
from torch import nn

from app.decoding.contracts import Proposer
from app.decoding.draft_stop import DraftStop
from app.decoding.drivers import Sessions
from app.decoding.proposers import Surroundings, make_proposer
from app.library.preflight import check
from app.models.early_exit import EarlyExit
from app.models.fixed.passes import Passes
from app.models.fixed.recorder import Recorder
from app.models.language_model import LanguageModel
from app.models.loaded_mtp import LoadedMtp
from app.models.pair import DraftWidths
from app.models.retold import Retold
from app.run.methods import METHODS
from app.run.settings import Sampling
from tongues import bridge, letters, pieces, write_model
from toys import tiny_head, tiny_llama, wrapped

PROMPT = [*range(62), 3, 1, 4, 1]
"""Ids behind each of which something is to be copied."""
_ROOM = 256


class WholeLanes:
    """Makes what lanes need; `place` takes a model of transformers to the device."""

    def __init__(self, home: Path, device: torch.device, place: Callable[[nn.Module], Any]) -> None:
        """Models that have to lie in a folder are written below `home`."""
        self._home = home
        self._device = device
        self._place = place

    def model(self, seed: int, *, noise: float = 0.0, vocabulary: int = 64) -> LanguageModel:
        """A random Llama on the device."""
        model = tiny_llama(seed, noise=noise, vocabulary=vocabulary)
        self._place(model.inner)
        return model

    def guessing(
        self,
        method: str,
        sampling: Sampling,
        *,
        stop: DraftStop | None = None,
        chained: bool = False,
        recorder: Callable[[], Recorder] | None = None,
    ) -> tuple[Proposer, Sessions]:
        """The proposer of a method, made as a run makes it, and the sessions that it asks; where
        guesses are to be `chained`, they read in passes of fixed shape, recorded with a `recorder`.
        """
        target, draft, beside = self.model(1), None, None
        more: dict[str, Any] = {}
        if method in ("tli", "slem"):
            between, sizes = self._tongues()
            target, draft = (self.model(1, vocabulary=size) for size in sizes)
            own = DraftWidths(sizes[1], sizes[1], sizes[1])
            more = {"bridge": between, "retold": Retold(between), "own_widths": own}
        elif method == "mtp":
            loaded = self._with_module()
            target, beside = loaded.model, LoadedMtp(loaded)
        elif "head" in method:
            beside = tiny_head(target)
        elif method == "early-exit":
            draft = target
        elif METHODS[method].drafter == "model":
            draft = self.model(1, noise=0.05)
        for model in (target, draft) if chained else ():
            if model is not None:
                model.passes = Passes("graphs" if recorder else "fixed", recorder=recorder)
        around = Surroundings(
            sampling=sampling,
            end_ids=(62, 63),
            prompt_length=len(PROMPT),
            device=self._device,
            draft_device=self._device if draft else None,
            widths=DraftWidths(target.width, target.width, target.width) if draft else None,
            draft_context=2 * _ROOM,
            width=target.width,
            prompt=PROMPT,
            head=beside,
            stop=stop,
            chained=chained,
            **more,
        )
        session = beside.open_target(_ROOM) if beside else target.open(_ROOM)
        roles: dict[Any, Any] = {"target": session}
        if method == "early-exit":
            roles["draft"] = EarlyExit(target).open(session, _ROOM)
        elif draft is not None:
            roles["draft"] = draft.open(_ROOM)
        elif beside is not None:
            roles["head"] = beside.open(session, _ROOM)
        shortest = {"shortest": 1} if "shortest" in METHODS[method].filled({}) else {}
        return make_proposer(method, shortest, around), Sessions(roles)

    def _tongues(self) -> tuple[Any, tuple[int, int]]:
        """A bridge between two vocabularies, and their sizes."""
        folders = [self._home / "letters", self._home / "pieces"]
        for folder, tokenizer in zip(folders, (letters(), pieces()), strict=True):
            if not folder.exists():
                write_model(folder, tokenizer)
        return bridge(*folders), (len(letters()), len(pieces()))

    def _with_module(self) -> Any:
        """A target with a module for multi-token prediction, in transformers' own layers."""
        folder = self._home / "mimo"
        if not folder.exists():
            write_mimo_named(folder)
        inner = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        self._place(inner)
        return SimpleNamespace(model=wrapped(inner), folder=check(folder))
