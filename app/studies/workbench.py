"""Keeps a pair's models loaded, and runs studies with them: for the engine and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

import torch

from app import files
from app.library.catalogue import Catalogue
from app.library.kept_texts import KeptTexts
from app.models.devices import device_memory
from app.models.exhausted import memory_guard
from app.models.machine import (
    PeakWatch,
    choose_device,
    device_name,
    devices_here,
    environment,
)
from app.models.offload import clear_left_behind
from app.models.pair import LoadedPair
from app.models.precision import refusals
from app.models.preparing import load_pair
from app.models.warm import WarmModels, collect
from app.run.auditing import Audit, Audited
from app.run.draft_lengths import check_lengths
from app.run.events import (
    ConditionsSeen,
    LaneEnded,
    Outcome,
    Progress,
    RunEnded,
    RunEvent,
    RunStarted,
)
from app.run.identities import violations
from app.run.methods import Method
from app.run.preparation import (
    DeviceMemory,
    EngineReady,
    Prepare,
    Prepared,
    Released,
    preparation,
)
from app.run.problems import Cancelled, ContextFull, Problem, release_frames
from app.run.record import RunRecord
from app.run.rules import check_rule
from app.run.settings import RunSettings
from app.run.tree_shape import pass_rows, tree_shape
from app.studies.audit import audit_lane
from app.studies.conditions import watch
from app.studies.conversation import Conversation
from app.studies.divergence import find_divergence
from app.studies.earlier_texts import EarlierTexts
from app.studies.head_steps import StepTimes
from app.studies.lanes import LaneMaker
from app.studies.orders import lane_events, unfinished
from app.studies.recording import kept_recordings, record_passes
from app.studies.run_costs import run_costs, with_costs
from app.studies.warming import warm_up, warm_up_head

Report = Callable[[Progress], None]
Pause = Callable[[], None]

_ANY_PROMPT = (0,)
"""Stands for a prompt where it does not matter which."""


class Workbench:
    """One pair at a time, one job at a time."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._pair: LoadedPair | None = None
        self._warm = WarmModels()
        self._earlier = EarlierTexts(KeptTexts(files.kept_texts_file()))
        clear_left_behind()

    def ready(self) -> EngineReady:
        """The library and the devices that models can run on."""
        chosen = device_name(choose_device(None))
        return EngineReady(str(torch.__version__), chosen, memory=self.memory())

    def memory(self) -> tuple[DeviceMemory, ...]:
        """What is free now on each device; what is loaded here would make room for other models."""
        models = [kept.model for kept in self._warm.models]
        held = [model.weight_bytes for model in models if model.device.type == "cpu"]
        return device_memory(sum(held))

    def refusals(self) -> dict[str, dict[str, str]]:
        """Why a kind of device here cannot take a precision, for each that it cannot take."""
        firsts: dict[str, torch.device] = {}
        for device in devices_here():
            firsts.setdefault(device.type, device)
        return {kind: refusals(device) for kind, device in firsts.items()}

    def prepare(self, wanted: Prepare, *, report: Report, pause: Pause) -> Prepared:
        """Fetches, converts, loads and proves the models of a pair, unless they are ready.

        Raises Problem for what a person can mend, Cancelled when `pause` does.
        """
        pair = self.loaded(wanted, report=report, pause=pause)
        context = pair.target.model.context_length
        opens_with = "mtp" if pair.mtp else self._catalogue.pair(wanted.pair).method
        return Prepared(
            pair=wanted.pair,
            target=pair.target.facts,
            draft=pair.drafter("model"),
            context_length=context,
            lossless=pair.exact,
            notes=pair.notes(Method.named(opens_with)),
            head=pair.drafter("head"),
        )

    def loaded(self, wanted: Prepare, *, report: Report, pause: Pause) -> LoadedPair:
        """The pair as wanted. Of what is loaded only that is loaded anew which is another now.

        Raises Problem and Cancelled; what had been read by then of a model is let go.
        """
        entry = self._catalogue.pair(wanted.pair)
        ready = self._pair.answering(wanted) if self._pair else None
        if ready is not None:
            return ready
        self._pair = None
        with _freeing(f"while {entry.title} was loaded"):
            self._pair = load_pair(
                self._catalogue, entry, wanted, warm=self._warm, report=report, pause=pause
            )
        return self._pair

    def run(
        self,
        run: str,
        settings: RunSettings,
        *,
        emit: Callable[[RunEvent], None],
        report: Report,
        pause: Pause,
        costing: bool = True,
        remembered: bool = True,
        conversation: Conversation | None = None,
        steps: StepTimes | None = None,
    ) -> None:
        """Runs these settings, telling every event from RunStarted to RunEnded. Without `costing`
        nothing is measured after the lanes: for a study that knows its costs. Unless `remembered`
        no later run copies from its text: for a study that runs a prompt several times. `steps`
        are what a study of many runs has measured of guesses.

        As a turn of a conversation it goes on with what the turns before have read. Raises Problem
        and Cancelled only before RunStarted; later ones become RunEnded.
        """
        check_settings(settings)
        pair = self.loaded(preparation(settings), report=report, pause=pause)
        maker = _lane_maker(pair, settings, conversation)
        maker = self._with_earlier(maker, report=report, pause=pause)
        texts = self._earlier if remembered else None
        with kept_recordings(pair):
            # Measured before anything is captured for the lanes: it needs more room than they do.
            with _freeing("while passes were measured"):
                maker = with_costs(maker, steps=steps, report=report, pause=pause)
            with _freeing("while passes were captured"):
                record_passes(maker, report=report, pause=pause)
            told = _events(run, maker, texts, costing=costing, report=report, pause=pause)
            for event in told:
                emit(event)

    def check(self, settings: RunSettings, *, report: Report, pause: Pause) -> None:
        """Loads the pair of these settings. Raises Problem if it could not run them, whatever the
        prompt, and Cancelled.
        """
        check_settings(settings)
        pair = self.loaded(preparation(settings), report=report, pause=pause)
        LaneMaker(pair, settings, _ANY_PROMPT, pair.target.model.context_length).check()

    def audit(self, wanted: Audit, *, report: Report, pause: Pause) -> Audited:
        """Compares what speculation writes with the target's own law.

        Raises Problem for what a person can mend, Cancelled for a stop before the first text.
        """
        wanted.check()
        check_settings(wanted.settings)
        pair = self.loaded(preparation(wanted.settings), report=report, pause=pause)
        maker = _lane_maker(pair, wanted.settings)
        maker = self._with_earlier(maker, report=report, pause=pause)
        with _freeing("in an audit"):
            maker = with_costs(maker, report=report, pause=pause)
            return audit_lane(maker, wanted, report=report, pause=pause)

    def _with_earlier(self, maker: LaneMaker, *, report: Report, pause: Pause) -> LaneMaker:
        """The same maker, knowing what earlier runs wrote if its method copies from that."""
        if maker.refusal:
            self._earlier.release_cleared()
            return maker
        target, settings = maker.pair.target.model, maker.settings
        found = self._earlier.found(target, settings, report=report, pause=pause)
        return replace(maker, earlier=found)

    def count_tokens(self, prompt: str, *, system: str = "", raw: bool = False) -> int:
        """Tokens of a prompt as the loaded target reads it. Raises Problem if nothing is loaded."""
        if self._pair is None:
            raise Problem("No model is loaded yet.", "Wait until the engine is ready.")
        return len(self._pair.tokenizer.encode_prompt(prompt, system=system, raw=raw))

    def release(self) -> Released:
        """Lets go of the models and gives their memory back."""
        models = [kept.model for kept in self._warm.models]
        said = Released(
            tuple(model.name for model in models), sum(model.weight_bytes for model in models)
        )
        models.clear()
        self._pair = None
        self._warm.release()
        self._earlier.release()
        return said


