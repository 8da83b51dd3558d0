"""Draws the scenes of the snapshots: python snapshot_program.py dark|light FOLDER SIZE FONT SCENE…

SIZE is that of the window, as 1280x720; FONT a multiple of the font's usual size. The scale is Qt's
own, from QT_SCALE_FACTOR. Fails if a word or a button is cut off.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

from msgspec.structs import replace  # noqa: E402

from app.library.training_folder import Found  # noqa: E402

TRAINING = "/trainings/SmolLM2-135M-Instruct"
LONG = "Meta_Llama_3.1_405B_Instruct_GPTQ_INT4_128g_actorder_true_sym_desc_act_v2_merged_final"


def main() -> int:
    from cut_off import cut_off
    from PySide6.QtCore import Qt
    from PySide6.QtGui import QFont, QFontDatabase
    from PySide6.QtWidgets import QApplication
    from scripted_engine import ScriptedClient

    from app import files
    from app.gui.engine_link import EngineLink
    from app.gui.theme import Theme
    from app.gui.window import MainWindow
    from app.library.catalogue import load_catalogue

    scheme, folder, size, larger, *scenes = sys.argv[1:]
    application = QApplication([])
    application.setCursorFlashTime(0)
    for file in (HERE / "fonts").glob("*.ttf"):
        QFontDatabase.addApplicationFont(str(file))
    font = QFont("Foretoken Test")
    font.setPointSizeF(9.5 * float(larger))
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    application.setFont(font)
    theme = Theme(application)
    theme.force(Qt.ColorScheme.Dark if scheme == "dark" else Qt.ColorScheme.Light)
    failed = False
    for scene in scenes:
        client = ScriptedClient()
        catalogue = load_catalogue([files.shipped_catalogue()])
        history = Path(folder) / f"{scene}.sqlite"
        window = MainWindow(EngineLink(client), catalogue, theme, history=history)
        window.resize(*map(int, size.split("x")))
        window.show()
        window.begin()
        window.stop_clocks()
        client.ready()
        window.frame()
        SCENES[scene](window, client)
        for _ in range(3):
            window.frame()
            window.renew()
            application.processEvents()
        window.grab().save(str(Path(folder) / f"{scene}.png"))
        found = cut_off(window)
        window.close()
        for words in found:
            print(f"cut off in {scene}: {words}", file=sys.stderr)
        failed = failed or bool(found)
    return int(failed)


def finished(window, client) -> None:
    """A whole run, with everything that can be shown inline, and the card of a token."""
    from PySide6.QtCore import QPoint, QRect
    from scripted_engine import run_of

    window.page.fill(run_of()[0].settings)  # so that the run is of these settings
    window.run()
    client.play(*run_of())
    window.frame()
    window.action["thrown"].trigger()
    window.action["seams"].trigger()
    lane = window.page.lanes[0].text
    place = lane.toPlainText().index("fog")
    corner = lane.viewport().mapToGlobal(QPoint(250, 14))
    window.page.card.show_span(lane.span_at(place), QRect(corner.x(), corner.y(), 8, 18))


def costs(window, client) -> None:
    """A whole run with its costs and with cautions, and the page that they stand on."""
    from scripted_engine import costed, run_of

    from app.run.flags import Flag

    window.page.fill(run_of()[0].settings)  # so that the run is of these settings
    window.run()
    client.play(*costed(run_of(), flags=(Flag("battery"), Flag("other load", "by another"))))
    window.frame()
    window.page.charts.switch.buttons.button(1).click()


def trouble(window, client) -> None:
    """A run with draws that broke off, because its engine was killed."""
    from scripted_engine import run_of

    from app.engine.protocol import EngineEnded

    window.page.form.choose_pair("embedded-nf4-draft")
    client.ready()
    window.frame()
    window.page.form.rows["temperature"].field.put(0.7)
    window.run()
    client.play(*run_of(method="draft-model")[:90])
    window.frame()
    client.play(EngineEnded("The engine was killed (signal 9). Run again.", expected=False))


def opening(window, client) -> None:
    """The window as it opens, while the pair is made ready."""
    from app.run.events import Progress

    window.page.form.choose_pair("embedded-nf4-draft")
    client.play(Progress("converting the model", 219e6, 538e6, "bytes"))


def continued(window, client) -> None:
    """A run that was stopped and gone on with."""
    from scripted_engine import STORY, run_of, stopped

    window.page.fill(run_of()[0].settings)  # so that the run is of these settings
    window.run()
    client.play(*stopped(run_of(), after=90))
    window.frame()
    window.running.go_on()
    asked = client.sent[-1]
    settings = {name: getattr(asked.settings, name) for name in ("continues", "prompt_ids")}
    client.play(*run_of(STORY[:120], run=asked.run, **settings))
    window.page.form.more.setChecked(True)


def runs(window, client) -> None:
    """The list of kept runs; one has tags and a note."""
    _keep_runs(window)
    window.pages.show_runs()
    _settle(window)


def compared(window, client) -> None:
    """Two runs side by side."""
    runs(window, client)
    window.runs.table.selectAll()
    window.desk.compare()
    _settle(window)


def train(window, client) -> None:
    """A head in its lessons, its curve half drawn."""
    from scripted_engine import learning_curve

    from app.run.events import Progress

    _show_train(window)
    window.train.start.click()
    client.play(*learning_curve()[:13], Progress("teaching, 14 min left", 960, 1800, "s"))


def trained(window, client) -> None:
    """What came of a training, and that another stands in the folder now chosen."""
    from scripted_engine import learning_curve

    from app.run.teaching import Taught

    train(window, client)
    window.frame()
    curve = learning_curve()
    head = f"{TRAINING}/head"
    client.play(*curve[13:], Taught(head, curve[-2], curve, 0.966, 1_904_233, 1800.0, True))
    window.frame()
    window.renew()
    _settle(window)
    found = Found(True, (), Path(head), "On some tokens.")
    window.training._seen(window.train.form.wanted(), found)


def untaught(window, client) -> None:
    """A training with a target and prompts of a person's own, which could not be begun."""
    from app.engine.protocol import JobProblem

    _show_train(window)
    form = window.train.form
    form.target.put("own")
    form.prompts.put("own")
    form.place.put("/models/llama-3.2-1b")
    form.file.put("/prompts/mine.jsonl")
    window.train.start.click()
    client.play(
        JobProblem(
            "Teaching such a head needs about 3.1 GB of memory beside the target; 1.2 GB are free.",
            "Close other programs, choose a smaller draft vocabulary, or a smaller target.",
        )
    )
    window.frame()
    window.renew()
    _settle(window)
    another = Found(True, ("draft vocabulary 4096 instead of 8192",))
    window.training._seen(form.wanted(), another)


