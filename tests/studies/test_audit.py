"""The audit of the tiny pair: it passes, sees planted faults, and says how much it saw."""

import itertools
from dataclasses import replace

import pytest
import torch
from msgspec import structs

from app.decoding.contracts import Draws
from app.decoding.sampling import pick
from app.decoding.verifiers.exact import Exact
from app.models.language_model import LanguageModel
from app.models.session import Session
from app.run.auditing import Audit, Audited, audit_words, auditable
from app.run.events import At, FirstToken, RoundCommitted
from app.run.preparation import preparation
from app.run.problems import Cancelled, Problem
from app.run.settings import RunSettings, Sampling
from app.studies.audit import with_seed
from app.studies.teacher import law_of_texts
from app.studies.workbench import _lane_maker

METHODS = {
    "ngram": {"method": "ngram", "method_options": {"shortest": 1}},
    "draft-model": {"method": "draft-model"},
    "cascade": {"method": "cascade", "method_options": {"shortest": 1}},
    "early-exit": {"method": "early-exit"},
    "head": {"method": "head"},
    "head-tree": {"method": "head-tree", "method_options": {"nodes": 6, "breadth": 2}},
    "ngram-else-head": {"method": "ngram-else-head", "method_options": {"shortest": 1}},
}
AT = At("audit", "speculative")


