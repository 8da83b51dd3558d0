"""A target and a draft of another vocabulary, from their folders to runs and audits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.library.prompts_set import Prompt
from app.models.vocabulary_bridge import VocabularyBridge
from app.run.auditing import Audit, auditable
from app.run.events import At
from app.run.identities import violations
from app.run.metrics import counts
from app.run.preparation import preparation
from app.run.problems import Problem
from app.run.settings import RunSettings, Sampling
from app.selftest.models import record_here
from app.studies.bench import check_ways, plan
from app.studies.conversation import Conversation
from app.studies.lane_sessions import LaneSessions
from app.studies.workbench import _lane_maker
from tongues import letter_tokenizer, letters, pieces, write_pair

METHODS = ["tli", "slem"]


def settings(method: str, **changes) -> RunSettings:
    fixed = {"pair": "pair", "prompt": "the cat and the rat", "raw": True, "device": "cpu"}
    fixed |= {"precision": "fp32", "draft_precision": "fp32", "ignore_end_of_text": True}
    return RunSettings(**{**fixed, "method": method, "max_new_tokens": 24, **changes})


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A byte-level target and a draft of SentencePiece's kind."""
    return write_pair(tmp_path_factory.mktemp("pair"), letters(), pieces())


@pytest.fixture(scope="module")
def alphabet_bench(tmp_path_factory):
    """Letters that the draft knows by other ids, and one that it does not."""
    return write_pair(
        tmp_path_factory.mktemp("alphabet"), letter_tokenizer("abcde"), letter_tokenizer("edcbfg a")
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, seed=2)])
def test_a_pair_of_different_vocabularies_runs(bench, method, sampling):
    record = record_here(bench, settings(method, sampling=sampling))
    assert (record.outcome, record.lossless) == ("finished", True)
    for lane in ("baseline", "speculative"):
        assert violations(record.repetitions(lane)[0], 24) == []
    baseline, speculative = (record.repetitions(one)[0] for one in ("baseline", "speculative"))
    assert counts(speculative).drafted > 10
    assert {round_.source for round_ in speculative.rounds if round_.drafted} == {method}
    if sampling.greedy:
        assert speculative.token_ids == baseline.token_ids


def test_a_run_tells_how_much_the_vocabularies_share(bench):
    note = record_here(bench, settings("tli", max_new_tokens=4)).notes[0]
    shared = bench._pair.bridge.shared
    # Without the special tokens; a character of one byte is there as a byte as well.
    twice = sum(len(one) == 1 and (one.isascii() or one == "▁") for one in pieces().get_vocab())
    own, others = len(pieces()) - 3 - twice, len(letters()) - 2
    of_draft, of_target = ((len(shared) - 1) / size for size in (own, others))
    assert f"{of_draft:.1%} of its tokens are the target's too" in note
    assert f"{of_target:.1%} of the target's are its" in note


def test_a_method_of_one_vocabulary_is_refused_with_those_that_are_not(bench):
    with pytest.raises(Problem, match="another vocabulary") as told:
        record_here(bench, settings("draft-model"))
    assert "tli" in told.value.remedy
    assert "slem" in told.value.remedy
    copied = record_here(bench, settings("ngram", max_new_tokens=4))
    assert copied.outcome == "finished"


@pytest.mark.parametrize("method", METHODS)
def test_an_audit_finds_the_targets_law(alphabet_bench, method):
    asked = auditable(settings(method, prompt="abacab"))
    found = alphabet_bench.audit(Audit(asked, 300), report=lambda _: None, pause=lambda: None)
    assert found.verdict == "within chance"
    assert found.lossless
    assert found.impossible == 0
    assert found.drafted > found.accepted > 0


