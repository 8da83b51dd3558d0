"""Every number that is shown, defined once. Nothing to divide by gives None ("n/a"), never 0.

Chains of guesses. G drafted, A accepted and committed, T tested (A and the rejected), L rounds with
a draft, R committed rounds, M tokens committed after the first.

Guesses that branch are counted by level, so that every figure means what it means for a chain as
long as the tree is deep: a level is accepted where a guess of it is kept, rejected where the last
kept guess has children and none of them is, and ignored where the walk through the tree never came
to it. So G is the depth of the trees, place j of a draft is level j, a correction follows a
rejected level, and a bonus follows a kept guess without children. The guesses themselves are
counted apart: N in all, of which the rule tested some beside each other (`Round.nodes`,
`Round.tested_nodes`); a target pass has N + 1 rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from app.run.events import Phases, Round
from app.run.record import Repetition, RunRecord
from app.run.rules import same_text_due


class Counts(msgspec.Struct, frozen=True):
    """What became of every token of a lane."""

    first: int = 0
    accepted: int = 0
    corrected: int = 0
    bonus: int = 0
    plain: int = 0
    rejected: int = 0
    ignored: int = 0
    discarded: int = 0
    rounds: int = 0
    drafting_rounds: int = 0
    nodes: int = 0
    """N: guesses that branch, all of them; 0 for chains."""
    tested_nodes: int = 0
    """Of these the tested ones."""

    @property
    def drafted(self) -> int:
        """G: every guess, whatever became of it."""
        return self.accepted + self.rejected + self.ignored + self.discarded

    @property
    def tested(self) -> int:
        """T: guesses that the rule decided and that a stop did not overtake."""
        return self.accepted + self.rejected

    @property
    def committed_after_first(self) -> int:
        """M: tokens of the text that a round committed."""
        return self.accepted + self.corrected + self.bonus + self.plain

    @property
    def committed(self) -> int:
        """Tokens of the text, the first included."""
        return self.first + self.committed_after_first

    @property
    def acceptance_rate(self) -> float | None:
        """A/G: accepted of all guesses. Falls as the draft length grows."""
        return ratio(self.accepted, self.drafted)

    @property
    def conditional_acceptance(self) -> float | None:
        """A/T: accepted of the guesses that were tested. The α of the formulas."""
        return ratio(self.accepted, self.tested)

    @property
    def mean_accepted_prefix(self) -> float | None:
        """A/L: accepted guesses a round with a draft."""
        return ratio(self.accepted, self.drafting_rounds)

    @property
    def tokens_per_loop(self) -> float | None:
        """M/R: tokens a target pass. Plain decoding has exactly 1."""
        return ratio(self.committed_after_first, self.rounds)

    @property
    def nodes_per_loop(self) -> float | None:
        """N/L: guesses that branch a round with a draft; None where none do."""
        return ratio(self.nodes, self.drafting_rounds) if self.nodes else None

    @property
    def tested_nodes_per_loop(self) -> float | None:
        """Of these the tested ones."""
        return ratio(self.tested_nodes, self.drafting_rounds) if self.nodes else None

    def plus(self, rounds: Iterable[Round]) -> Counts:
        """These counts and those of more rounds."""
        tally = msgspec.structs.asdict(self)
        for round_ in rounds:
            for token in (*round_.committed, *round_.thrown):
                tally[token.status] += 1
            tally["rounds"] += 1
            tally["drafting_rounds"] += round_.drafted > 0
            if round_.nodes is not None:
                tally["nodes"] += round_.nodes
                tally["tested_nodes"] += round_.tested_nodes
        return Counts(**tally)

    def and_first(self, repetition: Repetition) -> Counts:
        """These counts and the first token of a repetition, if it has come."""
        first = self.first + (repetition.first is not None)
        return msgspec.structs.replace(self, first=first)


def counts(repetition: Repetition) -> Counts:
    """The counts of one repetition, as far as it has come."""
    return _sums(repetition).counts.and_first(repetition)


def total_counts(repetitions: Iterable[Repetition]) -> Counts:
    """The counts of several repetitions taken together."""
    found = [msgspec.structs.astuple(counts(repetition)) for repetition in repetitions]
    return Counts(*(sum(column) for column in zip(*found, strict=True)))


def leniency_share(repetitions: Iterable[Repetition]) -> float | None:
    """The expected share of tokens kept by leniency: the mean over guesses that were tested of
    max(0, chance of the rule - min(1, p/q)); None for a lossless rule, which has no excess.
    """
    excess = [
        max(0.0, token.accept_probability - token.strict_probability)
        for repetition in repetitions
        for round_ in repetition.rounds
        for token in (*round_.committed, *round_.thrown)
        if token.accept_probability is not None and token.strict_probability is not None
    ]
    return sum(excess) / len(excess) if excess else None


class PositionAcceptance(msgspec.Struct, frozen=True):
    """How often the guess at one place of the draft (1 is the first) was accepted."""

    position: int
    reached: int
    """Rounds in which this guess was tested."""
    accepted: int
    drafting_rounds: int

    @property
    def unconditional(self) -> float | None:
        """Accepted of all rounds with a draft (vLLM's per-position rate)."""
        return ratio(self.accepted, self.drafting_rounds)

    @property
    def conditional(self) -> float | None:
        """Accepted of the rounds in which all guesses before it were."""
        return ratio(self.accepted, self.reached)


def acceptance_by_position(rounds: Sequence[Round]) -> list[PositionAcceptance]:
    """Acceptance at each place of the draft, first place first."""
    drafting = [round_ for round_ in rounds if round_.drafted]
    kept = [round_.count("accepted") for round_ in drafting]
    tested = [n + round_.count("rejected") for n, round_ in zip(kept, drafting, strict=True)]
    return [
        PositionAcceptance(
            position=place,
            reached=sum(t >= place for t in tested),
            accepted=sum(n >= place for n in kept),
            drafting_rounds=len(drafting),
        )
        for place in range(1, max(tested, default=0) + 1)
    ]


def decode_seconds(repetition: Repetition) -> float:
    """Seconds from the first token to the last commit, on the lane's own clock."""
    return _sums(repetition).seconds


def decode_speed(repetition: Repetition) -> float | None:
    """M / decode seconds, in tokens a second."""
    return ratio(counts(repetition).committed_after_first, decode_seconds(repetition))


def total_seconds(repetition: Repetition) -> float | None:
    """Time to first token and decode seconds together."""
    if repetition.time_to_first_token is None:
        return None
    return repetition.time_to_first_token + decode_seconds(repetition)


def phase_seconds(repetition: Repetition) -> Phases:
    """Where the seconds of all rounds went."""
    return Phases(
        **{
            name: sum(getattr(round_.phases, name) for round_ in repetition.rounds)
            for name in Phases.__struct_fields__
        }
    )


def chunk_gaps(repetition: Repetition) -> list[float]:
    """Seconds between two visible chunks of text: the round that made the second one.

    A round that shows nothing new (half a character, a possible stop string) adds to the next gap.
    """
    gaps: list[float] = []
    written = shown = len(repetition.first.text) if repetition.first else 0
    waited = 0.0
    for round_ in repetition.rounds:
        waited += round_.phases.total
        written += sum(len(token.text) for token in round_.committed)
        last = round_ is repetition.rounds[-1]
        visible = written - (repetition.dropped if last else round_.held_back)
        if visible > shown:
            gaps += [waited] if shown else []
            shown, waited = visible, 0.0
    return gaps


def seconds_per_token(repetition: Repetition) -> list[float]:
    """Seconds of a round / tokens committed in it, once for each of these tokens."""
    return [
        round_.phases.total / len(round_.committed)
        for round_ in repetition.rounds
        for _ in round_.committed
    ]


def share_outside_models(repetition: Repetition) -> float | None:
    """The share of the decode seconds that no model call accounts for."""
    phases = phase_seconds(repetition)
    return ratio(phases.outside_models, phases.total)


class Spread(msgspec.Struct, frozen=True):
    """Values of paired repetitions: their median and range."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle value."""
        return median(self.values)

    @property
    def low(self) -> float:
        """The smallest value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest value."""
        return max(self.values)

    @property
    def single(self) -> bool:
        """Whether there is one pair only, and so no spread to speak of."""
        return len(self.values) == 1


def decode_speedup(record: RunRecord) -> Spread | None:
    """Ratio of decode speeds, speculative to baseline, over paired repetitions."""
    return _spread_of_ratios(
        [(decode_speed(fast), decode_speed(slow)) for fast, slow in lane_pairs(record)]
    )


def request_speedup(record: RunRecord) -> Spread | None:
    """Ratio of total times, baseline to speculative, over pairs that ran to their end."""
    totals = [
        (total_seconds(slow), total_seconds(fast))
        for fast, slow in lane_pairs(record)
        if fast.whole and slow.whole
    ]
    return _spread_of_ratios(totals)


class SameText(msgspec.Struct, frozen=True):
    """Whether two lanes wrote the same tokens, and where they first differ."""

    compared: int
    first_difference: int | None
    """Index of the first differing token, or None."""

    @property
    def same(self) -> bool:
        """Whether all compared tokens are equal."""
        return self.first_difference is None


def same_text(record: RunRecord) -> SameText | None:
    """Compares the lanes of the first pair; None where the lanes need not be equal, or have not
    both begun to write.

    With a draw (temperature above 0) both lanes follow the same law, not the same text, unless
    they draw with the same noise; a lossy rule has a text of its own.
    """
    pairs = lane_pairs(record)
    if not pairs or not same_text_due(record.settings):
        return None
    fast, slow = pairs[0][0].token_ids, pairs[0][1].token_ids
    shared = min(len(fast), len(slow))
    difference = next((i for i in range(shared) if fast[i] != slow[i]), None)
    whole = all(repetition.whole for repetition in pairs[0])
    if difference is None and whole and len(fast) != len(slow):
        difference = shared
    if not shared and difference is None:
        return None
    return SameText(compared=shared, first_difference=difference)


def ratio(above: float, below: float) -> float | None:
    """`above / below`, or None where there is nothing to divide by."""
    return above / below if below else None


def lane_pairs(record: RunRecord) -> list[tuple[Repetition, Repetition]]:
    """The repetitions of both lanes that belong together."""
    return list(
        zip(record.repetitions("speculative"), record.repetitions("baseline"), strict=False)
    )


class _Sums(msgspec.Struct, frozen=True):
    """Sums over the first rounds of a repetition."""

    counts: Counts = Counts()
    seconds: float = 0.0


def _sums(repetition: Repetition) -> _Sums:
    """The sums over all rounds so far. A growing repetition remembers them, so that its figures can
    be asked for many times a second: only rounds that came since are added.
    """
    known: _Sums = repetition.__dict__.get("sums", _Sums())
    fresh = repetition.rounds[known.counts.rounds :]
    if fresh:
        seconds = known.seconds + sum(round_.phases.total for round_ in fresh)
        known = repetition.__dict__["sums"] = _Sums(known.counts.plus(fresh), seconds)
    return known


def _spread_of_ratios(pairs: Iterable[tuple[float | None, float | None]]) -> Spread | None:
    """The ratios of the pairs that have both of their values."""
    values = tuple(above / below for above, below in pairs if above and below)
    return Spread(values) if values else None
