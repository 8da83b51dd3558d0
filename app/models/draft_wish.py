"""What is wished for as the draft model of a target: which weights, and what the two are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast, get_args

import torch

from app.library.compatibility import report
from app.library.preflight import FolderFacts
from app.models.loading import LoadedModel
from app.models.precision import why_not
from app.models.vocabulary_bridge import VocabularyBridge
from app.models.warm import Wish
from app.run.problems import Problem
from app.run.settings import Precision


@dataclass(frozen=True, slots=True)
class WishedDraft:
    """A draft model as it is wanted, and what is known of it beside its target."""

    wish: Wish
    folder: FolderFacts
    """Its own, also where the wish is for the target's very weights."""
    warnings: tuple[str, ...]
    differs: str
    """Where the vocabularies do, in a sentence; empty for one vocabulary."""

    def bridge(self, target: LoadedModel, draft: LoadedModel) -> VocabularyBridge:
        """What lies between the vocabularies of the two, loaded."""
        return VocabularyBridge(
            target.folder,
            self.folder,
            target_rows=min(target.model.width, target.model.rows),
            draft_rows=min(draft.model.width, draft.model.rows),
            differs=self.differs,
        )


def wish_draft(
    target: Wish,
    folder: FolderFacts,
    *,
    name: str,
    precision: Precision | None,
    device: torch.device,
) -> WishedDraft:
    """The wish for the draft model of a folder. Raises Problem if not even plain decoding can use
    the two.
    """
    found = report(target.folder.folder, folder.folder)
    if not found.fits and not found.writes_plainly:
        raise Problem(f"These two models cannot work as a pair: {found.reason}", found.remedy)
    same = folder.folder == target.folder.folder
    wish = Wish(
        target.name if same else name,
        target.folder if same else folder,
        precision,
        device,
        target.allow_offload,
    )
    differs = found.reason if found.differs else ""
    return WishedDraft(wish, folder, found.warnings, differs)


def beside(draft: Wish, target: str) -> Wish:
    """A draft model's wish: in the target's precision, unless another is wanted, it has one, or
    the device that it goes to cannot take the target's.
    """
    if draft.precision is not None or draft.folder.quantised is not None:
        return draft
    if target not in get_args(Precision) or why_not(target, draft.device) is not None:
        return draft
    return replace(draft, precision=cast(Precision, target))
