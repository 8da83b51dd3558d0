"""Records the passes of a run's lanes before any of them is timed, where they are replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from app.decoding.contracts import Branched, Chained, Role
from app.decoding.drivers import Sessions
from app.models.pair import LoadedPair
from app.run.events import At, LaneName, Progress
from app.run.settings import RunSettings
from app.run.tree_shape import pass_rows
from app.studies.lanes import LaneMaker

Report = Callable[[Progress], None]
Pause = Callable[[], None]

_UNREAD = 2
"""Tokens that a draft model reads at once: what the target wrote behind a draft that was kept whole
is one more than its last guess.
"""


@contextmanager
def kept_recordings(pair: LoadedPair) -> Iterator[None]:
    """While it lasts, what is recorded for one session of a model or a head serves those after
    it.
    """
    with ExitStack() as stack:
        for model in pair.models:
            stack.enter_context(model.passes.kept())
        if pair.head is not None:
            stack.enter_context(pair.head.rooms.kept())
        yield


def record_passes(maker: LaneMaker, *, report: Report, pause: Pause) -> None:
    """Records the passes of every lane, as many lanes at once as the run has open at once.

    Within `kept_recordings`, the lanes find them. A model whose passes cannot be recorded reads
    eagerly from then on, and its facts say why. Raises Cancelled when `pause` does.
    """
    if all(model.passes.mode != "graphs" for model in maker.pair.models):
        return
    settings = maker.settings
    lanes: list[LaneName] = ["speculative", "baseline"] if settings.baseline else ["speculative"]
    open_at_once = []
    for lane in lanes:
        sessions = maker.open_sessions(At("recording", lane, turn=settings.turn))
        record_lane(maker, sessions, speculates=lane == "speculative", report=report, pause=pause)
        if settings.order == "interleaved":
            open_at_once.append(sessions)
        del sessions


def record_lane(
    maker: LaneMaker, sessions: Sessions, *, speculates: bool, report: Report, pause: Pause
) -> None:
    """Records the passes of one lane's sessions, and the chains and trees of guesses that it asks
    for.

    Raises Cancelled when `pause` does.
    """

    def advance(done: int, total: int) -> None:
        pause()
        report(Progress("capturing passes", done, total, "passes"))

    prompts = maker.sessions.prompts
    for role, rows in _rows(maker, speculates=speculates).items():
        sessions.prepare(role, rows, behind=len(prompts[role]) - 1, advance=advance)
    whole = maker.whole if speculates else None
    if whole is None:
        return
    lengths = whole_lengths(maker.settings, whole)
    behind = len(prompts[whole.role]) - 1
    if isinstance(whole, Branched):
        sessions.prepare_trees(whole.role, lengths, whole.how, behind=behind, advance=advance)
    else:
        sessions.prepare_chain(whole.role, lengths, whole.how, behind=behind, advance=advance)


def whole_lengths(settings: RunSettings, whole: Chained | Branched) -> tuple[int, ...]:
    """How many guesses of a chain a run asks for as a whole, or levels of a tree: the draft length,
    or any up to it where a policy chooses. What is left of a text at its end may be less: then each
    guess, or level, is asked for alone.
    """
    most = settings.draft_length
    if isinstance(whole, Chained) and whole.longest is not None:
        most = min(most, whole.longest)
    if settings.draft_length_policy == "fixed":
        return (most,) if most else ()
    return tuple(range(1, most + 1))


def _rows(maker: LaneMaker, *, speculates: bool) -> dict[Role, int]:
    """Most rows that passes of each model's session have in a round."""
    settings, method = maker.settings, maker.method
    if not speculates or maker.refusal:
        return {"target": 1}
    rows: dict[Role, int] = {"target": pass_rows(settings, settings.draft_length)}
    if maker.pair.draft is not None and maker.drafter == "model":
        several = settings.draft_length + 1
        rows["draft"] = several if method.several_a_pass else _UNREAD
        if method.any_vocabulary:  # a token of the target may be some of the draft's
            rows["draft"] = 2 * several
    return rows
