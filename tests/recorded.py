"""Runs made by hand: events and records, without a model."""

from __future__ import annotations

from collections.abc import Iterator

from app.run.cost import PassCosts
from app.run.events import (
    At,
    Environment,
    FirstToken,
    LaneEnded,
    LaneStarted,
    ModelFacts,
    PassesCosted,
    Phases,
    PromptRead,
    Round,
    RoundCommitted,
    RunEnded,
    RunEvent,
    RunStarted,
    Token,
)
from app.run.record import RunRecord
from app.run.settings import RunSettings, Sampling

HOSTILE = (
    "\n",
    "\r\n",
    "\r",
    '"',
    ",",
    "=cmd|' /C calc'!A0",
    "-1",
    "+1",
    "@SUM(A1)",
    "\t",
    "'",
    "''=1",
    "🚫",
    "\x00",
    "␀",
    "␀0",
    "\x00␀\x00",
    "\x1b[2J\x1b]0;title\x07",
    "\x9b31m",
    "```\n````\n# heading",
    "[bold red]x[/bold red] [link=http://x]y[/link]",
    "<img src=x onerror=1><script>alert(1)</script> & a<b",
    "</div></details></script><script>document.title='acted'</script>",
    "|a|b|",
    "\u202eevil",
    "\u2067\u200fمرحبا\u061c",
    "＝1",
    ":smile:",
    "",
)
"""Texts that some place would act on."""

TARGET = ModelFacts(
    name="target",
    folder="models/target",
    precision="fp32",
    precision_note="re-quantised from Q4_1",
    device="cpu",
    parameters=1000,
    weight_bytes=4000,
    vocabulary=64,
    context_length=128,
    attention="sdpa",
    rewinds=True,
    rewind_note="",
    rows_independent=True,
    rows_note="",
)


def started(**settings) -> RunStarted:
    """The first event of a run with these settings."""
    return RunStarted(
        run="r",
        started="2026-01-02T03:04:05+01:00",
        settings=RunSettings(**{"pair": "pair", "prompt": "Hello", **settings}),
        environment=Environment("0.1", "3.11", "here", "cpu", "cpu", 2, {"torch": "2"}),
        target=TARGET,
        draft=None,
        prompt_ids=(5, 6),
        end_ids=(0,),
        lossless=True,
    )


def full_round(index: int, ids: list[int], *, seconds: float = 1.0, texts=None) -> Round:
    """A round in which every guess was accepted; one id alone is a round without a draft."""
    texts = texts or [f"<{each}>" for each in ids]
    named = list(zip(ids, texts, strict=True))
    kept = tuple(Token(each, text, "accepted", "ngram") for each, text in named[:-1])
    last = Token(*named[-1], "bonus" if kept else "plain")
    return Round(index, 8, "draft length", (*kept, last), (), Phases(verify=seconds))


def lane_events(
    lane, rounds, *, repetition=0, finish="length", first=1, seconds=1.0
) -> Iterator[RunEvent]:
    """The events of a lane whose rounds committed these ids."""
    at = At("r", lane, repetition)
    yield LaneStarted(at)
    yield PromptRead(at, 2, 2)
    yield FirstToken(at, Token(first, f"<{first}>", "first"), 0.5)
    for index, ids in enumerate(rounds):
        yield RoundCommitted(at, full_round(index, ids, seconds=seconds))
    yield LaneEnded(at, finish)


def run_events(**settings) -> list[RunEvent]:
    """A whole run of two lanes: 2 s against 4 s of decoding, with a rejection."""
    at = At("r", "speculative")
    corrected = Round(
        index=1,
        limit=4,
        limited_by="draft length",
        committed=(
            Token(4, "<4>", "accepted", "ngram", 0.5, 1.0, 0.5, 0.25, "rule"),
            Token(5, "<5>", "corrected", None, 0.75),
        ),
        thrown=(
            Token(8, "<8>", "rejected", "ngram", -0.0, 1.0, 0.0, 0.5),
            Token(9, "<9>", "ignored", "ngram"),
        ),
        phases=Phases(draft=0.25, verify=0.75),
        draft_stop="no match",
    )
    fast = list(lane_events("speculative", [[2, 3]]))
    fast.insert(-1, RoundCommitted(at, corrected))
    slow = lane_events("baseline", [[2], [3], [4], [5]])
    return [started(**settings), *fast, *slow, RunEnded("r", "finished")]


def record_of(*events, **settings) -> RunRecord:
    """The record that these events make."""
    record = RunRecord.begin(started(**settings))
    for event in events:
        record.apply(event)
    return record


def run_record(**settings) -> RunRecord:
    """The record of `run_events`."""
    return record_of(*run_events(**settings), **settings)


