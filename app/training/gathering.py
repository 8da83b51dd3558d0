"""Gathers the texts that a head learns from, and those that it is judged by, in one folder."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec

from app.models.language_model import LanguageModel
from app.models.tokenizer import Tokenizer
from app.run.events import Progress
from app.run.problems import Cancelled, Problem
from app.training.prompts import Answered, Asked, generated, given
from app.training.texts import Text, TextFolder
from app.training.writing import LONGEST, NEW_TOKENS, TEMPERATURES, Plan, Writer

SHARD = 128
"""Texts of a shard: as many as a kill may cost."""
_HELD_OUT = 96
"""Conversations that the head is judged by."""
_HELD_OUT_TOKENS = 128
_LAST_ANSWERS = 256
"""How many answers may become the material of later prompts."""

Report = Callable[[Progress], None]
Pause = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Budget:
    """When enough is written: at the first of these."""

    seconds: float
    bytes: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Source:
    """The target that writes, and what it is asked."""

    model: LanguageModel
    tokenizer: Tokenizer
    end_ids: Sequence[int]
    seed: int
    prompts: Sequence[str] = ()
    """A person's own prompts; without any, generated ones."""


class Corpus:
    """The texts in a folder: those to learn from, and those held out, with other prompts."""

    def __init__(self, folder: Path) -> None:
        self.learned = TextFolder(folder / "texts")
        self.held_out = TextFolder(folder / "held-out")

    def gather(self, source: Source, budget: Budget, *, report: Report, pause: Pause) -> None:
        """Writes until the budget is spent; what an earlier time has written counts as tokens.

        Raises Problem for what a person can mend, Cancelled when `pause` does; what was written
        until then stays.
        """
        if not self.held_out.shards:
            self._write_held_out(source, report=report, pause=pause)
        start = time.monotonic()
        tokens = self.learned.written
        if _spent(budget, start, tokens, self.learned.byte_count):
            return
        shard: list[Text] = []
        try:
            for text in self._texts(source, pause):
                shard.append(text)
                tokens += text.written
                report(_progress(budget, start))
                over = _spent(budget, start, tokens, self.learned.byte_count)
                if over or len(shard) == SHARD:
                    full, shard = shard, []
                    self.learned.add(full)
                if over:
                    return
        except Cancelled:
            if shard:
                self.learned.add(shard)
            raise

    def _texts(self, source: Source, pause: Pause) -> Iterator[Text]:
        """Texts without end, going on where an earlier time stopped with other prompts."""
        begun = len(self.learned.shards)
        plan = _plan(source, seed=source.seed + 1 + begun)
        writer = Writer(source.model, source.tokenizer, source.end_ids, plan)
        answers: deque[Answered] = deque(maxlen=_LAST_ANSWERS)

        def material(rng: random.Random) -> Answered | None:
            return answers[rng.randrange(len(answers))] if answers else None

        held_out = {_key(one) for one in _held_out(source)}
        own = [one for one in _fitting(source, plan) if _key(Asked("given", one)) not in held_out]
        if source.prompts and not own:
            raise _no_prompt("to learn from")
        asked = given(own, plan.seed) if own else generated(plan.seed, material)
        fresh = (one for one in asked if _key(one) not in held_out)
        for answered in writer.answers(fresh, pause):
            text = answered.text
            said = source.tokenizer.decode(text.ids[text.prompt :].tolist())
            answers.append(Answered(answered.asked, said))
            yield text

    def _write_held_out(self, source: Source, *, report: Report, pause: Pause) -> None:
        plan = _plan(source, seed=source.seed, new_tokens=_HELD_OUT_TOKENS, temperatures=(0.0,))
        writer = Writer(source.model, source.tokenizer, source.end_ids, plan)
        texts = []
        asked = _held_out(source)
        for answered in writer.answers(iter(asked), pause):
            texts.append(answered.text)
            report(Progress("writing the held-out texts", len(texts), len(asked), "texts"))
        if not texts:
            raise _no_prompt("to judge a head by")
        self.held_out.add(texts)


def _held_out(source: Source) -> list[Asked]:
    """The conversations that nothing is learned from: every tenth of a person's own prompts."""
    if source.prompts:
        some = source.prompts[:: max(10, len(source.prompts) // _HELD_OUT)]
        return [Asked("given", prompt) for prompt in some]
    return list(islice(generated(source.seed), _HELD_OUT))


def _plan(
    source: Source,
    *,
    seed: int,
    new_tokens: int = NEW_TOKENS,
    temperatures: Sequence[float] = TEMPERATURES,
) -> Plan:
    """How texts are written, within what the model can read."""
    longest = min(LONGEST, source.model.context_length)
    new_tokens = min(new_tokens, longest // 2)
    return Plan(seed, new_tokens=new_tokens, longest=longest, temperatures=temperatures)


def _fitting(source: Source, plan: Plan) -> list[str]:
    """The person's own prompts that leave room for a text."""
    room = plan.longest - plan.new_tokens
    encode = source.tokenizer.encode_prompt
    return [prompt for prompt in source.prompts if len(encode(prompt)) <= room]


def _no_prompt(purpose: str) -> Problem:
    return Problem(
        f"No prompt is left {purpose}.", "Give more prompts, of at most some hundred words each."
    )


def _key(asked: Asked) -> bytes:
    return msgspec.json.encode(asked)


def _spent(budget: Budget, start: float, tokens: int, byte_count: int) -> bool:
    return (
        time.monotonic() - start >= budget.seconds
        or tokens >= budget.tokens
        or byte_count >= budget.bytes
    )


def _progress(budget: Budget, start: float) -> Progress:
    seconds = min(time.monotonic() - start, budget.seconds)
    left = f"writing texts, {(budget.seconds - seconds) / 60:.0f} min left"
    return Progress(left, seconds, budget.seconds, "s")
