"""Runs are kept whole, found by words and tags, and changed only as asked."""

import math

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from recorded import HOSTILE, hostile_record, lane_events, record_of, run_record

from app.history import History
from app.history.packing import packed, unpacked
from app.run.problems import Problem

shared = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def found(history, *asked, **more):
    return [entry.run for entry in history.search(*asked, **more)]


@pytest.mark.parametrize("record", [run_record(), hostile_record(), record_of()])
def test_a_record_comes_back_equal(history, record):
    history.add(record)
    assert history.get(record.run) == record


def test_numbers_that_json_has_none_for_are_kept_too(history, make):
    record = make("r")
    record.lanes[0].repetitions[0].time_to_first_token = math.nan
    history.add(record)
    assert math.isnan(history.get("r").lanes[0].repetitions[0].time_to_first_token)
    assert history.entry("r").decode_speedup == 2.0


def test_half_characters_and_endless_numbers_are_problems(history, make):
    for settings_ in ({"prompt": "\ud800"}, {"draft_length": 2**70}, {"draft_length": 2**63}):
        with pytest.raises(Problem):
            history.add(make("r", **settings_))
    history.add(make("r"))
    for call in (lambda: history.note("r", "\ud800"), lambda: history.search("\ud800")):
        with pytest.raises(Problem):
            call()
    assert history.count() == 1


def test_an_entry_holds_the_headline_figures(history, make):
    history.add(make("r", pair="Pair", prompt="é" * 500, draft_length=6))
    entry = history.entry("r")
    assert (entry.pair, entry.target, entry.draft, entry.method) == ("Pair", "target", "", "ngram")
    assert (entry.precision, entry.device, entry.outcome) == ("fp32", "cpu", "finished")
    assert (entry.draft_length, entry.prompt_start) == (6, "é" * 200)
    assert (entry.decode_speedup, entry.tokens_per_loop) == (2.0, 2.0)
    assert (entry.speculative_speed, entry.baseline_speed) == (2.0, 1.0)
    assert entry.acceptance_rate == 0.5
    assert entry.same_text is True


def test_a_run_without_figures_has_none(history):
    history.add(record_of())
    entry = history.entry("r")
    assert entry.decode_speedup is entry.acceptance_rate is entry.tokens_per_loop is None
    assert entry.same_text is None
    assert entry.outcome == "running"


def test_adding_the_same_run_again_replaces_it_and_keeps_what_a_person_wrote(history, make):
    history.add(record_of())
    history.tag("r", "mine")
    history.note("r", "look again")
    history.add(make("r"))
    assert history.count() == 1
    entry = history.entry("r")
    assert (entry.outcome, entry.tags, entry.note) == ("finished", ("mine",), "look again")


def test_the_latest_run_comes_first_whatever_its_time_zone(history, make):
    history.add(make("noon", started="2026-01-01T12:00:00+00:00"))
    history.add(make("earlier", started="2026-01-01T12:30:00+01:00"))
    history.add(make("no time", started="yesterday"))
    history.add(make("later", started="2026-01-01T11:00:00-02:00"))
    assert found(history) == ["later", "noon", "earlier", "no time"]
    assert found(history, limit=2, offset=1) == ["noon", "earlier"]
    assert found(history, limit=0) == []
    assert found(history, limit=-1, offset=-5) == []


def test_every_word_has_to_be_found_somewhere(history, make):
    history.add(make("a", pair="Qwen/Alpha", prompt="Write about ÉCOLES in Zürich", method="ngram"))
    history.add(make("b", pair="Qwen/Beta", prompt="100% of x_y", method="draft-model"))
    assert set(found(history, "qwen")) == {"a", "b"}
    assert found(history, "QWEN e\u0301coles") == ["a"]
    assert found(history, "100%") == ["b"]
    assert found(history, "x_y") == ["b"]
    assert found(history, "%") == ["b"]
    assert found(history, "_y") == ["b"]
    assert found(history, "qwen gamma") == []
    assert set(found(history, "<2>")) == {"a", "b"}  # the text that was written
    history.note("a", "The Fan was loud")
    history.tag("b", "Keep")
    assert found(history, "fan loud") == ["a"]
    assert found(history, "keep") == ["b"]


