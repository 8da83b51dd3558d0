"""The form shows what applies, and gives exactly the settings that it shows."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QLocale, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.gui.fields import Number
from app.gui.form import Form
from app.gui.plain import whole_unicode
from app.gui.prompt_field import PromptField
from app.library.catalogue import Catalogue
from app.run.methods import METHODS
from app.run.options import Option
from app.run.rules import RULES
from app.run.settings import RunSettings, Sampling


@pytest.fixture
def form(application, theme, catalogue):
    made = Form(catalogue)
    made.show()
    yield made
    made.close()
    made.deleteLater()


def shown(form: Form) -> set[str]:
    return {name for name, row in form.rows.items() if row.field.isVisible()}


def settings(form: Form) -> RunSettings:
    return form.settings("Hi", system="", raw=False)


def test_greedy_hides_what_only_a_draw_needs(form):
    assert not {"top_k", "top_p", "min_p", "seed"} & shown(form)
    form.rows["temperature"].field.put(0.8)
    assert {"top_k", "top_p", "min_p", "seed"} <= shown(form)


def test_only_the_chosen_methods_options_are_shown_and_sent(form):
    options = {"shortest": 2, "longest": 5, "head_length": 2}
    assert settings(form).method_options == options
    form.choose_pair("embedded-nf4-draft")
    assert settings(form).method == "draft-model"
    assert settings(form).method_options == {}
    assert not form._option_rows["method", "ngram"]["shortest"].field.isVisible()
    form.rows["method"].field.put("ngram")
    assert form._option_rows["method", "ngram"]["shortest"].field.isVisible()


def test_a_pair_offers_no_method_that_needs_what_it_has_not(form):
    field = form.rows["method"].field
    offered = {field.itemData(i) for i in range(field.count())}
    assert offered == {"ngram", "head", "ngram-else-head"}
    form.choose_pair("embedded-nf4-draft")
    offered = {field.itemData(i) for i in range(field.count())}
    assert offered == {"ngram", "draft-model"}


def test_speculation_off_is_plain_decoding_in_one_lane(form):
    form.speculation.setChecked(False)
    found = settings(form)
    assert (found.method, found.baseline, found.draft_length) == ("nothing", False, 0)
    assert not {"method", "draft_length", "rule", "repetitions"} & shown(form)


def test_settings_that_were_filled_in_come_back(form):
    wanted = RunSettings(
        pair="embedded-nf4-draft",
        prompt="Hi",
        method="ngram",
        method_options={"shortest": 3, "longest": 9},
        draft_length=7,
        sampling=Sampling(0.7, 40, 0.9, 0.05, 1.1, 0.2, 11),
        max_new_tokens=33,
        stop_strings=("END", "\n\n", "\\n", " a\tb "),
        ignore_end_of_text=True,
        precision="nf4",
        context_length=512,
        repetitions=3,
        order="interleaved",
        detail="full",
    )
    form.fill(wanted)
    assert settings(form) == wanted


def test_all_values_of_the_form_pass_the_check(form):
    settings(form).check()
    form.rows["temperature"].field.put(2)
    settings(form).check()


def test_a_suggested_sampling_is_shown_and_not_applied(form):
    form.suggest(Sampling(temperature=0.2, top_p=0.9))
    assert form.suggestion.isVisible()
    assert "temperature 0.2" in form.suggestion.text()
    assert settings(form).sampling == Sampling()
    form.suggest(None)
    assert not form.suggestion.isVisible()


def test_changing_models_asks_for_them(form, qtbot):
    with qtbot.waitSignal(form.pair_changed):
        form.rows["precision"].field.put("nf4")
    with qtbot.waitSignal(form.pair_changed):
        form.choose_pair("embedded-nf4-draft")


def test_an_empty_catalogue_still_opens(application, theme):
    form = Form(Catalogue())
    assert form.pair is None
    assert "no pair" in form.note.text()
    form.deleteLater()


def test_every_field_has_a_name_for_those_who_hear_the_page(window):
    for kind in ("QSpinBox", "QDoubleSpinBox", "QComboBox", "QTextEdit", "QPlainTextEdit"):
        for field in window.findChildren(QWidget):
            if field.inherits(kind):
                assert field.accessibleName(), field
    for tile in window.page.verdict.tiles.values():
        assert tile.accessibleName()
        assert tile.toolTip()


def test_tab_walks_from_the_form_to_the_lanes_and_back(window, qtbot):
    window.activateWindow()
    window.page.form.rows["pair"].field.setFocus()
    walked = []
    for _ in range(40):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        walked.append(QApplication.focusWidget())
    page = window.page
    expected = [
        page.form.speculation,
        page.form.rows["max_new_tokens"].field,
        page.prompt.system,
        page.prompt.prompt,
        page.run_button,
        page.lanes[0].text,
        page.lanes[1].text,
        page.form.rows["pair"].field,
    ]
    places = [walked.index(widget) for widget in expected]
    assert places == sorted(places)


def test_the_wheel_changes_no_number_on_its_way_past(form):
    field = form.rows["max_new_tokens"].field
    before = field.value()
    turned = QWheelEvent(
        QPointF(5, 5),
        QPointF(5, 5),
        QPoint(),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(field, turned)
    assert field.value() == before


def test_numbers_are_read_as_the_country_writes_them(application):
    field = Number(0, 2, value=0.5)
    field.setLocale(QLocale(QLocale.Language.German))
    assert field.text() == "0,5"
    field.lineEdit().setText("0,7")
    field.interpretText()
    assert field.value() == 0.7
    field.deleteLater()


def test_every_declared_option_has_a_field():
    kinds = {type(option.default) for method in METHODS.values() for option in method.options}
    assert kinds <= {int, float, bool}
    assert Option("x", "X", "Help.", 1).default == 1


@pytest.mark.parametrize(
    "text", ["10\u00a0km", "a\tb", "end\u2028x", "a\nb", "🚫👨‍👩‍👧", "<b>&lt;"]
)
def test_the_prompt_is_given_on_as_it_was_put_in(application, text):
    field = PromptField("Prompt")
    field.setPlainText(text)
    assert field.text() == text
    field.selectAll()
    assert field.createMimeDataFromSelection().text() == text
    field.deleteLater()


def test_shift_enter_is_a_plain_line_end(application, qtbot):
    field = PromptField("Prompt")
    qtbot.addWidget(field)
    qtbot.keyClicks(field, "a")
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(field, "b")
    assert field.text() == "a\nb"


def test_half_a_character_is_replaced_as_nothing_can_encode_it():
    assert whole_unicode("a\ud83d") == "a\ufffd"
    assert whole_unicode("🚫") == "🚫"


def test_stop_strings_stand_one_a_line_and_an_empty_line_is_none(form):
    form.more.setChecked(True)
    field = form.rows["stop_strings"].field
    field.setPlainText("END\n\n\\n\\n\nC:\\\\new")
    assert settings(form).stop_strings == ("END", "\n\n", "C:\\new")
    settings(form).check()
    assert {"stop_strings", "ignore_end_of_text"} <= shown(form)


def test_a_rules_options_stand_below_it_and_are_sent(form):
    assert settings(form).rule == "exact"
    form.rows["rule"].field.put("fly")
    rows = form._option_rows["rule", "fly"]
    assert all(row.field.isVisible() for row in rows.values())
    assert not form._option_rows["rule", "lenience"]["lenience"].field.isVisible()
    rows["reading"].field.put("paper")
    rows["window"].field.put(3)
    found = settings(form)
    assert found.rule == "fly"
    assert found.rule_options == {"window": 3, "reading": "paper", "entropy": 0.3}
    form.fill(RunSettings("embedded", "Hi", rule="synthetic", rule_options={"rates": "0.5"}))
    assert settings(form).rule_options == {"length": 2.0, "rates": "0.5"}


def test_lossy_rules_say_so_where_they_are_chosen(form):
    field = form.rows["rule"].field
    offers = {field.itemData(i): field.itemText(i) for i in range(field.count())}
    assert set(offers) == set(RULES) - {"greedy"}
    assert all(("LOSSY" in text) != RULES[name].lossless for name, text in offers.items())


def test_a_policys_options_stand_below_it_and_are_sent(form):
    assert settings(form).draft_length_policy == "fixed"
    form.rows["draft_length_policy"].field.put("heuristic")
    row = form._option_rows["draft_length_policy", "heuristic"]["start"]
    assert row.field.isVisible()
    row.field.put(6)
    found = settings(form)
    assert (found.draft_length_policy, found.draft_length_options) == ("heuristic", {"start": 6})
    form.speculation.setChecked(False)
    assert not row.field.isVisible()
