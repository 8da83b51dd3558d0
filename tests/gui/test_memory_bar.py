"""The bar of memory: shown once devices are known, true to the form, and told without colours."""

import threading
from html import escape

import msgspec
import pytest
from PySide6.QtGui import QImage
from scripted_engine import run_of

from app.engine.protocol import MemoryFree, Run
from app.gui.background import Background
from app.gui.colours import DARK, LIGHT
from app.gui.memory_bar import MemoryBar
from app.gui.memory_desk import MemoryDesk
from app.library.catalogue import load_catalogue
from app.library.fitting import fit
from app.library.memory import PARTS, Plan, cache_bytes, estimate, weights
from app.library.memory_plan import sizes_of
from app.library.model_size import size_of_shape
from app.library.shape import Shape
from app.run.preparation import DeviceMemory, PrecisionsRefused
from app.run.settings import RunSettings

SHAPE = Shape(
    parameters=1_000_000_000,
    layers=16,
    hidden=2048,
    heads=32,
    key_value_heads=8,
    head_size=64,
    intermediate=8192,
    vocabulary=32_000,
    tied=True,
    context_length=8192,
)
PLAN = Plan(target=size_of_shape(SHAPE), precision="bf16", tokens=4096)


def cpu(free):
    return DeviceMemory("cpu", "CPU", free, 64_000_000_000)


@pytest.fixture
def bar(qtbot):
    made = MemoryBar(DARK)
    qtbot.addWidget(made)
    made.resize(420, 90)
    return made


def painted(bar):
    """How many pixels of the bar's middle row have each colour."""
    image = bar._bar.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    row = image.height() // 2
    return [image.pixel(x, row) for x in range(image.width())]


def test_each_part_is_named_with_its_bytes_and_explained(bar):
    bar.show_fit(fit(PLAN, [cpu(32_000_000_000)]))
    held = estimate(PLAN)[0]
    assert bar._words["target"].text() == f"Target {held.target / 1e9:.1f} GB"
    for part in PARTS:
        assert escape(part.meaning) in bar._words[part.name].toolTip()
    assert bar.accessibleName().startswith("Memory. Fits: ")