def check_settings(settings: RunSettings) -> None:
    """Raises Problem for settings that no pair could run, before any model is loaded."""
    settings.check()
    Method.named(settings.method).filled(settings.method_options)
    check_rule(settings)
    check_lengths(settings)


@contextmanager
def _freeing(what: str) -> Iterator[None]:
    """Exhausted memory becomes a Problem; whatever stops the work, what it took is given back."""
    try:
        with memory_guard(what):
            yield
    except (Cancelled, Problem) as stop:
        release_frames(stop)
        collect()
        raise


def _events(
    run: str,
    maker: LaneMaker,
    texts: EarlierTexts | None,
    *,
    costing: bool,
    report: Report,
    pause: Pause,
) -> Iterator[RunEvent]:
    """A run from RunStarted to RunEnded, whatever stops it; `texts` takes in what it wrote."""
    started = _run_started(run, maker)
    record = RunRecord.begin(started)
    yield started
    models = maker.pair.models
    devices = tuple(dict.fromkeys(model.device for model in models))
    peaks, conditions = tuple(map(PeakWatch, devices)), watch(devices, models)
    stop: Exception | None = None
    divergence = None
    try:
        with _freeing("while the models were warmed up"):
            _warm_up(maker, report=report, pause=pause)
        conditions.sample()
        for event in lane_events(maker, run, pause):
            record.apply(event)
            if isinstance(event, LaneEnded):
                for peak in peaks:
                    peak.sample()
                conditions.sample()
            yield event
        with _freeing("while the lanes' first difference was read again"):
            divergence = find_divergence(maker.pair.target.model, record)
    except (Cancelled, Problem) as reason:
        stop = reason
        release_frames(stop)
        collect()
    held = [peak.bytes for peak in peaks]
    repeated = maker.earlier.repeats(record) if maker.earlier else None
    flags = (*conditions.flags(), *filter(None, (repeated,)))
    seen = [ConditionsSeen(run, flags)] if flags else []
    for last in (*unfinished(record), *seen, *([divergence] if divergence else [])):
        record.apply(last)
        yield last
    if texts and not stop:
        texts.add(maker.pair.target.model, record)
    if costing and not stop:
        yield from run_costs(record, maker, report=report, pause=pause)
    yield _ended(record, stop, held)