@shared
@given(some.text(max_size=12))
def test_no_text_breaks_a_search(history, text):
    try:
        assert history.count(text) == len(history.search(text))
    except Problem:
        assert any("\ud800" <= character <= "\udfff" for character in text)


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.strip()])
def test_hostile_prompts_are_found_by_themselves(history, make, text):
    history.add(make("r", prompt=text))
    history.add(make("s", pair="other", prompt="plain"))
    if "\0" not in text:
        assert "r" in found(history, text)
    assert history.get("r").settings.prompt == text


def test_tags_are_given_once_and_taken(history, make):
    for run in ("a", "b"):
        history.add(make(run))
    history.tag("a", " Laptop ")
    history.tag("a", "laptop")
    history.tag("b", "LAPTOP")
    history.tag("b", "best")
    assert history.entry("a").tags == ("Laptop",)
    assert history.known_tags() == ("best", "LAPTOP")
    assert set(found(history, "", ["laptop"])) == {"a", "b"}
    assert found(history, "", ["laptop", "best"]) == ["b"]
    assert history.count("", ["best"]) == 1
    assert found(history, "", ["lap"]) == []
    history.untag("b", "Best")
    history.untag("b", "never had")
    assert history.entry("b").tags == ("LAPTOP",)


@pytest.mark.parametrize("tag", ["", "  ", "a\nb", "x" * 61, "\x1b[31m"])
def test_a_tag_that_cannot_be_shown_is_refused(history, make, tag):
    history.add(make("r"))
    with pytest.raises(Problem, match="A tag is"):
        history.tag("r", tag)


def test_what_is_unknown_is_a_problem(history):
    for call in (
        lambda: history.get("x"),
        lambda: history.entry("x"),
        lambda: history.tag("x", "t"),
        lambda: history.note("x", "t"),
        lambda: history.compare(["x"]),
    ):
        with pytest.raises(Problem, match="no run 'x'"):
            call()
    assert history.delete(["x"]) == 0
    assert history.delete([]) == 0


def test_a_note_that_is_no_note_is_refused(history, make):
    history.add(make("r"))
    with pytest.raises(Problem, match="characters"):
        history.note("r", "x" * 100_001)
    history.note("r", "short")
    history.note("r", "")
    assert history.entry("r").note == ""


def test_deleting_takes_tags_and_notes_along(history, make):
    history.add(make("a"))
    history.tag("a", "t")
    assert history.delete(["a"]) == 1
    assert history.known_tags() == ()
    history.add(make("a"))
    assert (history.entry("a").tags, history.entry("a").note) == ((), "")


def test_clearing_leaves_a_small_file(history, make):
    empty = history.size()
    for number in range(30):
        history.add(make(f"r{number}", prompt=f"{number} {'long ' * number * 300}"))
    assert history.size() > empty
    history.clear()
    assert history.count() == 0
    assert history.size() <= max(empty, 100_000)


def test_reindexing_mends_what_is_searched(history, make):
    history.add(make("a", prompt="needle"))
    history.add(make("b"))
    history.note("a", "kept")
    with history._database.transaction() as connection:
        connection.execute("UPDATE runs SET words = '', decode_speedup = 99")
        connection.execute("UPDATE records SET record = x'7a00' WHERE run = 'b'")
    assert found(history, "needle") == []
    assert history.reindex() == 1
    assert found(history, "needle") == ["a"]
    assert history.entry("a").decode_speedup == 2.0
    assert history.entry("a").note == "kept"
    with pytest.raises(Problem, match="run b cannot be read"):
        history.get("b")


def test_large_records_are_squeezed():
    rounds = [[3 * number, 3 * number + 1, 3 * number + 2] for number in range(2000)]
    record = record_of(*lane_events("speculative", rounds))
    data = packed(record)
    assert len(data) < len(msgspec.msgpack.encode(record)) / 5
    assert unpacked(data, "r") == record


@given(some.binary(max_size=200))
def test_damaged_bytes_are_a_problem(data):
    with pytest.raises(Problem, match="cannot be read"):
        unpacked(data, "r")


@given(some.integers(0, 10**6), some.integers(1, 255))
def test_one_changed_byte_never_changes_a_record_unseen(place, change):
    record = run_record(prompt="Hello " * 50)
    data = bytearray(packed(record))
    data[place % len(data)] ^= change
    try:
        assert unpacked(bytes(data), "r") == record
    except Problem as problem:
        assert "cannot be read" in problem.message  # noqa: PT017


def test_it_can_be_opened_again(path, make):
    with History(path) as history:
        history.add(make("r"))
        assert history.path == path
    with History(path) as history:
        assert history.get("r") == make("r")