def test_the_free_part_of_the_bar_is_as_long_as_what_is_free(bar):
    held = estimate(PLAN)[0].total
    bar.show_fit(fit(PLAN, [cpu(2 * held)]))
    half = painted(bar)
    assert len(set(half[len(half) * 6 // 10 : -2])) == 1
    assert len(set(half[: len(half) // 2])) > 1
    bar.show_fit(fit(PLAN, [cpu(held)]))
    assert len(set(painted(bar)[len(half) * 6 // 10 : -2])) > 1


def test_what_does_not_fit_says_the_change_that_would_make_it_fit(bar):
    bar.show_fit(fit(PLAN, [cpu(2_000_000_000)]))
    assert bar.sentence.text().startswith("Does not fit: ")
    assert "It would fit with the target in nf4" in bar.sentence.text()


def test_another_scheme_paints_it_anew(bar):
    bar.show_fit(fit(PLAN, [cpu(32_000_000_000)]))
    dark = painted(bar)
    bar.set_colours(LIGHT)
    assert painted(bar) != dark


def test_nothing_is_shown_until_devices_are_known_and_the_pairs_sizes(qtbot, tmp_path):
    file = tmp_path / "models.yaml"
    file.write_text(
        "models:\n  m:\n    title: M\n    source: {hub: someone/m}\n"
        "pairs:\n  p: {title: P, target: m, method: ngram}\n",
        encoding="utf-8",
    )
    background = Background()
    desk = MemoryDesk(load_catalogue([file]), background, DARK)
    qtbot.addWidget(desk.bar)
    desk.show(RunSettings(pair="p", prompt="a"))
    assert desk.bar.isHidden()
    desk.take_devices([cpu(1)])
    desk.show(RunSettings(pair="p", prompt="a"))
    settle(background)
    assert desk.bar.isHidden()


def settle(background):
    """Lets what is read in threads arrive."""
    assert background.wait(10)
    background.deliver()


@pytest.fixture
def desk(qtbot, tmp_path):
    """A desk that knows a pair with a draft model, a card and a CPU; every fit that it shows."""
    sizes = msgspec.json.encode(SHAPE).decode()
    file = tmp_path / "models.yaml"
    file.write_text(
        f"models:\n  t: {{title: T, source: {{hub: someone/t}}, shape: {sizes}}}\n"
        f"  d: {{title: D, source: {{hub: someone/d}}, shape: {sizes}}}\n"
        "pairs:\n  p: {title: P, target: t, draft: d, method: draft-model}\n",
        encoding="utf-8",
    )
    background = Background()
    made = MemoryDesk(load_catalogue([file]), background, DARK)
    qtbot.addWidget(made.bar)
    made.take_devices([DeviceMemory("cuda:0", "Card", 1 << 40, 1 << 40), cpu(1 << 40)])
    made.show(RunSettings(pair="p", prompt="a"))
    settle(background)
    return made


def held_by(desk, monkeypatch, **settings):
    """What the desk shows for a pair whose models are both in bf16."""
    shown = []
    monkeypatch.setattr(desk.bar, "show_fit", shown.append)
    chosen = {
        "pair": "p",
        "prompt": "a" * 300,
        "method": "draft-model",
        "max_new_tokens": 100,
        "baseline": False,
        "precision": "bf16",
        "draft_precision": "bf16",
    }
    desk.show(RunSettings(**{**chosen, **settings}))
    return shown[0].held


def test_a_draft_model_on_another_device_is_counted_there(desk, monkeypatch):
    target, draft = held_by(desk, monkeypatch, draft_device="cpu")
    assert (target.device, target.draft) == ("cuda:0", 0)
    assert (draft.device, draft.draft) == ("cpu", weights(size_of_shape(SHAPE), "bf16", "cpu"))


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [
        ({}, 200),
        ({"system": "b" * 150}, 250),
        ({"context_length": 4096}, 200),
        ({"context_length": 128}, 128),
    ],
)
def test_a_session_takes_room_for_its_text_and_no_more_than_a_context_allows(
    desk, monkeypatch, settings, tokens
):
    [held] = held_by(desk, monkeypatch, **settings)
    assert held.caches == 2 * cache_bytes(size_of_shape(SHAPE), "bf16", tokens, placed=True)


def test_what_makes_room_is_told_apart(desk):
    desk.show(RunSettings(pair="p", prompt="a"))
    assert desk.bar.sentence.text().endswith("that are free on Card.")
    desk.take_devices([DeviceMemory("cuda:0", "Card", 9 * 10**9, 10**10, ours_bytes=4 * 10**9)])
    said = "9.0 GB that are free on Card, counting 4.0 GB of models loaded now, which are let go"
    assert f"{said} where they are in the way." in desk.bar.sentence.text()


def test_a_default_that_a_card_refuses_is_not_planned(desk, monkeypatch):
    # Beside a bitsandbytes that does not work here, models load in bf16: four times as large.
    size = size_of_shape(SHAPE)
    desk.take_refused({"cuda": {"nf4": "It needs bitsandbytes.", "fp4": "As well."}})
    [held] = held_by(desk, monkeypatch, precision=None, draft_precision=None)
    assert held.target == held.draft == weights(size, "bf16", "cuda:0")
    desk.take_refused({})
    [held] = held_by(desk, monkeypatch, precision=None, draft_precision=None)
    assert held.target == held.draft == weights(size, "nf4", "cuda:0")


def test_sizes_are_read_in_a_thread_once_and_what_was_drawn_stays_until_then(
    desk, monkeypatch, qtbot
):
    reads, go_on, window = [], threading.Event(), threading.get_ident()

    def slow(catalogue, pair):
        reads.append(threading.get_ident())
        assert go_on.wait(10)
        return sizes_of(catalogue, pair)

    monkeypatch.setattr("app.gui.memory_desk.sizes_of", slow)
    drawn = desk.bar.sentence.text()
    desk.forget()
    for tokens in (100, 200, 300):
        desk.show(RunSettings(pair="p", prompt="a", max_new_tokens=tokens, precision="fp32"))
    assert desk.bar.sentence.text() == drawn
    go_on.set()
    settle(desk._fit._background)
    assert desk.bar.sentence.text() != drawn
    assert len(reads) == 1
    assert window not in reads


def test_what_is_free_is_asked_again_whenever_it_may_be_another(window, play, client):
    def answered(free):
        play(MemoryFree(client.looks[-1].question, (cpu(free),)))
        return window.page.memory.bar.sentence.text()

    def form_says(**changes):
        window.page.fill(RunSettings(**{"pair": "embedded", "prompt": "a", **changes}))

    assert len(client.looks) == 1  # the pair at the start has been loaded
    assert window.background.wait(10)
    window.frame()
    assert "of 32.0 GB that are free on CPU" in answered(32 * 10**9)
    form_says(max_new_tokens=77)
    form_says(max_new_tokens=78)
    assert len(client.looks) == 2  # one answer serves both
    assert "of 31.0 GB" in answered(31 * 10**9)
    window.run()
    play(MemoryFree(client.looks[-1].question, (cpu(31 * 10**9),)))
    asked = len(client.looks)
    form_says(max_new_tokens=79)
    assert len(client.looks) == asked  # a run is changing it
    begun = [one for one in client.sent if isinstance(one, Run)][-1]
    play(*run_of(run=begun.run))
    assert len(client.looks) == asked + 1
    assert "of 30.0 GB" in answered(30 * 10**9)


def test_no_change_is_proposed_that_a_device_refuses(desk):
    desk.take_devices([cpu(2_500_000_000)])
    settings = RunSettings(pair="p", prompt="a", max_new_tokens=10, precision="bf16")
    desk.show(settings)
    assert "in nf4" in desk.bar.sentence.text()
    desk.take_refused({"cpu": {"nf4": "It needs bitsandbytes."}})
    desk.show(settings)
    assert "in nf4" not in desk.bar.sentence.text()
    assert "Choose a smaller model." in desk.bar.sentence.text()


def test_both_bars_of_the_window_hear_what_devices_refuse(window, play, monkeypatch):
    heard = []
    for bar in (window.page.memory, window.fit):
        monkeypatch.setattr(bar, "take_refused", heard.append)
    reasons = {"cpu": {"nf4": "It needs bitsandbytes."}}
    play(PrecisionsRefused(reasons))
    assert heard == [reasons, reasons]
