"""What earlier runs wrote, for a method that copies from it: counted, held up to date, added to.

A run finds what runs before it have left, and adds its own text once it has ended: none of its
lanes and repetitions profits from another.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from app.decoding.proposers.count_trie import CountTrie
from app.library.kept_texts import MOST_BYTES, MOST_TOKENS, KeptText, KeptTexts, prompt_hash
from app.models.language_model import LanguageModel
from app.run.events import Progress
from app.run.flags import Flag
from app.run.methods import Method
from app.run.problems import Problem
from app.run.record import Repetition, RunRecord
from app.run.settings import OptionValue, RunSettings

Report = Callable[[Progress], None]
Pause = Callable[[], None]

SHOWN = 0.5
"""From this share of a text on that earlier runs wrote too, its figures are flagged."""

_RUN = 8
"""Tokens of a run that is looked up, unless the trie is less deep: no chance match."""
_STEPS = 100
"""How often, at most, the progress of counting is told."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Earlier:
    """The earlier texts as a run finds them."""

    trie: CountTrie
    texts: int
    tokens: int
    prompts: frozenset[bytes]
    """The hashes of the prompts that they were written behind."""

    @property
    def note(self) -> str:
        """What a person should know of them."""
        added = "A run's own text is added once it has ended."
        if not self.texts:
            return f"Suffix decoding found no text of an earlier run to copy from. {added}"
        return (
            f"Suffix decoding could also copy from {_counted(self.texts, 'text')} of earlier runs "
            f"({_counted(self.tokens, 'token')}, counted in {self.trie.byte_count / 1e6:.1f} MB of "
            f"memory). {added}"
        )

    def repeats(self, record: RunRecord) -> Flag | None:
        """The flag of a run whose prompt or text was there before."""
        again = prompt_hash(record.prompt_ids) in self.prompts
        seen = ["its prompt was run before"] if again else []
        written = _written(record)
        share = self._share(written.token_ids) if written else 0.0
        if share >= SHOWN:
            seen.append(f"{100 * share:.0f} % of its text stands in texts of earlier runs")
        return Flag("repeated text", ", and ".join(seen)) if seen else None

    def _share(self, ids: list[int]) -> float:
        """The share of a text's runs of tokens that stand in the earlier texts."""
        size = min(_RUN, self.trie.depth)
        starts = range(len(ids) - size + 1)
        found = sum(self.trie.find(ids[start : start + size]) is not None for start in starts)
        return found / len(starts) if starts else 0.0


