"""The programs that a set-up can be used in: one file each, one line here."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from app.elsewhere import llama_cpp, transformers_generate, vllm, vllm_fields
from app.elsewhere.setup import Recipe, Setup, Written, setup_of
from app.run.draft_lengths import check_lengths
from app.run.methods import Method
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.rules import check_rule
from app.run.settings import RunSettings


class Program(msgspec.Struct, frozen=True):
    """Another program that decodes speculatively."""

    release: str
    """The release that its words were read in."""
    write: Callable[[Setup], Written]


PROGRAMS: dict[str, Program] = {
    "vLLM": Program(vllm_fields.RELEASE, vllm.vllm),
    "llama.cpp": Program(llama_cpp.RELEASE, llama_cpp.llama_cpp),
    "transformers": Program(
        transformers_generate.RELEASE, transformers_generate.transformers_generate
    ),
}
"""Every program by its name."""


def recipes(record: RunRecord) -> tuple[Recipe, ...]:
    """The set-up of a run for every program."""
    return tuple(recipe(name, setup_of(record)) for name in PROGRAMS)


def recipe(name: str, setup: Setup) -> Recipe:
    """The set-up for the program of this name; none for settings that this version has not."""
    program = PROGRAMS[name]
    try:
        _check(setup.settings)
        written = program.write(setup)
    except Problem as problem:
        written = Written("", [problem.message])
    return Recipe(name, program.release, written.text, tuple(written.not_carried))


def _check(settings: RunSettings) -> None:
    """Raises Problem for settings that only another version can have made."""
    Method.named(settings.method).filled(settings.method_options)
    check_rule(settings)
    check_lengths(settings)