def long_names(window, client) -> None:
    """Whatever a person or a model names is named at length, with nowhere to break it."""
    from scripted_engine import prepared, run_of

    catalogue = _renamed(window.page.form)
    window._take_catalogue(catalogue)
    window.page.form.choose_pair(catalogue.default)
    client.play(replace(prepared(), target=replace(prepared().target, name=LONG)))
    window.run()
    client.play(*run_of(method="ngram"))


def long_models(window, client) -> None:
    """A model with a long name in the list and on the panel, beside a pair with another."""
    from model_rows import rows

    catalogue = _renamed(window.page.form)
    window._take_catalogue(catalogue)
    models(window, client)
    first, *rest = rows()
    files = replace(first.examined, path=Path(f"/models/{LONG}/{LONG}"), architecture=LONG)
    named = replace(first, title=LONG, pairs=(LONG,), examined=files)
    window.stock._show((named, *rest))
    window.models.table.choose(named.key)
    _settle(window)


def models(window, client) -> None:
    """Models of the catalogue and of this machine; the chosen one fits the target."""
    from app.library.together import Together

    _show_models(window)
    window.models.table.choose("path /models/llama-3.2-1b-draft")
    _settle(window)
    found = Together("fits", "Every id means the same to both.")
    pairing = window.stock.pairing
    pairing._judged(window.models.table.row, pairing.target, found)


def faults(window, client) -> None:
    """A faulty entry is chosen, while a model is fetched and another could not be."""
    from app.run.events import Progress

    _show_models(window)
    window.models.notice.show_trouble(
        "meta-llama/Llama-3.2-1B is gated, private, or not known to the Hub.",
        "Check the name, ask for access at huggingface.co/meta-llama/Llama-3.2-1B, then log in "
        "with `hf auth login`.",
    )
    window.stock.keeping._fetching.progress = Progress("Downloading", 219e6, 988e6, "bytes")
    window.models.which.put("unusable")
    window.models.table.choose("fault /home/me/models.yaml 7 5")


def _renamed(form):
    """The catalogue, its models and pairs called by a long name."""
    old = form.picker.offers.catalogue
    models = [replace(model, title=LONG) for model in old.models]
    return replace(old, models=models, pairs=[replace(pair, title=LONG) for pair in old.pairs])


def _show_models(window) -> None:
    from model_rows import PLACES, rows

    window.stock._scanned = True
    window.pages.show_models()
    _settle(window)
    window.stock._show(rows())
    window.models.show_places(*PLACES)


def _show_train(window) -> None:
    window.pages.show_train()
    window.train.form.out.put(TRAINING)
    window.training.look()
    _settle(window)


def _keep_runs(window) -> None:
    from scripted_engine import record_of, run_of

    from app.history import History

    with History(window.kept.path) as history:
        for number in range(3):
            record = record_of(run_of(run=f"run-{number}", draft_length=4 + number))
            record.started = f"2026-01-0{2 + number}T03:04:05+01:00"
            history.add(record)
        history.tag("run-2", "for the talk")
        history.note("run-2", "The fast one.")


def _settle(window) -> None:
    """Lets the background end its work, and the window take it in."""
    for _ in range(3):
        window.background.wait(20)
        window.frame()


SCENES = {
    "finished": finished,
    "costs": costs,
    "trouble": trouble,
    "opening": opening,
    "continued": continued,
    "runs": runs,
    "compared": compared,
    "models": models,
    "faults": faults,
    "long_names": long_names,
    "long_models": long_models,
    "train": train,
    "trained": trained,
    "untaught": untaught,
}

if __name__ == "__main__":
    sys.exit(main())
