"""What the target is asked while a head learns from it: an endless, varied stream."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import msgspec

from app.run.settings import Message
from app.training.faults import with_bug, with_misspellings
from app.training.page import Page, shipped_lists
from app.training.passages import code_in, excerpt, passage


class Asked(msgspec.Struct, frozen=True):
    """One conversation that the target is to answer."""

    kind: str
    prompt: str
    """The last thing the user says."""
    earlier: tuple[Message, ...] = ()
    """The turns before it: user and assistant in turn."""
    system: str = ""


class Answered(msgspec.Struct, frozen=True):
    """A conversation and what the target wrote in answer."""

    asked: Asked
    text: str


Material = Callable[[random.Random], Answered | None]


class Kind(msgspec.Struct, frozen=True):
    """How prompts of one kind come to be."""

    weight: float
    """Its share in the stream, against those of the others."""
    given: str = ""
    """What the prompt works on: a passage, code, a text with mistakes, an earlier answer."""
    dressed: bool = True
    """Whether an opening, a wish for the form of the answer and the like may be put around it."""
    system: float = 0.06
    """How often a system message comes before it."""


KINDS: dict[str, Kind] = {
    "chat": Kind(4, dressed=False),
    "explain": Kind(7),
    "advice": Kind(6),
    "compare": Kind(4),
    "list": Kind(6),
    "story": Kind(5),
    "poem": Kind(2.5),
    "letter": Kind(5),
    "opinion": Kind(3),
    "describe": Kind(4),
    "fact": Kind(4),
    "define": Kind(3),
    "plan": Kind(4),
    "quiz": Kind(2),
    "arithmetic": Kind(5, dressed=False),
    "puzzle": Kind(3, dressed=False),
    "role": Kind(3, dressed=False, system=1),
    "code": Kind(9, dressed=False),
    "code-explain": Kind(2.5, "code", dressed=False),
    "code-fix": Kind(2.5, "bug", dressed=False),
    "code-change": Kind(3, "code", dressed=False),
    "summarise": Kind(4, "passage", dressed=False),
    "edit": Kind(4, "passage", dressed=False),
    "correct": Kind(3, "mistakes", dressed=False),
    "reformat": Kind(3, "passage", dressed=False),
    "extract": Kind(3, "passage", dressed=False),
    "classify": Kind(2.5, dressed=False),
    "continue": Kind(2.5, dressed=False),
    "translate": Kind(4, dressed=False),
    "translate-passage": Kind(1, "passage", dressed=False),
    "follow-up": Kind(6, "answer", dressed=False),
}
"""Every kind there is. The lists of its name in `resources/training` hold its patterns."""


def no_material(rng: random.Random) -> Answered | None:
    """Nothing: passages are then composed."""
    return None


def generated(seed: int, material: Material = no_material) -> Iterator[Asked]:
    """An endless stream; the same for the same seed and the same answers of `material`.

    `material` may hand over something that the target wrote before: about half of the prompts
    that work on a text then work on it.
    """
    names = list(KINDS)
    weights = [kind.weight for kind in KINDS.values()]
    number = 0
    while True:
        rng = random.Random(f"{seed} {number}")
        (name,) = rng.choices(names, weights)
        yield _asked(name, Page(rng, shipped_lists()), material)
        number += 1


def given(prompts: Sequence[str], seed: int) -> Iterator[Asked]:
    """A person's own prompts, over and over, each pass in a new order; none for no prompts."""
    rng = random.Random(f"{seed} given")
    while prompts:
        for prompt in rng.sample(prompts, len(prompts)):
            yield Asked("given", prompt)


def _asked(name: str, page: Page, material: Material) -> Asked:
    kind = KINDS[name]
    earlier: tuple[Message, ...] = ()
    if kind.given == "answer":
        earlier, about = _answer(page, material)
        special = f"follow-up.{about}"
        prompt = page.write(special if page.has(special) and page.chance(0.5) else name)
    else:
        if kind.given:
            page.bind("text", _text(kind.given, page, material))
        prompt = page.write(name).strip()
    if kind.dressed:
        prompt = _dressed(name, prompt, page)
    if not kind.given and "\n" not in prompt:
        prompt = _typed(prompt, page)
    system = ""
    if page.chance(kind.system):
        system = page.write(f"{name}.system" if page.has(f"{name}.system") else "system")
    return Asked(name, prompt, earlier, system)


def _text(given: str, page: Page, material: Material) -> str:
    """What a prompt of this kind works on."""
    answered = material(page.rng) if page.chance(0.6) else None
    if given in ("code", "bug"):
        code = (answered and code_in(answered.text)) or page.write("snippet")
        return with_bug(code, page) if given == "bug" else code
    written = excerpt(answered.text, page.rng) if answered else ""
    text = written or passage(page)
    return with_misspellings(text, page) if given == "mistakes" else text


def _answer(page: Page, material: Material) -> tuple[tuple[Message, ...], str]:
    """The turns before a follow-up question, and the kind of the first prompt."""
    answered = material(page.rng)
    if answered is not None and answered.text.strip():
        asked = answered.asked
        turns = (Message("user", asked.prompt), Message("assistant", answered.text.strip()))
        return (*asked.earlier[-2:], *turns), asked.kind
    text = passage(page)
    first = page.write("follow-up.first")
    return (Message("user", first), Message("assistant", text)), "passage"


def _dressed(name: str, prompt: str, page: Page) -> str:
    """The prompt with an opening, a background, or a wish for the answer's form; or as it is."""
    if page.chance(0.25):
        prompt = f"{page.write('background')} {prompt}"
    elif page.chance(0.15):
        prompt = f"{page.write('opening')} {prompt}"
    if page.chance(0.6):
        own = f"{name}.wish"
        prompt = f"{prompt} {page.write(own if page.has(own) and page.chance(0.6) else 'wish')}"
    return prompt


def _typed(prompt: str, page: Page) -> str:
    """The prompt as hurried people type: now and then without capitals or a full stop."""
    if page.chance(0.05):
        prompt = prompt.lower()
    if page.chance(0.06):
        prompt = prompt.rstrip(".?")
    return prompt
