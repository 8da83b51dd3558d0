"""The form shows what applies, and gives exactly the settings that it shows."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import QLocale, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.gui.form import Form
from app.gui.numbers import Number
from app.gui.plain import whole_unicode
from app.gui.prompt_field import PromptField
from app.library.catalogue import Catalogue
from app.library.entries import FolderSource, HubSource, ModelEntry, PairEntry
from app.library.overview import Overview, PairStanding
from app.run.draft_lengths import LENGTH_POLICIES
from app.run.methods import METHODS
from app.run.options import Option
from app.run.preparation import DeviceMemory, Prepare, preparation
from app.run.problems import Problem
from app.run.rules import RULES
from app.run.settings import RUN_LIMITS, SAMPLING_LIMITS, RunSettings, Sampling


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
    options = {"shortest": 2, "longest": 5, "match": "last", "head_length": 2}
    assert settings(form).method_options == options
    form.choose_pair("embedded-nf4-draft")
    assert settings(form).method == "draft-model"
    drawing = {"draft_sampling": "target", "draft_temperature": 1.0}
    assert settings(form).method_options == drawing
    assert not form.options.rows["method", "ngram"]["shortest"].field.isVisible()
    form.rows["method"].field.put("ngram")
    assert form.options.rows["method", "ngram"]["shortest"].field.isVisible()


def test_no_label_is_so_long_that_it_takes_the_room_of_the_fields():
    # All names share one column, also those of options that are hidden just now.
    offers = (*METHODS.values(), *RULES.values(), *LENGTH_POLICIES.values())
    assert max(len(option.label) for offer in offers for option in offer.options) <= 19


def test_a_pair_offers_no_method_that_needs_what_it_has_not(form):
    field = form.rows["method"].field
    offered = {field.itemData(i) for i in range(field.count())}
    assert offered == {"ngram", "suffix", "early-exit", "head", "head-tree", "ngram-else-head"}
    form.choose_pair("embedded-nf4-draft")
    offered = {field.itemData(i) for i in range(field.count())}
    assert offered == {"ngram", "suffix", "draft-model", "cascade", "early-exit", "tli", "slem"}


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
        method_options={"shortest": 3, "longest": 9, "match": "first"},
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


CPU_ALONE = (DeviceMemory("cpu", "CPU", 1, 1),)
CARDS = (DeviceMemory("cuda:0", "One", 1, 1), DeviceMemory("cuda:1", "Two", 1, 1), *CPU_ALONE)


def test_devices_are_offered_where_there_is_a_choice(form):
    form.choose_pair("embedded-nf4-draft")
    rows = {"device", "draft_device", "allow_offload", "passes"}
    assert not rows & shown(form)
    form.offer_devices(CPU_ALONE)
    assert not rows & shown(form)
    form.offer_devices((DeviceMemory("mps", "Apple GPU", 1, 1), *CPU_ALONE))
    assert rows & shown(form) == {"device", "draft_device"}
    form.offer_devices(CARDS)
    assert rows <= shown(form)
    form.choose_pair("embedded")  # it has no draft model
    assert rows & shown(form) == {"device", "allow_offload", "passes"}


def test_devices_that_were_filled_in_come_back_and_ask_for_other_models(form, qtbot):
    form.offer_devices(CARDS)
    form.choose_pair("embedded-nf4-draft")
    places = {"device": "cuda:1", "draft_device": "cpu", "allow_offload": True, "passes": "eager"}
    with qtbot.waitSignals([form.pair_changed] * 4):
        form.fill(RunSettings(pair="embedded-nf4-draft", prompt="Hi", **places))
    found = settings(form)
    assert {name: getattr(found, name) for name in places} == places
    assert form.wanted == Prepare("embedded-nf4-draft", **places)
    assert preparation(found) == form.wanted


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


def standing(pair, standing, size=0):
    return PairStanding(pair, standing, default=False, download_bytes=size)


def offered(form: Form) -> list[str]:
    field = form.rows["pair"].field
    return [field.itemText(i) for i in range(field.count())]


@pytest.fixture
def far(application, theme):
    """A form with pairs of a hub: the default is the last of them."""
    models = tuple(ModelEntry(name, name, HubSource(f"a/{name}")) for name in ("one", "two"))
    pairs = tuple(PairEntry(name, name.upper(), name, "ngram") for name in ("one", "two"))
    made = Form(
        Catalogue(
            (*models, ModelEntry("own", "own", FolderSource("/own"))),
            (
                *pairs,
                PairEntry("own", "OWN", "own", "ngram"),
                PairEntry("home", "HOME", "own", "ngram"),
            ),
            "home",
        )
    )
    made.show()
    yield made
    made.close()
    made.deleteLater()


def test_pairs_on_this_machine_come_before_those_to_be_fetched(far):
    assert offered(far) == ["HOME", "ONE", "TWO", "OWN"]
    pairs = {pair.name: pair for pair in far.picker.offers.catalogue.pairs}
    found = Overview(
        (),
        (
            standing(pairs["home"], "ready"),
            standing(pairs["two"], "ready"),
            standing(pairs["own"], "to be converted"),
            standing(pairs["one"], "to be fetched", 16_219_330_848),
        ),
        (),
    )
    far.show_standings(found)
    assert offered(far) == ["HOME", "TWO", "OWN (to be converted)", "ONE (to be fetched, 16.2 GB)"]
    assert far.pair.name == "home"


def test_a_pair_that_has_to_be_fetched_waits_for_a_run_and_says_so(far, qtbot):
    far.choose_pair("one")
    assert far.waits  # it is not known yet
    pair = far.pair
    far.show_standings(Overview((), (standing(pair, "to be fetched", None),), ()))
    assert far.waits
    assert far.picker.note.text() == "Not on this machine: a run fetches it first (size unknown)."
    far.show_notes(["It is nf4."])
    with qtbot.waitSignal(far.pair_changed):
        far.show_standings(Overview((), (standing(pair, "ready"),), ()))
    assert not far.waits
    assert far.picker.note.text() == "It is nf4."
    far.choose_pair("own")
    assert not far.waits


def test_what_the_machine_cannot_take_is_greyed_out_and_says_why(form):
    # C01, C16: the true reason, for the target and for the draft model.
    form.choose_pair("embedded-nf4-draft")
    form.rows["draft_precision"].field.put("nf4")
    form.refuse_precisions({"cpu": {"nf4": "nf4 needs bitsandbytes: no .so"}})
    for name in ("precision", "draft_precision"):
        field = form.rows[name].field
        by_value = {field.itemData(i): i for i in range(field.count())}
        items = {value: field.model().item(i) for value, i in by_value.items()}
        assert [value for value, item in items.items() if not item.isEnabled()] == ["nf4"]
        assert "no .so" in items["nf4"].toolTip()
        assert "no .so" not in items["bf16"].toolTip()
        field.put("nf4")
        assert field.get() is None
    assert settings(form).draft_precision is None
    form.refuse_precisions({})
    form.rows["precision"].field.put("nf4")
    assert settings(form).precision == "nf4"


REFUSED = {
    "cuda": {"int8": "int8 is computed by a CPU only."},
    "cpu": {"fp16": "fp16 crawls on a CPU."},
}


def grey(form, name):
    """The precisions of a row that cannot be chosen."""
    field = form.rows[name].field
    places = range(field.count())
    return {field.itemData(i) for i in places if not field.model().item(i).isEnabled()}


def test_each_models_precisions_are_those_of_the_device_that_it_goes_to(form):
    form.choose_pair("embedded-nf4-draft")
    form.offer_devices(CARDS)
    form.refuse_precisions(REFUSED)
    assert grey(form, "precision") == grey(form, "draft_precision") == {"int8"}
    form.rows["precision"].field.put("fp16")
    form.rows["draft_device"].field.put("cpu")
    assert grey(form, "precision") == {"int8"}
    assert grey(form, "draft_precision") == {"fp16"}
    assert settings(form).precision == "fp16"
    form.rows["draft_device"].field.put(None)
    form.rows["device"].field.put("cpu")
    assert grey(form, "precision") == grey(form, "draft_precision") == {"fp16"}
    assert settings(form).precision is None


def test_a_run_of_the_cpu_is_filled_in_with_its_precision_where_a_card_is_the_default(form):
    form.offer_devices(CARDS)
    form.refuse_precisions(REFUSED)
    on_cpu = {"precision": "int8", "draft_precision": "int8", "device": "cpu"}
    form.fill(RunSettings(pair="embedded-nf4-draft", prompt="Hi", **on_cpu))
    found = settings(form)
    assert {name: getattr(found, name) for name in on_cpu} == on_cpu


def test_every_precision_is_offered(form):
    field = form.rows["precision"].field
    offered = {field.itemData(i) for i in range(field.count())}
    assert offered == {None, "fp32", "bf16", "fp16", "int8", "llm-int8", "nf4", "fp4"}


def test_the_drafts_precision_is_asked_for_where_there_is_a_draft_model(form, qtbot):
    assert "draft_precision" not in shown(form)
    form.rows["draft_precision"].field.put("bf16")
    assert settings(form).draft_precision is None
    form.choose_pair("embedded-nf4-draft")
    assert "draft_precision" in shown(form)
    assert settings(form).draft_precision == "bf16"
    with qtbot.waitSignal(form.pair_changed):
        form.rows["draft_precision"].field.put("fp32")


def test_an_empty_catalogue_still_opens(application, theme):
    form = Form(Catalogue())
    assert form.pair is None
    assert "no pair" in form.picker.note.text()
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
    assert kinds <= {int, float, bool, str}
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
    rows = form.options.rows["rule", "fly"]
    assert all(row.field.isVisible() for row in rows.values())
    assert not form.options.rows["rule", "lenience"]["lenience"].field.isVisible()
    rows["reading"].field.put("paper")
    rows["window"].field.put(3)
    found = settings(form)
    assert found.rule == "fly"
    assert found.rule_options == {"window": 3, "reading": "paper", "entropy": 0.3}
    form.fill(RunSettings("embedded", "Hi", rule="synthetic", rule_options={"rates": "0.5"}))
    assert settings(form).rule_options == {"length": 2.0, "rates": "0.5"}


def test_options_that_are_not_named_take_their_defaults(form):
    typed = {("method", "ngram"): "longest", ("rule", "fly"): "window",
             ("draft_length_policy", "heuristic"): "start"}  # fmt: skip
    for chosen, name in typed.items():
        form.options.rows[chosen][name].field.put(7)
    form.fill(
        RunSettings(
            "embedded", "Hi", method="ngram", method_options={"shortest": 2}, rule="fly",
            rule_options={"entropy": 0.5}, draft_length_policy="heuristic",
        )
    )  # fmt: skip
    found = settings(form)
    assert found.method_options == METHODS["ngram"].filled({"shortest": 2})
    assert found.rule_options == RULES["fly"].filled({"entropy": 0.5})
    assert found.draft_length_options == LENGTH_POLICIES["heuristic"].filled({})


def test_a_pairs_rule_comes_with_its_own_options_alone(form):
    form.options.rows["rule", "fly"]["window"].field.put(7)
    pair = PairEntry("p", "A pair", "smollm2-135m-instruct", "ngram", rule="fly")
    form.take_catalogue(msgspec.structs.replace(form.picker.offers.catalogue, pairs=(pair,)))
    assert settings(form).rule_options == RULES["fly"].filled({})


def test_a_pairs_method_comes_with_its_own_options_alone(form):
    form.options.rows["method", "early-exit"]["draft_sampling"].field.put("argmax")
    options = {"exit_layer": 4}
    target = "smollm2-135m-instruct"
    pair = PairEntry("p", "A pair", target, "early-exit", method_options=options)
    form.take_catalogue(msgspec.structs.replace(form.picker.offers.catalogue, pairs=(pair,)))
    assert settings(form).method_options == METHODS["early-exit"].filled(options)


def test_lossy_rules_say_so_where_they_are_chosen(form):
    field = form.rows["rule"].field
    offers = {field.itemData(i): field.itemText(i) for i in range(field.count())}
    assert set(offers) == set(RULES) - {"greedy"}
    assert all(("LOSSY" in text) != RULES[name].lossless for name, text in offers.items())


def test_a_policys_options_stand_below_it_and_are_sent(form):
    assert settings(form).draft_length_policy == "fixed"
    form.rows["draft_length_policy"].field.put("heuristic")
    row = form.options.rows["draft_length_policy", "heuristic"]["start"]
    assert row.field.isVisible()
    row.field.put(6)
    found = settings(form)
    assert (found.draft_length_policy, found.draft_length_options) == ("heuristic", {"start": 6})
    form.speculation.setChecked(False)
    assert not row.field.isVisible()


def test_a_preset_fills_the_fields_and_is_named_while_they_hold_it(form):
    form.rows["method"].field.put("ngram")
    presets = form.options.presets["ngram"]
    rows = form.options.rows["method", "ngram"]
    assert presets.field.isVisible()
    assert not form.options.presets["ngram-else-head"].field.isVisible()
    assert presets.field.get() == ""
    presets.field.put("transformers")
    found = settings(form)
    assert found.method_options == {"shortest": 1, "longest": 2, "match": "first"}
    assert found.draft_length == 10
    assert presets.field.get() == "transformers"
    form.rows["draft_length"].field.put(5)
    assert presets.field.get() == ""
    rows["shortest"].field.put(5)
    rows["longest"].field.put(5)
    assert presets.field.get() == "vllm"
    assert settings(form).draft_length == 5
    form.speculation.setChecked(False)
    assert not presets.field.isVisible()


def test_suffix_decoding_has_its_options_and_its_preset(form):
    form.rows["method"].field.put("suffix")
    rows = form.options.rows["method", "suffix"]
    assert all(row.field.isVisible() for row in rows.values())
    assert settings(form).method_options == METHODS["suffix"].filled({})
    rows["keep"].field.put(False)
    form.options.presets["suffix"].field.put("vllm")
    found = settings(form)
    assert found.draft_length == 24
    assert found.method_options == {
        "depth": 24, "factor": 1.0, "offset": 0.0, "least_probability": 0.1, "cached": 10_000,
        "keep": False,
    }  # fmt: skip


def typed(row, qtbot, text: str) -> None:
    """What a person does: selects all, types, and goes on."""
    row.field.setFocus()
    row.field.selectAll()
    qtbot.keyClicks(row.field, text)
    qtbot.keyClick(row.field, Qt.Key.Key_Tab)


@pytest.mark.parametrize(
    ("name", "text", "value", "said"),
    [
        ("draft_length", "99", 64, "At most 64; 99 was typed."),
        ("draft_length", "0", 0, ""),
        ("draft_length", "-3", 0, "At least 0; -3 was typed."),
        ("draft_length", "17", 17, ""),
        ("max_new_tokens", "99999999", 1_000_000, "At most 1000000; 99999999 was typed."),
        ("max_new_tokens", "9" * 30, 1_000_000, f"At most 1000000; {'9' * 30} was typed."),
        ("repetitions", "0", 1, "At least 1; 0 was typed."),
        ("temperature", "-1", 0.0, "At least 0; -1 was typed."),
        ("temperature", "250", 250.0, ""),
        ("top_p", "1.5", 1.0, "At most 1; 1.5 was typed."),
        ("top_p", "0", 0.001, "At least 0.001; 0 was typed."),
        ("repetition_penalty", "20", 20.0, ""),
    ],
)
def test_a_number_outside_its_limits_becomes_the_nearest_and_that_is_said(
    form, qtbot, name, text, value, said
):
    form.more.setChecked(True)
    form.rows["temperature"].field.put(0.5)
    row = form.rows[name]
    typed(row, qtbot, text)
    assert row.field.get() == pytest.approx(value)
    assert row.said.text() == said
    assert row.said.isVisible() == bool(said)


def test_what_is_said_of_a_number_goes_with_the_next_and_with_its_row(form, qtbot):
    row = form.rows["draft_length"]
    typed(row, qtbot, "99")
    form.speculation.setChecked(False)
    assert not row.said.isVisible()
    form.speculation.setChecked(True)
    assert row.said.isVisible()
    row.field.put(3)
    assert not row.said.isVisible()
    assert not row.said.text()


@pytest.mark.parametrize(
    ("name", "span"),
    [
        ("draft_length", "0 or more, at most 64"),
        ("max_new_tokens", "0 or more, at most 1000000"),
        ("temperature", "0 or more"),
        ("top_p", "above 0, at most 1"),
        ("presence_penalty", "-1000 or more, at most 1000"),
        ("repetitions", "1 or more, at most 1000"),
    ],
)
def test_every_number_tells_its_limits_on_hover(form, name, span):
    assert f"A number: {span}." in form.rows[name].field.toolTip()


def test_options_tell_their_limits_too(form):
    for rows in form.options.rows.values():
        for row in rows.values():
            assert (row.said is None) == ("A number: " not in row.field.toolTip())


def test_the_numbers_of_the_form_end_where_those_of_a_run_end(form):
    """One more than a field holds is refused, but for what a field's 32 bits cannot hold."""
    limits = {**RUN_LIMITS, **SAMPLING_LIMITS}
    for name in limits.keys() - {"seed", "temperature"}:
        field = form.rows[name].field
        for wrong in (field.maximum() + 1, limits[name].low - 1):
            with pytest.raises(Problem):
                limits[name].check(wrong)
        limits[name].check(field.maximum())
