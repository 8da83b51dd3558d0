"""What a set-up consists of for another program, and what becomes of it there."""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath

import msgspec

from app.run.events import ModelFacts
from app.run.methods import METHODS
from app.run.record import RunRecord
from app.run.settings import RunSettings, Sampling

PLACE = "path/to/"
"""Stands before the name of a model that no hub keeps: another machine has it elsewhere."""

_CACHED = re.compile(r"models--(?P<owner>[\w.-]+?)--(?P<name>[\w.-]+)")


class Setup(msgspec.Struct, frozen=True):
    """A run's settings, with its models in the words that other programs take."""

    settings: RunSettings
    target: str
    """A repository of the Hub, or where the model lies."""
    draft: str = ""
    """The same of the draft model or the draft head; empty without one."""
    precision: str = ""
    """How the target's weights are held; empty where that is left to the machine."""
    draft_precision: str = ""
    """The same of the draft's."""

    @property
    def numbers(self) -> str:
        """What all but the target's quantised weights is held in; empty where it is not known."""
        return {"nf4": "bf16", "fp4": "bf16", "llm-int8": "bf16", "int8": "fp32"}.get(
            self.precision, self.precision
        )


class Written(msgspec.Struct, frozen=True):
    """A set-up as a program takes it."""

    text: str
    """What to run there; empty where that program has nothing of the kind."""
    not_carried: list[str]
    """What is not the same there, a sentence each."""


class Recipe(msgspec.Struct, frozen=True):
    """A set-up in the words of another program."""

    program: str
    release: str
    """The release that the words were written for."""
    text: str
    """What to run there; empty where that program has nothing of the kind."""
    not_carried: tuple[str, ...] = ()
    """What is not the same there, a sentence each."""


def setup_of(record: RunRecord) -> Setup:
    """The set-up of a run. Modules of the target are no model to be named."""
    method = METHODS.get(record.settings.method)
    own = method is not None and method.drafter == "mtp"
    draft = None if own else record.draft
    return Setup(
        record.settings,
        told(record.target),
        told(draft) if draft else "",
        record.target.precision,
        draft.precision if draft else "",
    )


def told(facts: ModelFacts) -> str:
    """A loaded model by its repository of the Hub, if its folder is one of the Hub's cache."""
    parts = (*PurePosixPath(facts.folder).parts, *PureWindowsPath(facts.folder).parts)
    found = next(filter(None, map(_CACHED.fullmatch, parts)), None)
    return f"{found['owner']}/{found['name']}" if found else f"{PLACE}{facts.name}"


def eagle(draft: str) -> str:
    """Which published head a draft is by its name, as vLLM tells it: eagle, eagle3, or "" for none.

    Heads that this program has taught have a layout of their own, which no other program reads.
    """
    name = draft.lower()
    return "eagle" if "eagle-" in name else "eagle3" if "eagle3" in name else ""


def place_notes(setup: Setup) -> list[str]:
    """What to write in the place of models that no hub keeps."""
    named = [(setup.target, "target"), (setup.draft, "draft")]
    return [
        f"{name} stands for the {role}'s folder on your machine."
        for name, role in named
        if name.startswith(PLACE)
    ]


def chosen_here(setup: Setup, program: str) -> list[str]:
    """What becomes of a precision that nobody has asked for."""
    if setup.precision:
        return []
    return [
        "How the target's weights are held is left to the machine here (fp32 on most CPUs, nf4 on "
        f"a graphics card); {program} takes what the model's own files name."
    ]


def sampled(sampling: Sampling, names: dict[str, str]) -> dict[str, float | int]:
    """Sampling settings that are not at rest, by the names (field: name) of another program."""
    rest = Sampling()
    every = {field: getattr(sampling, field) for field in names}
    fixed = ("temperature", "seed")
    return {
        names[field]: value
        for field, value in every.items()
        if field in fixed or value != getattr(rest, field)
    }