@pytest.fixture(autouse=True)
def one_thread():
    """Models as small as these lose by more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=METHODS)
def settings(request, tiny):
    return auditable(tiny(**METHODS[request.param]))


@pytest.fixture
def audit(tiny_bench):
    """Audits settings with the tiny pair."""

    def audited(settings, runs=400, pause=lambda: None) -> Audited:
        return tiny_bench.audit(Audit(settings, runs), report=lambda _: None, pause=pause)

    return audited


@pytest.fixture
def maker(tiny_bench, settings):
    return _lane_maker(tiny_bench._pair, settings)


def text_of(maker, sessions) -> tuple[int, ...]:
    tokens = []
    for event in maker.run(AT, sessions, lambda: None):
        tokens += [event.token.id] if isinstance(event, FirstToken) else []
        if isinstance(event, RoundCommitted):
            tokens += [token.id for token in event.round.committed]
    return tuple(tokens)


def test_speculation_keeps_the_law_by_chance_alone(audit, settings):
    found = audit(settings)
    assert found.verdict == "within chance"
    assert found.lossless
    assert (found.runs, found.impossible) == (400, 0)
    assert found.drafted > found.accepted > 0
    assert found.texts == 4**4


def test_the_law_is_that_of_the_model_alone(maker, tiny_bench):
    law = law_of_texts(maker, lambda: None)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-9)
    inner = tiny_bench._pair.target.model.inner
    for text in list(law)[::37]:
        ids = torch.tensor([[*maker.prompt_ids, *text]])
        with torch.inference_mode():
            rows = inner(input_ids=ids).logits[0, -len(text) - 1 : -1]
        chance = 1.0
        for row, token in zip(rows, text, strict=True):
            best = row.topk(4)
            shares = torch.softmax(best.values, -1)
            chance *= float(shares[best.indices.tolist().index(token)])
        assert law[text] == pytest.approx(chance, rel=1e-3)


@pytest.mark.parametrize(("nodes", "rows"), [(6, 7), (1, 2)])
def test_the_law_is_read_in_passes_as_wide_as_a_round_over_a_tree(
    tiny_bench, tiny, monkeypatch, nodes, rows
):
    # Two levels with two guesses each behind two: six, unless fewer are asked for.
    tree = {"method": "head-tree", "method_options": {"nodes": nodes, "breadth": 2}}
    settings = auditable(tiny(**tree))
    pair = tiny_bench.loaded(preparation(settings), report=lambda _: None, pause=lambda: None)
    widths = set()
    sound = Session.read

    def watched(session, text, block=None, *, rows, upto=None):
        widths.add(len(block) + 1 if block else 0)
        return sound(session, text, block, rows=rows, upto=upto)

    monkeypatch.setattr(Session, "read", watched)
    law = law_of_texts(_lane_maker(pair, settings), lambda: None)
    assert widths == {0, rows}
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-9)


def test_sessions_that_go_on_write_what_fresh_ones_write(maker):
    kept = maker.open_sessions(AT)
    for seed in range(25):
        one = with_seed(maker, seed)
        kept.rewind(maker.sessions.prompts)
        assert text_of(one, kept) == text_of(one, maker.open_sessions(AT))


verify = Exact.verify


def draws_anew_from_p(self, draft, rows, draws):
    """The token behind a rejection is drawn from the whole of p, not from what q left over."""
    verdict = verify(self, draft, rows, draws)
    law = rows.law[int(verdict.accepted)]
    return replace(verdict, next=pick(law, draws.next), next_law=law)


def keeps_too_much(self, draft, rows, draws):
    """A guess is kept with a chance that is not its own."""
    return verify(self, draft, rows, Draws(draws.accept**4, draws.next))


@pytest.mark.parametrize(
    ("fault", "method"), [(draws_anew_from_p, "draft-model"), (keeps_too_much, "ngram")]
)
def test_a_biased_rule_is_seen(audit, tiny, monkeypatch, fault, method):
    settings = auditable(tiny(**METHODS[method]))
    monkeypatch.setattr(Exact, "verify", fault)
    found = audit(settings, 1500)
    assert found.verdict == "NOT the target's law"
    assert "NOT the target's law" in audit_words(found)


def test_a_text_that_the_law_rules_out_is_seen(audit, tiny, monkeypatch):
    def outside(self, draft, rows, draws):
        verdict = verify(self, draft, rows, draws)
        worst = rows.logits[int(verdict.accepted)].argmin()
        return replace(verdict, next=worst) if float(draws.next) > 0.99 else verdict

    settings = auditable(tiny(method="ngram", method_options={"shortest": 1}))
    monkeypatch.setattr(Exact, "verify", outside)
    found = audit(settings, 200)
    assert found.impossible > 0
    assert not found.holds


def test_a_text_at_the_edge_of_rounding_is_told_and_is_no_fault(audit, tiny, monkeypatch):
    # Narrow passes round another token into the top-k, as they may in low precision.
    real = LanguageModel.forward

    def rounds_by_width(self, ids, cache, rows, tree=None):
        logits = real(self, ids, cache, rows, tree).clone()
        if len(ids) == 1 and cache.length > 22:
            order = logits.argsort(dim=-1, descending=True)
            fifth, fourth = order[:, 4:5], order[:, 3:4]
            values = logits.gather(1, fourth)
            logits.scatter_(1, fourth, logits.gather(1, fifth))
            logits.scatter_(1, fifth, values)
        return logits

    settings = auditable(tiny(method="ngram", method_options={"shortest": 1}))
    monkeypatch.setattr(LanguageModel, "forward", rounds_by_width)
    found = audit(settings, 60)
    assert found.edge > 0
    assert found.impossible == 0
    assert f"{found.edge} of them lie at the edge" in audit_words(found)


def test_a_stop_ends_it_early_and_is_told(audit, tiny):
    passes = itertools.count()

    def pause():
        if next(passes) > 400:
            raise Cancelled

    found = audit(auditable(tiny(method="nothing")), 600, pause)
    assert 0 < found.runs < found.asked == 600
    assert f"{found.runs:,} texts of the 600 asked for" in audit_words(found)
    assert found.verdict == "nothing was guessed"
    assert not found.passed


def test_a_stop_before_the_first_text_is_a_stop(audit, settings):
    def pause():
        raise Cancelled

    with pytest.raises(Cancelled):
        audit(settings, 10, pause)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampling": Sampling()}, "temperature 0"),
        ({"sampling": Sampling(temperature=1.0)}, "top-k of all"),
        ({"max_new_tokens": 9}, "cannot be counted"),
        ({"prompt": "a" * 480}, None),
        ({"rule": "greedy"}, "greedy rule"),
        ({"rule": "synthetic", "rule_options": {"rates": "a"}}, "rates"),
    ],
)
def test_what_cannot_be_audited_is_said(audit, tiny, changes, message):
    settings = structs.replace(auditable(tiny(method="ngram")), **changes)
    if message is None:
        assert audit(settings, 1).runs == 1
        return
    with pytest.raises(Problem, match=message) as refused:
        audit(settings, 1)
    assert refused.value.remedy


def test_settings_for_an_audit_stay_as_near_as_they_can(tiny):
    plain = tiny(draft_length=8, rule="greedy", stop_strings=("x",), prompt="mine")
    found = auditable(plain)
    assert (found.prompt, found.method, found.pair) == ("mine", plain.method, plain.pair)
    assert (found.draft_length, found.max_new_tokens, found.rule) == (2, 4, "exact")
    assert (found.sampling.temperature, found.sampling.top_k) == (1.0, 4)
    Audit(found).check()
    warm = tiny(sampling=Sampling(temperature=0.6, top_k=2, top_p=0.9, seed=7))
    assert auditable(warm).sampling == warm.sampling
    with pytest.raises(Problem, match="0 runs"):
        Audit(found, 0).check()


def test_chance_is_what_the_words_say():
    found = Audited(
        RunSettings("p", "x"), 10, 10, True, 5, 2, 4,
        tv=0.1, bound=0.2, impossible=0, edge=0, statistic=1.0, cells=4, chance=0.5,
        smallest_seen=None,
    )  # fmt: skip
    assert found.passed
    for change in ({"tv": 0.3}, {"impossible": 1}, {"chance": 1e-5}):
        assert structs.replace(found, **change).verdict == "NOT the target's law"
    assert structs.replace(found, tv=0.2).holds
    assert "do not promise" in audit_words(structs.replace(found, lossless=False))
