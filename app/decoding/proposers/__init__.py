"""Whatever makes drafts: one file each, one line here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import torch

from app.decoding.contracts import Proposer
from app.decoding.draft_stop import DraftStop
from app.decoding.proposers.draft_head import DraftHead
from app.decoding.proposers.draft_model import DraftModel
from app.decoding.proposers.head_tree import HeadTree
from app.decoding.proposers.in_order import InOrder
from app.decoding.proposers.ngram import Ngram
from app.decoding.proposers.nothing import Nothing
from app.models.loaded_head import LoadedHead
from app.models.pair import DraftWidths
from app.run.methods import Method
from app.run.problems import Problem
from app.run.settings import OptionValue, Sampling


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a proposer may know of the lane that it works in."""

    sampling: Sampling
    end_ids: Collection[int]
    prompt_length: int
    device: torch.device
    """The target's."""
    draft_device: torch.device | None = None
    """None without a draft model."""
    widths: DraftWidths | None = None
    """None without a draft model."""
    draft_context: int = 0
    head: LoadedHead | None = None
    width: int = 0
    """Logits a row of the target."""
    shared_noise: bool = False
    """Whether guesses are drawn with the target's own noise, as the coupled rule asks."""
    stop: DraftStop | None = None
    """Ends drafts of a model or a head before their limit; None never does."""


Options = Mapping[str, OptionValue]


def _ngram(around: Surroundings, options: Options) -> Proposer:
    return Ngram(
        shortest=int(options["shortest"]),
        longest=int(options["longest"]),
        end_ids=around.end_ids,
        device=around.device,
    )


def _draft_model(around: Surroundings, options: Options) -> Proposer:
    if around.widths is None or around.draft_device is None:
        raise Problem("This pair has no draft model.", "Choose another method, or another pair.")
    return DraftModel(
        sampling=around.sampling,
        widths=around.widths,
        context=around.draft_context,
        device=around.draft_device,
        prompt_length=around.prompt_length,
        end_ids=around.end_ids,
        shared_noise=around.shared_noise,
        stop=around.stop,
    )


def _head(around: Surroundings, options: Options) -> Proposer:
    return DraftHead(
        sampling=around.sampling,
        ids=_loaded_head(around).ids,
        width=around.width,
        prompt_length=around.prompt_length,
        end_ids=around.end_ids,
        length=int(options.get("head_length", 0)),
        shared_noise=around.shared_noise,
        stop=around.stop,
    )


def _head_tree(around: Surroundings, options: Options) -> Proposer:
    return HeadTree(
        sampling=around.sampling,
        ids=_loaded_head(around).ids,
        width=around.width,
        prompt_length=around.prompt_length,
        end_ids=around.end_ids,
        nodes=int(options["nodes"]),
        breadth=int(options["breadth"]),
    )


def _loaded_head(around: Surroundings) -> LoadedHead:
    if around.head is None:
        raise Problem(
            "This pair has no draft head.",
            "Choose another method or another pair, or train a head (`foretoken train`).",
        )
    return around.head


def _ngram_else_head(around: Surroundings, options: Options) -> Proposer:
    return InOrder([_ngram(around, options), _head(around, options)])


_MAKERS: dict[str, Callable[[Surroundings, Options], Proposer]] = {
    "nothing": lambda around, options: Nothing(),
    "ngram": _ngram,
    "draft-model": _draft_model,
    "head": _head,
    "head-tree": _head_tree,
    "ngram-else-head": _ngram_else_head,
}


def make_proposer(name: str, options: Options, around: Surroundings) -> Proposer:
    """The proposer of the method `name`; options that are not given take their defaults."""
    return _MAKERS[name](around, Method.named(name).filled(options))
