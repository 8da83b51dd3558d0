"""Whether a draft model's ids mean the same as the target's: every id, not a sample."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
from tokenizers import Tokenizer

from app.library.preflight import FolderFacts, check
from app.run.problems import Problem


class Compatibility(msgspec.Struct, frozen=True):
    """Whether a draft may guess for a target, why not, and what to know if it may."""

    verdict: Literal["same", "refused"]
    reason: str = ""
    warnings: tuple[str, ...] = ()


def compare(target_folder: Path, draft_folder: Path) -> Compatibility:
    """Compares two model folders. Raises Problem if one of them cannot be loaded at all.

    Sizes may differ by padding. How text is cut does not matter: a prompt is encoded once, with the
    target's tokenizer, and ids alone reach the draft.
    """
    target = check(target_folder)
    draft = check(draft_folder, needs_tokenizer=False)
    found = _compare_tokenizers(target, draft)
    if found.verdict == "refused":
        return found
    warnings = (*found.warnings, *_end_warning(target, draft), *_speed_warning(target, draft))
    return msgspec.structs.replace(found, warnings=warnings)


def _compare_tokenizers(target: FolderFacts, draft: FolderFacts) -> Compatibility:
    """The verdict on ids alone."""
    if target.tokenizer == draft.tokenizer:
        return Compatibility("same")
    if draft.tokenizer is None:
        return _without_tokenizer(target, draft)
    if target.tokenizer is None or target.tokenizer.name != draft.tokenizer.name:
        return Compatibility("refused", "Their tokenizer files are of different kinds.")
    if target.tokenizer.read_bytes() == draft.tokenizer.read_bytes():
        return Compatibility("same")
    if target.tokenizer.name != "tokenizer.json":
        return Compatibility(
            "refused", f"Their {target.tokenizer.name} differ; only tokenizer.json can be compared."
        )
    return _compare_ids(_Vocabulary(target.tokenizer), _Vocabulary(draft.tokenizer))


class _Vocabulary:
    """What each id means, and which of them were added to the vocabulary proper."""

    def __init__(self, file: Path) -> None:
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises plain Exception for an invalid file
            raise Problem(f"{file} cannot be read: {error}.", "Get the file again.") from error
        self.tokens = {id_: token for token, id_ in tokenizer.get_vocab(True).items()}
        self.added = frozenset(tokenizer.get_added_tokens_decoder())


def _compare_ids(target: _Vocabulary, draft: _Vocabulary) -> Compatibility:
    """Refuses the first ordinary id that differs; warns of added ones."""
    differing = [
        id_
        for id_ in sorted(target.tokens.keys() | draft.tokens.keys())
        if target.tokens.get(id_) != draft.tokens.get(id_)
    ]
    for id_ in differing:
        sides = [side for side in (target, draft) if id_ in side.tokens]
        if not all(id_ in side.added for side in sides):
            return Compatibility(
                "refused",
                f"Id {id_} means {_shown(target, id_)} to the target and {_shown(draft, id_)} to "
                f"the draft; {len(differing)} ids differ.",
            )
    if not differing:
        return Compatibility("same")
    first = differing[0]
    return Compatibility(
        "same",
        warnings=(
            f"{len(differing)} added tokens differ, first id {first}: {_shown(target, first)} to "
            f"the target, {_shown(draft, first)} to the draft. The target's meaning counts.",
        ),
    )


def _without_tokenizer(target: FolderFacts, draft: FolderFacts) -> Compatibility:
    """A draft that brings no tokenizer has to have the target's vocabulary size."""
    if target.vocabulary != draft.vocabulary:
        return Compatibility(
            "refused",
            f"The draft has no tokenizer, and its vocabulary of {draft.vocabulary} is not the "
            f"target's {target.vocabulary}.",
        )
    warning = "The draft has no tokenizer: that its ids mean the same as the target's is assumed."
    return Compatibility("same", warnings=(warning,))


def _end_warning(target: FolderFacts, draft: FolderFacts) -> list[str]:
    """A warning if the two end a text by different ids."""
    if target.end_ids == draft.end_ids:
        return []
    return [
        f"The draft ends a text by ids {_ids(draft)}, the target by {_ids(target)}; "
        "the target's count."
    ]


def _speed_warning(target: FolderFacts, draft: FolderFacts) -> list[str]:
    """A warning if the draft costs as much as the target."""
    if target.folder.resolve() == draft.folder.resolve():
        return ["Target and draft are the same model: no speed-up is possible."]
    if draft.parameters >= target.parameters:
        return [
            f"The draft has {draft.parameters:,} parameters, the target {target.parameters:,}: "
            "no speed-up is possible."
        ]
    return []


def _shown(side: _Vocabulary, id_: int) -> str:
    return repr(side.tokens[id_]) if id_ in side.tokens else "nothing"


def _ids(facts: FolderFacts) -> str:
    return ", ".join(map(str, facts.end_ids)) or "none"
