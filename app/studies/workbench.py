"""Keeps a pair's models loaded, and runs studies with them: for the engine and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from app import files
from app.library.catalogue import Catalogue
from app.library.kept_texts import KeptTexts
from app.models.devices import device_memory
from app.models.machine import choose_device, device_name, devices_here
from app.models.offload import clear_left_behind
from app.models.pair import LoadedPair
from app.models.precision import refusals
from app.models.preparing import load_pair
from app.models.warm import WarmModels
from app.run.auditing import Audit, Audited
from app.run.draft_lengths import check_lengths
from app.run.events import Progress, RunEvent
from app.run.methods import Method
from app.run.preparation import (
    DeviceMemory,
    EngineReady,
    Prepare,
    Prepared,
    Released,
    preparation,
)
from app.run.problems import ContextFull, Problem
from app.run.rules import check_rule
from app.run.settings import RunSettings
from app.studies.audit import audit_lane
from app.studies.conversation import Conversation
from app.studies.earlier_texts import EarlierTexts
from app.studies.freeing import freeing
from app.studies.head_steps import StepTimes
from app.studies.lanes import LaneMaker
from app.studies.recording import kept_recordings, record_passes
from app.studies.run_costs import with_costs
from app.studies.run_events import run_events

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
        with freeing(f"while {entry.title} was loaded"):
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
            with freeing("while passes were measured"):
                maker = with_costs(maker, steps=steps, report=report, pause=pause)
            with kept_recordings(pair):  # what was lacking for that may suffice for the lanes
                with freeing("while passes were captured"):
                    record_passes(maker, report=report, pause=pause)
                for event in run_events(
                    run, maker, texts, costing=costing, report=report, pause=pause
                ):
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
        with freeing("in an audit"):
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