def _lane_maker(
    pair: LoadedPair, settings: RunSettings, conversation: Conversation | None = None
) -> LaneMaker:
    """The maker of a run's lanes. Raises Problem for a prompt or a method that cannot work."""
    model = pair.target.model
    context = min(settings.context_length or model.context_length, model.context_length)
    ids = _prompt_ids(pair, settings)
    if len(ids) >= context:
        raise ContextFull(
            f"The prompt has {len(ids)} tokens, and the context holds {context}: nothing could be "
            "written.",
            "Shorten the prompt, or raise the context length if the model allows it.",
        )
    tokens = conversation.tokens(settings, pair.tokenizer) if conversation else 0
    maker = LaneMaker(pair, settings, tuple(ids), context, conversation, tokens)
    maker.check()
    return maker


def _prompt_ids(pair: LoadedPair, settings: RunSettings) -> Sequence[int]:
    """The ids to read: of the prompt, or of the run that is continued."""
    rows = pair.target.model.rows
    if not settings.continues:
        ids = pair.tokenizer.encode_prompt(
            settings.prompt, system=settings.system, earlier=settings.earlier, raw=settings.raw
        )
        if max(ids) >= rows:
            raise Problem(
                f"The tokenizer reads a token of the prompt as id {max(ids)}, and the model knows "
                f"ids below {rows}.",
                "Leave that token out, or fetch the model again: its tokenizer is another's.",
            )
        return ids
    if not all(0 <= token < rows for token in settings.prompt_ids):
        raise Problem(
            "The run to be continued was written by another model.",
            "Choose the pair that it was run with.",
        )
    return settings.prompt_ids


def _run_started(run: str, maker: LaneMaker) -> RunStarted:
    pair, settings = maker.pair, maker.settings
    return RunStarted(
        run=run,
        started=datetime.now().astimezone().isoformat(timespec="seconds"),
        settings=settings,
        environment=environment(pair.target.model.device),
        target=pair.target.facts,
        draft=pair.drafter(maker.drafter),
        prompt_ids=maker.prompt_ids,
        end_ids=pair.end_ids,
        lossless=maker.lossless,
        notes=maker.notes,
        draft_resident=pair.drafts_with != "nothing",
    )


def _warm_up(maker: LaneMaker, *, report: Report, pause: Pause) -> None:
    """Runs the widths of the lanes once with every model that they will use, and their trees."""
    report(Progress("warming up"))
    pair, settings, ids = maker.pair, maker.settings, maker.prompt_ids
    pause()
    if maker.refusal:
        warm_up(pair.target.model, ids, width=1)
        return
    width = pass_rows(settings, settings.draft_length)
    method = Method.named(settings.method)
    warm_up(pair.target.model, ids, width=width, branches=method.branches)
    pause()
    if pair.draft is not None and maker.drafter == "model":
        several = settings.draft_length + 1 if method.several_a_pass else 1
        warm_up(pair.draft.model, ids, width=several)
    if (beside := maker.beside) is not None:
        shape = tree_shape(settings)
        warm_up_head(beside, ids, breadth=shape.breadth if shape else 0)


def _ended(record: RunRecord, stop: Exception | None, held: Sequence[int | None]) -> RunEnded:
    """How the run ended, and the most that was held on each device, the target's first; counts
    that do not add up are a fault of ours and are raised as one.
    """
    repetitions = [repetition for lane in record.lanes for repetition in lane.repetitions]
    cap = record.settings.max_new_tokens
    found = [fault for repetition in repetitions for fault in violations(repetition, cap)]
    if found:
        raise RuntimeError(f"the counts of run {record.run} do not add up: {'; '.join(found[:3])}")
    if isinstance(stop, Problem):
        return RunEnded(record.run, "failed", stop.message, stop.remedy, *held)
    return RunEnded(record.run, "cancelled" if stop else _outcome(record), "", "", *held)


def _outcome(record: RunRecord) -> Outcome:
    """A stop ends the lanes quietly; the run was cancelled if one of them was."""
    finishes = [repetition.finish for lane in record.lanes for repetition in lane.repetitions]
    return "cancelled" if "cancelled" in finishes else "finished"
