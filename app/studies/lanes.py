"""Opens a lane of a run: an empty session each time, the same prompt and settings for both."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from app.decoding.clock import Clock, clock_for
from app.decoding.commit import Text
from app.decoding.contracts import (
    AsksForChains,
    AsksForTrees,
    Branched,
    Chained,
    Proposer,
    Verifier,
)
from app.decoding.draft_length import DraftLength, Fixed
from app.decoding.drivers import Pause, Sessions, run_lane
from app.decoding.loop import LaneEvent, LaneSetup, decode
from app.decoding.proposers import Surroundings, make_proposer
from app.decoding.proposers.nothing import Nothing
from app.decoding.verifiers import make_verifier
from app.models.early_exit import EarlyExit
from app.models.loaded_head import LoadedHead
from app.models.pair import LoadedPair
from app.models.paired_session import Beside
from app.run.cost import PassCosts
from app.run.events import At, LaneEnded
from app.run.methods import Drafter, Method
from app.run.rules import Rule, is_lossy
from app.run.settings import RunSettings
from app.studies.conversation import Conversation
from app.studies.earlier_texts import Earlier
from app.studies.lane_sessions import LaneSessions, ToldPrompt
from app.studies.lengths import make_draft_length, make_draft_stop


@dataclass(frozen=True, slots=True)
class LaneMaker:
    """Makes the lanes of one run."""

    pair: LoadedPair
    settings: RunSettings
    prompt_ids: tuple[int, ...]
    context: int
    conversation: Conversation | None = None
    """Keeps the sessions for the turns that follow; None for a run that stands alone."""
    conversation_tokens: int = 0
    """Tokens that the whole conversation may take."""
    costs: PassCosts | None = None
    """What passes cost here, for a run that chooses its draft lengths by them."""
    earlier: Earlier | None = None
    """What earlier runs wrote, for a method that copies from it: the same for every lane."""
    told: ToldPrompt = field(default_factory=ToldPrompt)
    """The prompt in the draft's ids, kept from lane to lane."""

    def open(self, at: At, pause: Pause) -> Iterator[LaneEvent]:
        """The events of a lane; nothing runs before the first is asked for.

        Its sessions are empty, but for what the turns before have read of the prompt.
        """
        yield from self.run(at, self.open_sessions(at), pause)

    def open_sessions(self, at: At) -> Sessions:
        """Sessions for a lane, as `open` has them."""
        speculates = self._speculates(at)
        beside = self.beside if speculates else None
        return Sessions(self.sessions.open(at, beside, speculates=speculates))

    @property
    def sessions(self) -> LaneSessions:
        """What opens sessions for its lanes."""
        return LaneSessions(
            self.pair,
            self.settings,
            self.prompt_ids,
            self.context,
            self.conversation,
            self.conversation_tokens,
            self.told,
        )

    def run(self, at: At, sessions: Sessions, pause: Pause) -> Iterator[LaneEvent]:
        """The events of a lane in these sessions, which hold nothing but a start of the prompt."""
        setup = self._setup(at, reused=sessions.held("target"))
        clocks = [clock for clock in (setup.clock, setup.draft_clock) if clock is not None]
        for event in run_lane(decode(setup), sessions, _off_the_clock(pause, *clocks)):
            if isinstance(event, LaneEnded):
                event = msgspec.structs.replace(event, cache_bytes=sessions.byte_count)
            yield event

    @property
    def whole(self) -> Chained | Branched | None:
        """What chains or trees of guesses the run asks a session for as a whole; None where it asks
        for none.
        """
        proposer = self._proposer(At("whole", "speculative"), prompt=())
        if isinstance(proposer, AsksForTrees):
            return proposer.trees
        return proposer.chains if isinstance(proposer, AsksForChains) else None

    def check(self) -> None:
        """Raises Problem now for a method or a rule that could not be made later."""
        self.pair.check_vocabulary(self.method)
        at = At("check", "speculative")
        # The lane itself would have its proposer take the whole prompt in.
        _ = self.rule, self._proposer(at, prompt=()), self._draft_length(at)

    @property
    def rule(self) -> Verifier:
        """The rule that decides in both lanes."""
        settings = self.settings
        return make_verifier(
            settings.rule,
            settings.sampling,
            settings.rule_options,
            draft_length=settings.draft_length,
        )

    @property
    def lossless(self) -> bool:
        """Whether the text keeps the target's law: the rule promises it, the models can hold it."""
        return self.pair.exact and not is_lossy(self.settings)

    @property
    def method(self) -> Method:
        """How the run guesses."""
        return Method.named(self.settings.method)

    @property
    def drafter(self) -> Drafter:
        """What the run's method asks for guesses."""
        return self.method.drafter

    @property
    def refusal(self) -> str:
        """Why this run's method cannot speculate with this pair; empty if it can."""
        return self.pair.refusal(self.method)

    @property
    def early_exit(self) -> EarlyExit | None:
        """The layers of the target that guess in this run; None where the method asks for others.

        Raises Problem for more layers than there are.
        """
        settings = self.settings
        if self.drafter != "early-exit" or self.refusal:
            return None
        options = self.method.filled(settings.method_options)
        return EarlyExit(self.pair.target.model, int(options["exit_layer"]))

    @property
    def beside(self) -> Beside | None:
        """What guesses beside the target's session in this run; None for a model of its own."""
        return self.early_exit or self.pair.beside(self.drafter)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before trusting a figure of this run."""
        exits, mtp = self.early_exit, self.pair.mtp
        found = [*self.pair.notes(self.method)]
        found += [f"Guessed by {exits.name}."] if exits else []
        if mtp is not None and self.drafter == "mtp" and not self.refusal:
            chained = mtp.note(self.settings.draft_length)
            found += [chained] if chained else []
        found += [self.earlier.note] if self.earlier else []
        return tuple(found)

    @property
    def capacity(self) -> int:
        """Tokens that a session has to hold in this run."""
        return self.sessions.capacity

    @property
    def _end_ids(self) -> tuple[int, ...]:
        """The ids that end this run's text, and so its drafts."""
        return () if self.settings.ignore_end_of_text else self.pair.end_ids

    def _speculates(self, at: At) -> bool:
        return at.lane == "speculative" and not self.refusal

    def _setup(self, at: At, *, reused: int = 0) -> LaneSetup:
        settings = self.settings
        text = Text(
            ids=list(self.prompt_ids),
            detokenizer=self.pair.tokenizer.detokenizer(silent=self.pair.end_ids),
            max_new_tokens=settings.max_new_tokens,
            end_ids=self._end_ids,
            stop_strings=settings.stop_strings,
        )
        if settings.continues:
            text.resume()
        return LaneSetup(
            at=at,
            text=text,
            proposer=self._proposer(at, prompt=self.prompt_ids),
            verifier=self.rule,
            draft_length=self._draft_length(at),
            sampling=settings.sampling,
            clock=clock_for(self.pair.target.model.device),
            device=self.pair.target.model.device,
            draft_clock=self._draft_clock(),
            context=self.context,
            detail=settings.detail,
            reused=reused,
            first_draw=len(self.prompt_ids) if settings.continues or settings.earlier else 0,
        )

    def _draft_clock(self) -> Clock | None:
        """The clock of a draft model that is on another device than its target."""
        target, draft = self.pair.target.model, self.pair.draft
        if draft is None or self.drafter != "model" or draft.model.device == target.device:
            return None
        return clock_for(draft.model.device)

    def _proposer(self, at: At, *, prompt: tuple[int, ...]) -> Proposer:
        """The lane's proposer, which has taken the prompt in where it copies from it."""
        if not self._speculates(at):
            return Nothing()
        settings, sessions = self.settings, self.sessions
        exits = self.early_exit
        draft = exits.target if exits else self.pair.draft.model if self.pair.draft else None
        around = Surroundings(
            sampling=settings.sampling,
            end_ids=self._end_ids,
            prompt_length=len(self.prompt_ids),
            device=self.pair.target.model.device,
            draft_device=draft.device if draft else None,
            widths=self.pair.exit_widths if exits else self.pair.widths,
            own_widths=self.pair.own_widths,
            draft_context=draft.context_length if draft else 0,
            draft_room=sessions.draft_room.needed if sessions.bridge else None,
            bridge=sessions.bridge,
            retold=sessions.retold,
            head=self.pair.beside(self.drafter),
            width=self.pair.target.model.width,
            chained=self._chained,
            shared_noise=Rule.named(settings.rule).same_text,
            stop=make_draft_stop(settings),
            prompt=prompt,
            earlier=self.earlier.trie if self.earlier else None,
        )
        return make_proposer(settings.method, settings.method_options, around)

    @property
    def _chained(self) -> bool:
        """Whether sessions of what guesses may make whole chains of guesses, or trees: a draft
        model's, a head's or the first layers', where passes are of fixed shape.
        """
        beside, draft = self.beside, self.pair.draft
        if beside is not None:
            chained = isinstance(beside, LoadedHead | EarlyExit)
            return chained and beside.target.passes.mode != "eager"
        return draft is not None and draft.model.passes.mode != "eager"

    def _draft_length(self, at: At) -> DraftLength:
        if at.lane == "baseline":
            return Fixed(0)
        if self.refusal:
            return Fixed(0, "speculation refused")
        return make_draft_length(self.settings, self.costs)


def _off_the_clock(pause: Pause, *clocks: Clock) -> Pause:
    """The same pause, whose seconds enter no figure: questions are answered in it."""

    def paused() -> None:
        start = time.perf_counter()
        try:
            pause()
        finally:
            for clock in clocks:
                clock.skip(time.perf_counter() - start)

    return paused
