"""The models of a pair, loaded, and what follows from them for a run."""

from __future__ import annotations

from dataclasses import dataclass

from app.models.language_model import LanguageModel
from app.models.loaded_head import LoadedHead
from app.models.loading import LoadedModel
from app.models.tokenizer import Tokenizer
from app.run.events import ModelFacts
from app.run.methods import Drafter
from app.run.preparation import Prepare


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
        return self.head.facts if kind == "head" and self.head else None

    @property
    def drafts_with(self) -> Drafter:
        """What this pair has that can guess: the draft model, if it has both."""
        return "model" if self.draft else "head" if self.head else "nothing"

    def refusal(self, drafter: Drafter, *, branches: bool = False) -> str:
        """Why this pair cannot speculate with this drafter; empty if it can. Whether the target can
        read guesses that branch is tried when it is first asked.
        """
        if not self.target.rewinding.holds:
            return f"Speculation is off: {self.target.rewinding.note}."
        if drafter == "model" and self.draft and not self.draft.rewinding.holds:
            return f"Speculation is off, for the draft model: {self.draft.rewinding.note}."
        if branches and not self.target.trees.holds:
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
        target, draft = self.target.model, self.draft.model
        both_read = min(target.rows, draft.rows)
        shared = min(len(self.tokenizer), target.width, draft.width, both_read)
        return DraftWidths(target.width, shared, draft.rows)

    def notes(self, drafter: Drafter, *, branches: bool = False) -> tuple[str, ...]:
        """What to know before trusting a figure of a run with this drafter."""
        of_drafter = {"model": self.draft_warnings, "head": self.head_warnings, "nothing": ()}
        found = [*of_drafter[drafter], *self.warnings, *self.target.notes]
        if drafter == "model" and self.draft is not None and self.draft is not self.target:
            found += self.draft.notes
        refusal = self.refusal(drafter, branches=branches)
        found += [refusal] if refusal else []
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
