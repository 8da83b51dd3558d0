"""The programs that a set-up can be used in: one file each, one line here."""

from __future__ import annotations

from collections.abc import Callable

from app.elsewhere.llama_cpp import llama_cpp
from app.elsewhere.setup import Recipe, Setup, setup_of
from app.elsewhere.transformers_generate import transformers_generate
from app.elsewhere.vllm import vllm
from app.run.record import RunRecord

PROGRAMS: dict[str, Callable[[Setup], Recipe]] = {
    "vLLM": vllm,
    "llama.cpp": llama_cpp,
    "transformers": transformers_generate,
}
"""Every program by its name."""


def recipes(record: RunRecord) -> tuple[Recipe, ...]:
    """The set-up of a run for every program."""
    setup = setup_of(record)
    return tuple(program(setup) for program in PROGRAMS.values())
