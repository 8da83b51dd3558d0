"""Whether a draft model's ids mean the same as the target's: every id, not a sample."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.library.compatibility_report import (
    CompatibilityReport,
    Side,
    Special,
    Template,
)
from app.library.preflight import FolderFacts, check
from app.library.special_tokens import ROLES, Conventions, conventions
from app.library.vocabulary import Vocabulary
from app.library.vocabulary_pair import Differing, cut_differently, differing, overlap
from app.run.problems import Problem

_ENOUGH = 0.5
"""The share of a draft's tokens that a target of another vocabulary has to know for them to guess
within the shared ones."""
_REMEDY = "Choose a draft model of the target's own family, or the n-gram method."


def report(target_folder: Path, draft_folder: Path) -> CompatibilityReport:
    """Compares two model folders; one that cannot be loaded is an answer too."""
    target = _read(target_folder)
    beside = target.vocabulary if isinstance(target, _Model) else None
    draft = _read(draft_folder, needs_tokenizer=False, beside=beside)
    if isinstance(target, _Model) and isinstance(draft, _Model):
        return _compared(target, draft)
    sides = [one.side if isinstance(one, _Model) else one for one in (target, draft)]
    role, broken = ("target", sides[0]) if sides[0].reason else ("draft", sides[1])
    return CompatibilityReport(
        target=sides[0],
        draft=sides[1],
        verdict="cannot",
        reason=f"the {role} cannot be loaded: {broken.reason}",
        remedy=broken.remedy,
    )


class _Model(msgspec.Struct, frozen=True):
    """A model that can be loaded, as far as its files tell without loading."""

    side: Side
    facts: FolderFacts
    conventions: Conventions
    vocabulary: Vocabulary | None
    """None: it brings no tokenizer, or one whose ids cannot be read."""


def _read(
    folder: Path, *, needs_tokenizer: bool = True, beside: Vocabulary | None = None
) -> _Model | Side:
    """A model; a side with its reason if it cannot be loaded."""
    try:
        facts = check(folder, needs_tokenizer=needs_tokenizer)
        vocabulary = _vocabulary(facts.tokenizer, beside)
        said = conventions(folder)
    except Problem as problem:
        return Side(folder, problem.message, problem.remedy)
    side = Side(
        folder,
        rows=facts.vocabulary,
        tokens=len(vocabulary.tokens) if vocabulary else None,
        context_length=facts.context_length,
        parameters=facts.parameters,
    )
    return _Model(side, facts, said, vocabulary)


def _vocabulary(file: Path | None, beside: Vocabulary | None) -> Vocabulary | None:
    """What a tokenizer's ids mean; the other one's vocabulary if it is the same file."""
    if file is None or file.name != "tokenizer.json":
        return None
    if beside is not None and beside.file.read_bytes() == file.read_bytes():
        return beside
    return Vocabulary(file)


def _compared(target: _Model, draft: _Model) -> CompatibilityReport:
    """The report on two models that can be loaded."""
    if target.vocabulary is not None and draft.vocabulary is not None:
        found = _by_ids(target, draft, target.vocabulary, draft.vocabulary)
    else:
        found = _without_ids(target, draft)
    warnings = (
        *found.warnings,
        *(_end_warning(target.facts, draft.facts) if found.same_ids else ()),
        *_context_warning(target.facts, draft.facts),
        *_speed_warning(target.facts, draft.facts),
    )
    template = _template(target.conventions.template, draft.conventions.template)
    found = msgspec.structs.replace(found, warnings=warnings, template=template)
    if not found.fits:
        return msgspec.structs.replace(found, remedy=_REMEDY)
    state = _state(target.facts, draft.facts)
    return found.without_speculation(state) if state else found


def _by_ids(
    target: _Model, draft: _Model, ours: Vocabulary, theirs: Vocabulary
) -> CompatibilityReport:
    """The verdict where it is known what each id means to both."""
    ordinary, added = differing(ours, theirs)
    found = CompatibilityReport(
        target=target.side,
        draft=draft.side,
        verdict="fits",
        reason=f"all {len(ours.tokens):,} ids mean the same to both.",
        differing=ordinary.count,
        first_differing=ordinary.first,
        added_differing=added.count,
        first_added=added.first,
        special=tuple(_special(target, draft, ours, theirs)),
        warnings=tuple(_added_warning(added)),
    )
    if ordinary.count:
        return _by_overlap(found, ours, theirs)
    if added.count:
        reason = f"all ids mean the same to both but those of {added.count} added tokens."
        found = msgspec.structs.replace(found, reason=reason)
    return msgspec.structs.replace(found, cut_differently=cut_differently(ours, theirs))


def _by_overlap(
    found: CompatibilityReport, ours: Vocabulary, theirs: Vocabulary
) -> CompatibilityReport:
    """The verdict where ordinary ids differ: by the tokens that are the same text.

    A draft of another vocabulary can only guess tokens that the target knows (Timor et al. 2025,
    arXiv 2502.05202, algorithm 4), so its own share counts.
    """
    shared = overlap(ours, theirs)
    first = found.first_differing[0]
    reason = (
        f"id {first.id} means {_shown(first.target)} to the target and {_shown(first.draft)} to "
        f"the draft; {found.differing:,} ids differ. Of the draft's tokens {shared.of_draft:.0%} "
        f"are the target's too, of the target's {shared.of_target:.0%} the draft's"
    )
    enough = shared.of_draft >= _ENOUGH
    methods = "tli, or slem" if enough else "slem: too few tokens are shared for tli"
    warning = (
        f"The draft reads another vocabulary: {shared.of_draft:.1%} of its tokens are the target's "
        f"too, and {shared.of_target:.1%} of the target's are its. Methods for it: {methods}."
    )
    return msgspec.structs.replace(
        found,
        verdict="fits by intersection" if enough else "fits by text",
        reason=f"{reason}.",
        overlap=shared,
        warnings=(warning,),
    )


def _without_ids(target: _Model, draft: _Model) -> CompatibilityReport:
    """The verdict where a tokenizer is missing, or of a kind whose ids cannot be read."""
    found = CompatibilityReport(target=target.side, draft=draft.side, verdict="cannot", reason="")
    ours, theirs = target.facts.tokenizer, draft.facts.tokenizer
    assert ours is not None  # the target's was asked for
    if theirs is None and target.side.rows != draft.side.rows:
        reason = (
            f"the draft has no tokenizer, and its vocabulary of {draft.side.rows} is not the "
            f"target's {target.side.rows}."
        )
        return msgspec.structs.replace(found, reason=reason)
    if theirs is None:
        reason = f"both have {target.side.rows:,} rows; the draft has no tokenizer to compare."
        warning = "The draft has no tokenizer: that its ids mean what the target's do is assumed."
        return msgspec.structs.replace(found, verdict="fits", reason=reason, warnings=(warning,))
    if ours.name != theirs.name:
        reason = f"their tokenizer files are of different kinds ({ours.name}, {theirs.name})."
        return msgspec.structs.replace(found, reason=reason)
    if ours.read_bytes() != theirs.read_bytes():
        reason = f"their {ours.name} differ, and only a tokenizer.json can be compared."
        return msgspec.structs.replace(found, reason=reason)
    reason = f"their {ours.name} is the same."
    return msgspec.structs.replace(found, verdict="fits", reason=reason)


def _special(
    target: _Model, draft: _Model, ours: Vocabulary, theirs: Vocabulary
) -> Iterator[Special]:
    """The special tokens that the two do not share."""
    for role in ROLES:
        mine, other = (one.conventions.roles.get(role) for one in (target, draft))
        my_id = ours.id_of(mine) if mine is not None else None
        other_id = theirs.id_of(other) if other is not None else None
        if (mine, my_id) != (other, other_id):
            yield Special(role, mine, my_id, other, other_id)


def _template(ours: str | None, theirs: str | None) -> Template:
    if ours is None and theirs is None:
        return "neither has one"
    if ours is None or theirs is None:
        return "only the draft has one" if ours is None else "only the target has one"
    return "same" if ours == theirs else "differs"


def _added_warning(added: Differing) -> Iterator[str]:
    """A warning of the added tokens that differ."""
    for first in added.first[:1]:
        yield (
            f"{added.count} added tokens differ, first id {first.id}: {_shown(first.target)} to "
            f"the target, {_shown(first.draft)} to the draft. The target's meaning counts."
        )


def _state(target: FolderFacts, draft: FolderFacts) -> str:
    """Why the two cannot speculate though their vocabularies fit; empty if they can."""
    keeping = [
        (role, facts.stateful)
        for role, facts in (("target", target), ("draft", draft))
        if facts.stateful
    ]
    if not keeping:
        return ""
    said = " and ".join(f"the {role} keeps a state ({state})" for role, state in keeping)
    return f"{said}, from which a rejected guess cannot be taken back."


def _end_warning(target: FolderFacts, draft: FolderFacts) -> Iterator[str]:
    """A warning if the two end a text by different ids."""
    if target.end_ids != draft.end_ids:
        yield (
            f"The draft ends a text by ids {_ids(draft)}, the target by {_ids(target)}; "
            "the target's count."
        )


def _context_warning(target: FolderFacts, draft: FolderFacts) -> Iterator[str]:
    """A warning if the draft reads less than the target does."""
    ours, theirs = target.context_length, draft.context_length
    if ours is not None and theirs is not None and theirs < ours:
        yield (
            f"The draft reads up to {theirs:,} tokens, the target up to {ours:,}: past the "
            "draft's end the target writes alone."
        )


def _speed_warning(target: FolderFacts, draft: FolderFacts) -> Iterator[str]:
    """A warning if the draft costs as much as the target."""
    if target.folder.resolve() == draft.folder.resolve():
        yield "Target and draft are the same model: no speed-up is possible."
    elif draft.parameters >= target.parameters:
        yield (
            f"The draft has {draft.parameters:,} parameters, the target {target.parameters:,}: "
            "no speed-up is possible."
        )


def _shown(token: str | None) -> str:
    return "nothing" if token is None else repr(token)


def _ids(facts: FolderFacts) -> str:
    return ", ".join(map(str, facts.end_ids)) or "none"