class EarlierTexts:
    """Counts the texts of one target at a time, and counts only what is new."""

    def __init__(self, kept: KeptTexts) -> None:
        self._kept = kept
        self._of: tuple[str, int] | None = None
        """The target and the depth whose texts are counted."""
        self._trie = CountTrie(1)
        self._texts: dict[int, KeptText] = {}
        """What is counted, by number, the oldest first."""
        self._since = 0
        """The number of the first text that there was memory for."""

    @property
    def byte_count(self) -> int:
        """The memory that is held, at most."""
        return self._trie.byte_count

    def release(self) -> None:
        """Lets go of what is counted; what is kept stays, and can be counted again."""
        self._begin(None, CountTrie(1))

    def release_cleared(self) -> None:
        """Lets go of what is counted where nothing is kept of it any more."""
        try:
            gone = self._of is not None and not self._kept.lengths(self._of[0])
        except Problem:  # a run that needs no texts is as good without them
            gone = True
        if gone:
            self.release()

    def found(
        self, model: LanguageModel, settings: RunSettings, *, report: Report, pause: Pause
    ) -> Earlier | None:
        """The newest texts of a target, counted; None for settings that ask for none.

        Raises Problem, and Cancelled when `pause` does.
        """
        options = _remembering(settings)
        if options is None:
            self.release_cleared()
            return None
        target, depth = text_key(model), int(options["depth"])
        numbers = _newest(self._kept.lengths(target), int(options["cached"]))
        anew = self._since > max(numbers, default=0)  # the file was made anew, and its numbers too
        if self._of != (target, depth) or anew or not self._can_follow(numbers):
            self._begin((target, depth), CountTrie(depth))
        numbers = [number for number in numbers if number >= self._since]
        stay = set(numbers)
        for number in [one for one in self._texts if one not in stay]:
            self._forget(number)
        fresh = [number for number in numbers if number not in self._texts]
        if fresh:
            found = self._kept.texts(target, since=fresh[0])
            self._count([one for one in found if one.number in stay], report=report, pause=pause)
        texts = self._texts.values()
        prompts = frozenset(text.prompt for text in texts)
        return Earlier(self._trie, len(texts), sum(len(text.ids) for text in texts), prompts)

    def add(self, model: LanguageModel, record: RunRecord) -> None:
        """Keeps what a run's speculative lane wrote first, if that came to its own end and the
        run's settings allow it.
        """
        options, written = _remembering(record.settings), _written(record)
        if options is None or not options["keep"] or not (written and written.whole):
            return
        prompt, ids, most = record.prompt_ids, written.token_ids, int(options["cached"])
        try:
            self._kept.add(text_key(model), prompt=prompt, ids=ids, most=most)
        except Problem as problem:  # the run is as good without it
            _log.warning("the text of run %s is not kept: %s", record.run, problem.message)

    def _can_follow(self, numbers: list[int]) -> bool:
        """Whether only the oldest texts are gone, and new ones stand behind the others."""
        counted = list(self._texts)
        numbers = [number for number in numbers if number >= self._since]
        stay = [number for number in counted if number in set(numbers)]
        gone = len(counted) - len(stay)
        return stay == counted[gone:] and stay == numbers[: len(stay)]

    def _count(self, texts: list[KeptText], *, report: Report, pause: Pause) -> None:
        step = max(1, len(texts) // _STEPS)
        for place, text in enumerate(texts):
            pause()
            if place % step == 0 and len(texts) > _STEPS:
                report(Progress("counting earlier texts", place, len(texts), "texts"))
            self._add(text)
            while self.byte_count > MOST_BYTES:
                self._halve(pause)

    def _halve(self, pause: Pause) -> None:
        """Counts the newer half of the texts anew: taking one off frees little where another
        repeats it.
        """
        texts = list(self._texts.values())
        gone = (len(texts) + 1) // 2
        self._trie, self._texts = CountTrie(self._trie.depth), {}
        self._since = texts[gone - 1].number + 1
        for text in texts[gone:]:
            pause()
            self._add(text)

    def _add(self, text: KeptText) -> None:
        self._trie.add(text.ids)
        self._texts[text.number] = text

    def _begin(self, of: tuple[str, int] | None, trie: CountTrie) -> None:
        self._of, self._trie, self._texts, self._since = of, trie, {}, 0

    def _forget(self, number: int) -> None:
        self._trie.remove(self._texts.pop(number).ids)


def text_key(model: LanguageModel) -> str:
    """What texts of a model are kept under: its name, and a hash of what its ids mean."""
    files = (model.folder / name for name in ("tokenizer.json", "tokenizer.model"))
    meaning = next((file.read_bytes() for file in files if file.is_file()), b"")
    return f"{model.name}-{hashlib.sha256(meaning).hexdigest()[:12]}"


def _newest(lengths: dict[int, int], most: int) -> list[int]:
    """The numbers of the newest texts, at most so many, that are not too long together."""
    newest = list(lengths)[-most:]
    together = accumulate(lengths[number] for number in reversed(newest))
    fit = sum(tokens <= MOST_TOKENS for tokens in together)
    return newest[len(newest) - fit :]


def _remembering(settings: RunSettings) -> dict[str, OptionValue] | None:
    """The options of a method that copies from earlier texts; None for one that does not."""
    method = Method.named(settings.method)
    options = method.filled(settings.method_options)
    return options if method.remembers and options["cached"] else None


def _written(record: RunRecord) -> Repetition | None:
    """What stands for the text of a run; None where nothing was begun."""
    return next(iter(record.repetitions("speculative")), None)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
