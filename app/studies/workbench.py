"""Keeps a pair's models loaded, and runs studies with them: for the engine and the terminal."""

from __future__ import annotations

import gc
from collections.abc import Callable
from datetime import datetime

import msgspec

from app.library.catalogue import Catalogue
from app.models.machine import environment, peak_bytes, release_memory, start_peak
from app.models.pair import LoadedPair, Preparation
from app.models.preparing import load_pair
from app.models.session import Block
from app.run.events import ModelFacts, Outcome, Progress, RunEnded, RunEvent, RunStarted
from app.run.methods import Method
from app.run.metrics import violations
from app.run.problems import Cancelled, Problem
from app.run.record import RunRecord
from app.run.settings import RunSettings
from app.studies.lanes import LaneMaker
from app.studies.orders import lane_events, unfinished

Report = Callable[[Progress], None]
Pause = Callable[[], None]


class Readiness(msgspec.Struct, frozen=True):
    """What is loaded."""

    pair: str
    target: ModelFacts
    draft: ModelFacts | None
    context_length: int
    lossless: bool
    notes: tuple[str, ...]


class Workbench:
    """One pair at a time, one job at a time."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._pair: LoadedPair | None = None

    def prepare(self, wanted: Preparation, *, report: Report, pause: Pause) -> Readiness:
        """Fetches, converts, loads and proves the models of a pair, unless they are ready.

        Raises Problem for what a person can mend, Cancelled when `pause` does.
        """
        pair = self._ready(wanted, report=report, pause=pause)
        context = pair.target.model.context_length
        facts = pair.target.facts, pair.draft.facts if pair.draft else None
        return Readiness(wanted.pair, *facts, context, pair.exact, pair.notes)

    def run(
        self,
        run: str,
        settings: RunSettings,
        *,
        emit: Callable[[RunEvent], None],
        report: Report,
        pause: Pause,
    ) -> None:
        """Runs these settings, telling every event from RunStarted to RunEnded.

        Raises Problem and Cancelled only before RunStarted; later ones become RunEnded.
        """
        settings.check()
        Method.named(settings.method).filled(settings.method_options)
        pair = self._ready(_preparation(settings), report=report, pause=pause)
        maker = _lane_maker(pair, settings)
        started = _run_started(run, maker)
        record = RunRecord.begin(started)
        emit(started)

        def tell(event: RunEvent) -> None:
            record.apply(event)
            emit(event)

        start_peak(pair.target.model.device)
        stop: Exception | None = None
        try:
            _warm_up(maker, report=report, pause=pause)
            for event in lane_events(maker, run, pause):
                tell(event)
        except (Cancelled, Problem) as reason:
            stop = reason
        for event in unfinished(record, stop):
            tell(event)
        tell(_ended(record, stop, maker))

    def count_tokens(self, prompt: str, *, system: str = "", raw: bool = False) -> int:
        """Tokens of a prompt as the loaded target reads it. Raises Problem if nothing is loaded."""
        if self._pair is None:
            raise Problem("No model is loaded yet.", "Wait until the engine is ready.")
        return len(self._pair.tokenizer.encode_prompt(prompt, system=system, raw=raw))

    def release(self) -> None:
        """Lets go of the models and gives their memory back."""
        self._pair = None
        gc.collect()
        release_memory()

    def _ready(self, wanted: Preparation, *, report: Report, pause: Pause) -> LoadedPair:
        """The pair as wanted; reloaded only if it is not what is loaded."""
        entry = self._catalogue.pair(wanted.pair)
        if self._pair is None or self._pair.wanted != wanted:
            self.release()
            self._pair = load_pair(self._catalogue, entry, wanted, report=report, pause=pause)
        return self._pair


def _preparation(settings: RunSettings) -> Preparation:
    return Preparation(settings.pair, settings.precision, settings.draft_precision, settings.device)


def _lane_maker(pair: LoadedPair, settings: RunSettings) -> LaneMaker:
    """The maker of a run's lanes. Raises Problem for a prompt or a method that cannot work."""
    model = pair.target.model
    context = min(settings.context_length or model.context_length, model.context_length)
    ids = pair.tokenizer.encode_prompt(settings.prompt, system=settings.system, raw=settings.raw)
    if len(ids) >= context:
        raise Problem(
            f"The prompt has {len(ids)} tokens, and the context holds {context}: nothing could be "
            "written.",
            "Shorten the prompt, or raise the context length if the model allows it.",
        )
    maker = LaneMaker(pair, settings, tuple(ids), context)
    maker.check()
    return maker


def _run_started(run: str, maker: LaneMaker) -> RunStarted:
    pair, settings = maker.pair, maker.settings
    return RunStarted(
        run=run,
        started=datetime.now().astimezone().isoformat(timespec="seconds"),
        settings=settings,
        environment=environment(pair.target.model.device),
        target=pair.target.facts,
        draft=pair.draft.facts if pair.draft and maker.drafts_with_model else None,
        prompt_ids=maker.prompt_ids,
        end_ids=pair.end_ids,
        lossless=pair.exact and maker.rule.lossless,
        notes=pair.notes,
    )


def _warm_up(maker: LaneMaker, *, report: Report, pause: Pause) -> None:
    """Runs both widths once with every model, so that no lane pays for being first."""
    report(Progress("warming up"))
    for loaded in (maker.pair.target, maker.pair.draft):
        if loaded is None:
            continue
        pause()
        width = maker.settings.draft_length + 1 if loaded is maker.pair.target else 1
        text = [token % loaded.model.rows for token in maker.prompt_ids[:8]]
        session = loaded.model.open(len(text) + width)
        session.read(text, rows=1)
        session.read(text, rows=1)
        guesses = Block([0] * (width - 1), device=loaded.model.device)
        session.read(text, guesses, rows=width)


def _ended(record: RunRecord, stop: Exception | None, maker: LaneMaker) -> RunEnded:
    """How the run ended; counts that do not add up are a fault of ours and are raised as one."""
    repetitions = [repetition for lane in record.lanes for repetition in lane.repetitions]
    found = [fault for repetition in repetitions for fault in violations(repetition)]
    if found:
        raise RuntimeError(f"the counts of run {record.run} do not add up: {'; '.join(found[:3])}")
    peak = peak_bytes(maker.pair.target.model.device)
    if isinstance(stop, Problem):
        return RunEnded(record.run, "failed", stop.message, stop.remedy, peak)
    return RunEnded(record.run, "cancelled" if stop else _outcome(record), peak_bytes=peak)


def _outcome(record: RunRecord) -> Outcome:
    """A stop ends the lanes quietly; the run was cancelled if one of them was."""
    finishes = [repetition.finish for lane in record.lanes for repetition in lane.repetitions]
    return "cancelled" if "cancelled" in finishes else "finished"
