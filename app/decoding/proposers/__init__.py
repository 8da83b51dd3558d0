"""Whatever makes drafts: one file each, one line here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from app.decoding.contracts import Proposer
from app.decoding.draft_stop import DraftStop
from app.decoding.proposers.cascade import Cascade
from app.decoding.proposers.count_trie import CountTrie
from app.decoding.proposers.draft_head import DraftHead, HeadSetup
from app.decoding.proposers.draft_model import DraftModel, DraftSetup
from app.decoding.proposers.drawing import drawn_by
from app.decoding.proposers.early_exit import EarlyExitDraft
from app.decoding.proposers.head_tree import HeadTree
from app.decoding.proposers.in_order import InOrder
from app.decoding.proposers.intersected import Intersected
from app.decoding.proposers.ngram import Ngram
from app.decoding.proposers.nothing import Nothing
from app.decoding.proposers.one_by_one import OneByOne
from app.decoding.proposers.retokenised import Retokenised
from app.decoding.proposers.suffix import Suffix
from app.models.loaded_head import LoadedHead
from app.models.loaded_mtp import LoadedMtp
from app.models.pair import DraftWidths
from app.models.retold import Retold
from app.models.vocabulary_bridge import VocabularyBridge
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
    """None without a draft model; as all of a draft model, the target's own at an early exit."""
    widths: DraftWidths | None = None
    """None without a draft model."""
    own_widths: DraftWidths | None = None
    """The draft model's beside itself; None without one."""
    draft_context: int = 0
    """Tokens that the draft model can read, in the ids that it is given."""
    draft_room: int | None = None
    """Tokens that the draft's session holds, if that can be too few before its context is."""
    bridge: VocabularyBridge | None = None
    """Between the vocabularies of target and draft model; None without one."""
    retold: Retold | None = None
    """The text in the draft's own ids so far, for the proposer to go on with; None without a
    bridge."""
    head: LoadedHead | LoadedMtp | None = None
    width: int = 0
    """Logits a row of the target."""
    chained: bool = False
    """Whether the session that guesses may make whole chains or trees of guesses by itself."""
    shared_noise: bool = False
    """Whether guesses are drawn with the target's own noise, as the coupled rule asks."""
    stop: DraftStop | None = None
    """Ends drafts of a model or a head before their limit; None never does."""
    prompt: Sequence[int] = ()
    """The prompt's ids, for what copies from it to take in before the first round."""
    earlier: CountTrie | None = None
    """What earlier runs wrote, counted as deep as the method's option says; None for nothing."""


Options = Mapping[str, OptionValue]


def _ngram(around: Surroundings, options: Options) -> Ngram:
    return Ngram(
        shortest=int(options["shortest"]),
        longest=int(options["longest"]),
        match=str(options["match"]),
        end_ids=around.end_ids,
        device=around.device,
        prompt=around.prompt,
    )


def _suffix(around: Surroundings, options: Options) -> Proposer:
    return Suffix(
        depth=int(options["depth"]),
        factor=float(options["factor"]),
        offset=float(options["offset"]),
        least_probability=float(options["least_probability"]),
        end_ids=around.end_ids,
        earlier=around.earlier,
        device=around.device,
        prompt=around.prompt,
    )


def _draft_model(around: Surroundings, options: Options) -> Proposer:
    return DraftModel(_of_draft(around, options))


def _early_exit(around: Surroundings, options: Options) -> Proposer:
    return EarlyExitDraft(_of_draft(around, options))


def _cascade(around: Surroundings, options: Options) -> Proposer:
    return Cascade(_ngram(around, options), _of_draft(around, options))


def _of_draft(around: Surroundings, options: Options) -> DraftSetup:
    if around.widths is None or around.draft_device is None:
        raise _no_draft_model()
    return DraftSetup(
        sampling=drawn_by(around.sampling, options),
        widths=around.widths,
        context=around.draft_context,
        device=around.draft_device,
        prompt_length=around.prompt_length,
        end_ids=around.end_ids,
        shared_noise=around.shared_noise,
        stop=around.stop,
        chained=around.chained,
        room=around.draft_room,
    )


def _intersected(around: Surroundings, options: Options) -> Proposer:
    if around.bridge is None or around.retold is None:
        raise _no_draft_model()
    return Intersected(_of_draft(around, options), around.bridge, around.retold)


def _retokenised(around: Surroundings, options: Options) -> Proposer:
    own, bridge = around.own_widths, around.bridge
    if own is None or bridge is None or around.retold is None:
        raise _no_draft_model()
    made, ends = _of_draft(around, options), bridge.draft_ends

    def writer(prompt_length: int) -> OneByOne:
        # What it draws is text, not guesses: noise of its own will do.
        setup = replace(
            made, widths=own, end_ids=ends, prompt_length=prompt_length, shared_noise=False
        )
        return DraftModel(setup)

    return Retokenised(
        writer,
        bridge=bridge,
        retold=around.retold,
        device=around.device,
        prompt_length=around.prompt_length,
    )


def _head(around: Surroundings, options: Options) -> Proposer:
    return _of_head(_loaded_head(around), around, options, source="head")


def _mtp(around: Surroundings, options: Options) -> Proposer:
    if around.head is None:
        raise Problem(
            "This target's modules for multi-token prediction are not loaded.",
            "Choose another method, or a target that has such modules.",
        )
    return _of_head(around.head, around, options, source="mtp")


def _of_head(
    head: LoadedHead | LoadedMtp, around: Surroundings, options: Options, *, source: str
) -> DraftHead:
    """A chain of what guesses from the target's features."""
    return DraftHead(
        _head_setup(head, around, drawn_by(around.sampling, options)),
        length=int(options.get("head_length", 0)),
        shared_noise=around.shared_noise,
        stop=around.stop,
        source=source,
        chained=around.chained,
    )


def _head_tree(around: Surroundings, options: Options) -> Proposer:
    # The tree is of the head's own softmax: the sampling is for its penalties alone.
    return HeadTree(
        _head_setup(_loaded_head(around), around, around.sampling),
        nodes=int(options["nodes"]),
        breadth=int(options["breadth"]),
        at_once=around.chained,
    )


def _head_setup(
    head: LoadedHead | LoadedMtp, around: Surroundings, sampling: Sampling
) -> HeadSetup:
    return HeadSetup(
        sampling=sampling,
        ids=head.ids,
        width=around.width,
        prompt_length=around.prompt_length,
        end_ids=around.end_ids,
    )


def _loaded_head(around: Surroundings) -> LoadedHead | LoadedMtp:
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
    "suffix": _suffix,
    "draft-model": _draft_model,
    "cascade": _cascade,
    "early-exit": _early_exit,
    "tli": _intersected,
    "slem": _retokenised,
    "head": _head,
    "head-tree": _head_tree,
    "ngram-else-head": _ngram_else_head,
    "mtp": _mtp,
}


def make_proposer(name: str, options: Options, around: Surroundings) -> Proposer:
    """The proposer of the method `name`; options that are not given take their defaults."""
    return _MAKERS[name](around, Method.named(name).filled(options))


def _no_draft_model() -> Problem:
    return Problem("This pair has no draft model.", "Choose another method, or another pair.")
