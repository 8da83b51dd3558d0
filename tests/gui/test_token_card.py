"""What is said of a token."""

from __future__ import annotations

from PySide6.QtCore import QRect
from scripted_engine import record_of, run_of

from app.gui.lane_feed import in_text_order
from app.gui.lane_spans import Placed, Span
from app.gui.token_words import decision, facts_of
from app.run.events import Phases, Round, Token


def one(token: Token, round_: Round | None = None, thrown: bool = False) -> Span:
    return Span(0, 1, token.text, (Placed(token, round_, thrown),))


def test_a_guess_tells_its_loop_place_numbers_and_decision():
    kept = Token(5, " kite", "accepted", "ngram", 0.25, 1.0, 0.25, 0.125, "rule")
    round_ = Round(11, 4, "draft length", (kept,), (), Phases())
    facts = facts_of(one(kept, round_))
    assert facts.title == "“ kite”"
    assert facts.status == "accepted"
    assert facts.lines == [
        "id 5 · loop 12, guess 1 of 1 · by ngram",
        "p 0.2500   q 1.0000   accept 0.2500   draw 0.1250",
        "Kept: draw 0.1250 < 0.2500.",
    ]


def test_a_guess_with_others_beside_it_tells_how_many_were_tried():
    kept = Token(5, " kite", "accepted", "head-tree", 0.25, 1.0, 0.5, 0.125, "rule", tried=3)
    wrong = Token(7, "x", "rejected", "head-tree", 0.0, 1.0, 0.0, 0.5, tried=2)
    own = Token(8, "y", "corrected")
    round_ = Round(0, 4, "draft length", (kept, own), (wrong,), Phases(), nodes=9)
    assert "guess 3 of those tried here; the ones before it were thrown away" in (
        facts_of(one(kept, round_)).lines
    )
    lines = facts_of(one(wrong, round_, thrown=True)).lines
    assert "first of 2 guesses tried here, none of them kept" in lines
    first = Token(5, " kite", "accepted", "head-tree", tried=1)
    assert "the first guess tried here" in facts_of(one(first, round_)).lines


def test_numbers_that_do_not_exist_are_not_invented():
    facts = facts_of(one(Token(5, "x", "plain")))
    assert facts.lines == ["id 5 · prompt pass", "The target's own; nothing was guessed."]


def test_greedy_decisions_need_no_draw():
    assert "likeliest" in decision(Token(5, "x", "accepted"))
    assert "another" in decision(Token(5, "x", "rejected"))
    assert "leniency" in decision(Token(5, "x", "accepted", kept_by="leniency"))


def test_every_status_has_its_sentence():
    for round_ in (e.round for e in run_of() if hasattr(e, "round")):
        for placed in in_text_order(round_, thrown=True):
            assert decision(placed.token).endswith(".")
    assert decision(Token(5, "x", "discarded")).endswith(".")


def test_control_characters_are_pictured():
    assert facts_of(one(Token(5, "a\n\t\x00", "plain"))).title == "“a↵⇥␀”"


def test_the_card_shows_texts_literally_inside_the_page(window, play):
    window.run()
    play(*run_of("<b>kite</b> and more"))
    lane = window.page.lanes[0].text
    corner = window.mapToGlobal(window.rect().bottomRight())
    window.page.card.show_span(lane.span_at(0), QRect(corner.x(), corner.y(), 8, 18))
    card = window.page.card
    assert card.text.text().startswith("“")
    assert window.page.rect().contains(card.geometry())
    assert card.isVisible()
    card.show_span(None, QRect())
    assert not card.isVisible()


def test_the_card_tells_of_candidates(window, play):
    record = record_of(run_of())
    window.run()
    play(*run_of())
    token = record.repetitions("speculative")[0].rounds[0].committed[0]
    facts = facts_of(one(token))
    assert facts.candidates[0]
    assert facts.candidates[2] == []


def test_decisions_of_rules_without_a_draw_of_their_own():
    drawn = {"target_probability": 0.25}
    assert "drew it too" in decision(Token(5, "x", "accepted", **drawn))
    assert "drew another" in decision(Token(5, "x", "rejected", **drawn))
    assert decision(Token(5, "x", "accepted", accept_probability=1.0)) == (
        "Kept: its chance was 1.0000."
    )
    together = Token(5, "x", "accepted", accept_probability=0.5, draw=0.75)
    assert "together with the guesses behind it" in decision(together)
