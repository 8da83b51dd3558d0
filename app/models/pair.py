"""The models of a pair, loaded, and what follows from them for a run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from app.models.language_model import LanguageModel
from app.models.loaded_head import LoadedHead
from app.models.loaded_mtp import LoadedMtp
from app.models.loading import LoadedModel
from app.models.tokenizer import Tokenizer
from app.models.vocabulary_bridge import VocabularyBridge
from app.run.events import ModelFacts
from app.run.methods import Drafter, Method
from app.run.preparation import Prepare
from app.run.problems import Problem


@dataclass(frozen=True, slots=True)
class DraftWidths:
    """How the ids of a draft model and its target fit together; both count from the same 0."""

    target_width: int
    """Logits a row of the target."""
    shared_ids: int
    """Ids that both know: the draft never proposes one from here on."""
    draft_rows: int
    """Ids that the draft model can read."""


@dataclass(frozen=True, slots=True)
class LoadedPair:
    """A target and, for methods that need one, a draft model or a draft head."""

    wanted: Prepare
    target: LoadedModel
    draft: LoadedModel | None
    tokenizer: Tokenizer
    warnings: tuple[str, ...] = ()
    """What to know of the target."""
    draft_warnings: tuple[str, ...] = ()
    """What to know of the draft model, and of the two together."""
    head: LoadedHead | None = None
    head_warnings: tuple[str, ...] = ()
    """What to know of the draft head, and of the two together."""
    bridge: VocabularyBridge | None = None
    """Between the vocabularies of target and draft model; None without a draft model."""
    mtp: LoadedMtp | None = None
    """The target's own modules, for the method that asks for them."""

    def answering(self, wanted: Prepare) -> LoadedPair | None:
        """This pair as it is wanted now, if nothing has to be loaded or chosen for that: one that
        has modules for multi-token prediction is also one without. None if something has to.
        """
        if any(model.passes.undecided for model in self.models):
            return None
        if wanted == self.wanted:
            return self
        without = msgspec.structs.replace(self.wanted, mtp=False)
        return replace(self, wanted=wanted, mtp=None) if wanted == without else None

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Every id that ends a text."""
        return self.target.folder.end_ids

    @property
    def models(self) -> tuple[LanguageModel, ...]:
        """Every model in memory, each once."""
        found = [self.target.model, *([self.draft.model] if self.draft else [])]
        return tuple(dict.fromkeys(found))

    def drafter(self, kind: Drafter) -> ModelFacts | None:
        """What a method of this kind asks for guesses; None where that is no model."""
        if kind == "model":
            return self.draft.facts if self.draft else None
        beside = self.beside(kind)
        return beside.facts if beside else None

    def beside(self, kind: Drafter) -> LoadedHead | LoadedMtp | None:
        """What guesses from the target's features for a method of this kind, if it is there."""
        if kind == "mtp":
            return self.mtp
        return self.head if kind == "head" else None

    @property
    def drafts_with(self) -> Drafter:
        """What this pair has that can guess: what was asked for, else the draft model."""
        if self.mtp:
            return "mtp"
        return "model" if self.draft else "head" if self.head else "nothing"

    def refusal(self, method: Method) -> str:
        """Why this pair cannot speculate with this method; empty if it can. Whether the target can
        read guesses that branch is tried when it is first asked.
        """
        drafter = method.drafter
        if not self.target.rewinding.holds:
            return f"Speculation is off: {self.target.rewinding.note}."
        if drafter == "model" and self.draft and not self.draft.rewinding.holds:
            return f"Speculation is off, for the draft model: {self.draft.rewinding.note}."
        if drafter == "early-exit" and not self.target.early_exit.holds:
            reason = self.target.early_exit.note
            return f"Speculation is off: the target cannot guess for itself, as {reason}."
        if method.branches and not self.target.trees.holds:
            return f"Speculation is off: {self.target.trees.note}."
        return ""

    @property
    def exact(self) -> bool:
        """Whether the target answers each row without regard to the guesses after it."""
        return self.target.rows.holds

    @property
    def widths(self) -> DraftWidths | None:
        """How the ids of both models fit together; None without a draft model."""
        if self.draft is None:
            return None
        return self._widths_of(self.draft.model)

    @property
    def exit_widths(self) -> DraftWidths:
        """The same of the target as its own draft."""
        return self._widths_of(self.target.model)

    def _widths_of(self, draft: LanguageModel) -> DraftWidths:
        target = self.target.model
        both_read = min(target.rows, draft.rows)
        shared = min(len(self.tokenizer), target.width, draft.width, both_read)
        return DraftWidths(target.width, shared, draft.rows)

    @property
    def own_widths(self) -> DraftWidths | None:
        """As `widths`, for a draft model that writes in its own ids."""
        if self.draft is None:
            return None
        draft = self.draft.model
        return DraftWidths(draft.width, min(draft.width, draft.rows), draft.rows)

    def check_vocabulary(self, method: Method) -> None:
        """Raises Problem for a method that asks a draft model of another vocabulary to guess the
        target's ids.
        """
        differs = self.bridge.differs if self.bridge is not None else ""
        if differs and method.drafter == "model" and not method.any_vocabulary:
            raise Problem(
                "The draft model reads another vocabulary than its target, and the method "
                f"{method.name} needs the same ids for both: {differs}",
                "Choose the method tli (guesses within the shared tokens) or slem (any text, cut "
                "anew).",
            )

    def notes(self, method: Method) -> tuple[str, ...]:
        """What to know before trusting a figure of a run with this method."""
        drafter = method.drafter
        of_drafter = {"model": self.draft_warnings, "head": self.head_warnings}
        found = [*of_drafter.get(drafter, ()), *self.warnings, *self.target.notes]
        if drafter == "model" and self.draft is not None and self.draft is not self.target:
            found += self.draft.notes
        refusal = self.refusal(method)
        found += [refusal] if refusal else []
        if method.branches and not refusal:
            found.append(f"Of the target, {self.target.trees.note}.")
        if not self.exact:
            found.append(f"Not exactly lossless: {self.target.rows.note}.")
        suggested = self.target.folder.suggested_sampling
        if suggested is not None:
            shown = f"temperature {suggested.temperature:g}, top-k {suggested.top_k}, "
            shown += f"top-p {suggested.top_p:g}"
            if suggested.repetition_penalty != 1.0:
                shown += f", repetition penalty {suggested.repetition_penalty:g}"
            found.append(f"The model's files suggest {shown}; not applied unasked.")
        return tuple(found)
