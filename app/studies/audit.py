"""Is the law kept? Many texts of the speculative lane, against what the target itself would draw.

The target's own law of texts comes from its passes over every text that it can write, each as wide
as a round's own; the texts come from the whole loop, with a seed of its own each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from app.decoding.drivers import Sessions
from app.models.session import MAX_CHUNK
from app.run.auditing import LEVEL, Audit, Audited
from app.run.events import At, FirstToken, LaneEnded, Progress, RoundCommitted, Token
from app.run.problems import Cancelled, Problem
from app.studies.lanes import LaneMaker
from app.studies.recording import record_lane
from app.studies.teacher import Text, TextLaw, allows, law_of_texts
from app.theory.audit import audit
from app.theory.pearson import pearson, smallest_seen

Report = Callable[[Progress], None]
Pause = Callable[[], None]

_AT = At("audit", "speculative")
_STEPS = 200
"""How often, at most, the progress of an audit is told."""


@dataclass
class Sample:
    """Texts that were drawn, and what became of the guesses in them."""

    texts: Counter[Text] = field(default_factory=Counter)
    drafted: int = 0
    accepted: int = 0


def audit_lane(maker: LaneMaker, wanted: Audit, *, report: Report, pause: Pause) -> Audited:
    """Audits the speculative lane of these settings.

    A stop ends it early, and the answer says so. Raises Cancelled if nothing was drawn yet, Problem
    for what cannot be audited.
    """
    wanted.check()
    if len(maker.prompt_ids) > MAX_CHUNK:
        raise Problem(
            f"The prompt has {len(maker.prompt_ids)} tokens; an audit reads {MAX_CHUNK} at most.",
            "Shorten the prompt: the law is kept or broken behind any.",
        )
    report(Progress("reading the target's own law"))
    law = law_of_texts(maker, pause)
    sample = drawn(maker, wanted.runs, report=report, pause=pause)
    report(Progress("comparing the texts with the law"))
    return compared(maker, wanted, law, sample=sample)


def drawn(maker: LaneMaker, runs: int, *, report: Report, pause: Pause) -> Sample:
    """Texts of the speculative lane, one a seed, from sessions that rewind to the prompt each time.

    A stop ends it early. Raises Cancelled if nothing was drawn yet.
    """
    sample = Sample()
    sessions = maker.open_sessions(_AT)
    record_lane(maker, sessions, speculates=True, report=report, pause=pause)
    for done in range(runs):
        if done % max(1, runs // _STEPS) == 0:
            report(Progress("auditing", done, runs, "texts"))
        sessions.rewind(maker.sessions.prompts)
        if not _draw(with_seed(maker, done), sessions, sample, pause=pause):
            break
    if not sample.texts:
        raise Cancelled
    return sample


def with_seed(maker: LaneMaker, place: int) -> LaneMaker:
    """The same lane with the seed of the text at this place."""
    settings = maker.settings
    seed = settings.sampling.seed + place
    sampling = msgspec.structs.replace(settings.sampling, seed=seed)
    return replace(maker, settings=msgspec.structs.replace(settings, sampling=sampling))


def compared(maker: LaneMaker, wanted: Audit, law: TextLaw, *, sample: Sample) -> Audited:
    """What the counts of the texts say of the law."""
    counts = [sample.texts[text] for text in law]
    outside = sample.texts.total() - sum(counts)
    edge = sum(
        count
        for text, count in sample.texts.items()
        if text not in law and allows(maker, text, _never)
    )
    found = audit([*counts, outside], [*law.values(), 0.0])
    test = pearson([*counts, outside], [*law.values(), 0.0])
    return Audited(
        settings=wanted.settings,
        asked=wanted.runs,
        runs=found.samples,
        lossless=maker.lossless,
        drafted=sample.drafted,
        accepted=sample.accepted,
        texts=found.categories,
        tv=found.tv,
        bound=found.bound,
        impossible=found.impossible - edge,
        edge=edge,
        statistic=test.statistic,
        cells=test.cells,
        chance=test.chance,
        smallest_seen=_seen(test.cells, found.samples),
    )


def _draw(maker: LaneMaker, sessions: Sessions, sample: Sample, *, pause: Pause) -> bool:
    """Draws one text; False if it was stopped, and then nothing of it counts."""
    tokens: list[Token] = []
    drafted = accepted = 0
    for event in maker.run(_AT, sessions, pause):
        if isinstance(event, FirstToken):
            tokens.append(event.token)
        elif isinstance(event, RoundCommitted):
            tokens += event.round.committed
            drafted += event.round.drafted
            accepted += event.round.count("accepted")
        elif isinstance(event, LaneEnded) and event.finish == "cancelled":
            return False
    sample.texts[tuple(token.id for token in tokens)] += 1
    sample.drafted += drafted
    sample.accepted += accepted
    return True


def _never() -> None:
    """No pause: what a stop has left is compared to its end."""


def _seen(cells: int, samples: int) -> float | None:
    """The smallest total variation that is sure to be seen; None where none is."""
    if cells < 2:
        return None
    smallest = smallest_seen(cells, samples, level=LEVEL)
    return smallest if smallest < 1.0 else None