def lossy_record(*, chances=((0.9, 0.6), (0.8, 0.8))) -> RunRecord:
    """The record of a run with a lossy rule: one guess kept, one rejected, one not tested. The
    pairs are the chances of the rule and of the strict one.
    """
    at = At("r", "speculative")
    kept, rejected = (
        Token(4 + i, f"<{4 + i}>", status, "ngram", 0.5, 1.0, rule, 0.7, by, strict_probability=own)
        for i, ((rule, own), status, by) in enumerate(
            zip(chances, ("accepted", "rejected"), ("leniency", None), strict=True)
        )
    )
    thrown = (rejected, Token(9, "<9>", "ignored", "ngram"))
    committed = (kept, Token(6, "<6>", "corrected"))
    one = Round(0, 4, "draft length", committed, thrown, Phases(verify=1.0))
    lane = [LaneStarted(at), FirstToken(at, Token(1, "<1>", "first"), 0.5), RoundCommitted(at, one)]
    asked = {"rule": "lenience", "rule_options": {"lenience": 0.5}, "sampling": Sampling(1.0)}
    record = record_of(
        *lane, LaneEnded(at, "length"), *lane_events("baseline", [[2], [3]]),
        RunEnded("r", "finished"), **asked,
    )  # fmt: skip
    record.lossless = False
    return record


def hostile_record() -> RunRecord:
    """A record in which every text is one that some place would act on."""
    everything = "".join(HOSTILE)
    at = At("r", "speculative")
    rounds = [
        RoundCommitted(
            at,
            Round(
                index=index,
                limit=4,
                limited_by="draft length",
                committed=(Token(-0, text, "corrected", text, -0.5),),
                thrown=(Token(7, text, "rejected", text),),
                phases=Phases(verify=1.0),
                draft_stop=text,
            ),
        )
        for index, text in enumerate(HOSTILE)
    ]
    lane = [LaneStarted(at), FirstToken(at, Token(1, everything, "first"), 0.5), *rounds]
    asked = {"pair": everything, "prompt": everything, "stop_strings": (everything,)}
    end = RunEnded("r", "failed", everything, everything)
    record = record_of(*lane, LaneEnded(at, "length", tail=everything), end, **asked)
    record.notes = (everything,)
    return record


COSTS = PassCosts(
    model="target",
    device="cpu, 2 threads",
    precision="fp32",
    attention="sdpa",
    context_bucket=256,
    seconds={1: 0.75, 2: 0.8, 3: 0.85, 4: 0.9, 5: 0.9},
    repeats=9,
    draft="draft",
    draft_step=0.15,
)
"""Costs that the rounds of `costed_events` agree with."""


def costed_events(*, slower: float = 1.0, repetitions: int = 1, loops: int = 8) -> list[RunEvent]:
    """A run whose every speculative round keeps two of four guesses and takes 1.75 s: 0.6 in the
    draft, 0.9 in the pass, 0.25 elsewhere; a token of the baseline takes 0.75 and 0.25. The rounds
    of odd repetitions may be slower.
    """
    events: list[RunEvent] = [started(repetitions=repetitions)]
    for repetition in range(repetitions):
        at = At("r", "speculative", repetition)
        factor = slower if repetition % 2 else 1.0
        phases = Phases(
            draft=0.7 * factor, verify=0.9 * factor, decide=0.1, rest=0.05, draft_calls=0.6 * factor
        )
        events += [LaneStarted(at), FirstToken(at, Token(1, "<1>", "first"), 0.5)]
        events += [RoundCommitted(at, _half_kept(index, phases)) for index in range(loops)]
        events.append(LaneEnded(at, "length"))
        events += _baseline(At("r", "baseline", repetition), tokens=3 * loops)
    return [*events, PassesCosted("r", COSTS), RunEnded("r", "finished")]


def _half_kept(index: int, phases: Phases) -> Round:
    kept = (Token(2, "<2>", "accepted", "d"), Token(3, "<3>", "accepted", "d"))
    own = Token(4, "<4>", "corrected")
    thrown = (Token(8, "<8>", "rejected", "d"), Token(9, "<9>", "ignored", "d"))
    return Round(index, 4, "draft length", (*kept, own), thrown, phases)


def _baseline(at: At, tokens: int) -> Iterator[RunEvent]:
    """A lane of plain rounds of a second each."""
    yield LaneStarted(at)
    yield FirstToken(at, Token(1, "<1>", "first"), 0.5)
    for index in range(tokens):
        token = Token(2 + index % 3, f"<{2 + index % 3}>", "plain")
        phases = Phases(verify=0.75, decide=0.125, rest=0.125)
        yield RoundCommitted(at, Round(index, 0, "draft length", (token,), (), phases))
    yield LaneEnded(at, "length")


def costed_record(**shape) -> RunRecord:
    """The record of `costed_events`."""
    first, *others = costed_events(**shape)
    record = RunRecord.begin(first)
    for event in others:
        record.apply(event)
    return record