@pytest.mark.parametrize("method", METHODS)
def test_a_turn_reads_of_the_draft_what_is_new(bench, method):
    asked = settings(method, max_new_tokens=6, baseline=False)
    pair = bench.loaded(preparation(asked), report=lambda _: None, pause=lambda: None)
    conversation, read = Conversation(("", "")), []
    said = "the cat and the rat"
    for turn in (said, said + " that sat on the mat"):
        ids = tuple(letters().encode(turn))
        maker = _lane_maker(pair, settings(method, prompt=turn), conversation)
        at = At("run", "speculative", turn=len(read))
        sessions = maker.sessions.open(at, None, speculates=True)
        read.append(sessions["draft"].unread(maker.sessions.draft_ids))
        sessions["draft"].read(maker.sessions.draft_ids, rows=1)
        sessions["target"].read(ids, rows=1)
    whole = len(pieces().encode(said))
    assert read[0] == whole
    assert read[1] < len(pieces().encode(said + " that sat on the mat")) - whole + 4


@pytest.mark.parametrize("method", METHODS)
def test_the_prompt_is_told_once_for_all_lanes_of_a_run(bench, method, monkeypatch):
    begun, said = [], VocabularyBridge.said
    monkeypatch.setattr(
        VocabularyBridge,
        "said",
        lambda bridge, ids, *, start: (
            begun.extend(ids if start else ()),
            said(bridge, ids, start=start),
        )[1],
    )
    record = record_here(bench, settings(method, repetitions=3, max_new_tokens=6))
    assert len(record.repetitions("speculative")) == 3
    assert begun == list(record.prompt_ids)


@pytest.mark.parametrize("method", METHODS)
def test_sessions_that_rewind_to_the_prompt_keep_it_in_each_models_own_ids(bench, method):
    asked = settings(method, max_new_tokens=8)
    pair = bench.loaded(preparation(asked), report=lambda _: None, pause=lambda: None)
    maker, at = _lane_maker(pair, asked), At("run", "speculative")
    sessions = maker.open_sessions(at)
    for _ in maker.run(at, sessions, lambda: None):
        pass
    own = pieces().encode(asked.prompt)
    assert own != list(maker.prompt_ids)
    assert sessions.held("draft") > len(own)
    sessions.rewind(maker.sessions.prompts)
    assert sessions.held("draft") == len(own)
    assert sessions.held("target") == len(maker.prompt_ids)


@pytest.mark.parametrize("method", METHODS)
def test_a_session_without_room_is_no_full_context(bench, method, monkeypatch):
    room = LaneSessions.draft_room.fget
    monkeypatch.setattr(
        LaneSessions, "draft_room", property(lambda self: replace(room(self), needed=20))
    )
    record = record_here(bench, settings(method, max_new_tokens=30))
    rounds = record.repetitions("speculative")[0].rounds
    assert record.outcome == "finished"
    assert "draft's context" not in {one.limited_by for one in rounds}
    assert rounds[0].drafted
    assert "the draft's session has no more room" in {one.draft_stop for one in rounds}


@pytest.mark.parametrize("method", METHODS)
def test_a_draft_of_the_targets_own_vocabulary_can_be_asked_so_too(run_tiny, method):
    record = run_tiny(method=method)
    baseline, speculative = (record.repetitions(one)[0] for one in ("baseline", "speculative"))
    assert speculative.token_ids == baseline.token_ids
    assert counts(speculative).accepted > 0


@pytest.mark.parametrize("method", METHODS)
def test_a_pair_without_a_draft_model_says_so(tiny_bench, tiny, method, monkeypatch):
    alone = replace(tiny_bench._pair, draft=None, bridge=None)
    monkeypatch.setattr(tiny_bench, "loaded", lambda *args, **kwargs: alone)
    with pytest.raises(Problem, match="no draft model"):
        record_here(tiny_bench, tiny(method=method))


def test_a_bench_tells_of_other_vocabularies_before_it_runs(bench):
    ways = [("slem", 2), ("cascade", 2)]
    prompts = [Prompt("p", "chat", ("the cat",))]
    planned = plan(prompts, ways, settings("ngram"))
    with pytest.raises(Problem, match="another vocabulary"):
        check_ways(bench, planned, report=print, pause=lambda: None)
    check_ways(bench, planned[:1], report=print, pause=lambda: None)
