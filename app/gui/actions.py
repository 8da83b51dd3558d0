"""Everything that can be done, in one table: the menu, the shortcuts and the buttons read it."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from app.gui.plain import tip

Group = Literal["run", "record", "runs", "models", "view", "program"]
"""Actions of one group stand together in the menu."""


@dataclass(frozen=True)
class ActionSpec:
    """One thing that can be done."""

    name: str
    text: str
    shortcut: str
    slot: str
    """What does it: a method of the window, or of something that the window has."""
    group: Group
    help: str
    checkable: bool = False
    one_of: str = ""
    """One of the actions that share this word is checked: the one in force."""


ACTIONS: tuple[ActionSpec, ...] = (
    ActionSpec("run", "Run", "Ctrl+Return", "run", "run", "Run both lanes with these settings."),
    ActionSpec("stop", "Stop", "Esc", "stop", "run", "End what goes on; what has come is kept."),
    ActionSpec(
        "run_again",
        "Run again",
        "Ctrl+R",
        "run_again",
        "run",
        "Run the same settings again, whatever the form says: those of the run that is shown or, "
        "in the list, chosen.",
    ),
    ActionSpec(
        "continue",
        "Continue",
        "Ctrl+Shift+Return",
        "running.go_on",
        "run",
        "Go on where the run that is shown was cut off; both lanes go on from the same text.",
    ),
    ActionSpec(
        "speculation",
        "Speculation",
        "Ctrl+Shift+S",
        "page.form.speculation.setChecked",
        "run",
        "Off: the target writes alone.",
        checkable=True,
    ),
    ActionSpec(
        "audit",
        "Audit losslessness…",
        "Ctrl+Shift+A",
        "running.audit",
        "run",
        "Draw many short texts with these settings, and compare them with the target's own law; "
        "Stop ends it early.",
    ),
    ActionSpec(
        "vllm_config",
        "Settings from vLLM…",
        "",
        "elsewhere.take_config",
        "run",
        "Fill the form from the JSON of vLLM's --speculative-config.",
    ),
    ActionSpec(
        "export",
        "Export…",
        "Ctrl+E",
        "export",
        "record",
        "Write the run that is shown as JSON, CSV, Markdown or HTML.",
    ),
    ActionSpec("open", "Open a report…", "Ctrl+O", "open_report", "record", "Show a JSON report."),
    ActionSpec(
        "copy_text",
        "Copy the text",
        "Ctrl+Shift+C",
        "copy_text",
        "record",
        "Copy the text of the speculative lane, exactly.",
    ),
    ActionSpec(
        "copy_picture",
        "Copy as picture",
        "Ctrl+Shift+P",
        "copy_picture",
        "record",
        "Copy the verdict as a picture, with what ran, where and when.",
    ),
    ActionSpec(
        "use_elsewhere",
        "Use elsewhere…",
        "Ctrl+U",
        "elsewhere.show",
        "record",
        "The same set-up for vLLM, llama.cpp and transformers, to be copied: that of the run that "
        "is shown, or else of the form.",
    ),
    ActionSpec(
        "open_run", "Open", "Ctrl+Shift+O", "desk.open", "runs", "Show the run that is chosen."
    ),
    ActionSpec(
        "compare_runs",
        "Compare",
        "Ctrl+D",
        "desk.compare",
        "runs",
        "Show the runs that are chosen side by side; choose several with Shift or Ctrl.",
    ),
    ActionSpec(
        "export_runs",
        "Export runs…",
        "Ctrl+Shift+E",
        "desk.export",
        "runs",
        "Write the runs that are chosen, or all if none is, to a file that can be imported.",
    ),
    ActionSpec(
        "import_runs",
        "Import runs…",
        "Ctrl+I",
        "desk.import_",
        "runs",
        "Take in runs from such a file, or from a JSON report.",
    ),
    ActionSpec(
        "delete_runs",
        "Delete…",
        "Del",
        "desk.delete",
        "runs",
        "Delete the runs that are chosen, after a question.",
    ),
    ActionSpec(
        "use_target",
        "Use as target",
        "Ctrl+T",
        "stock.pairing.use_target",
        "models",
        "Make the chosen model the target of the Playground; one that was found on this machine is "
        "added to your models.yaml.",
    ),
    ActionSpec(
        "use_draft",
        "Use as draft",
        "Ctrl+Shift+T",
        "stock.pairing.use_draft",
        "models",
        "Let the chosen model, or head, guess ahead of the target of the Playground.",
    ),
    ActionSpec(
        "fetch_model",
        "Fetch",
        "Ctrl+G",
        "stock.keeping.fetch",
        "models",
        "Fetch the chosen model and convert it if need be, so that a run starts at once.",
    ),
    ActionSpec(
        "remove_model",
        "Remove…",
        "Ctrl+Shift+R",
        "stock.keeping.remove",
        "models",
        "Remove from the disk what Foretoken has fetched or made for the chosen model, after a "
        "question.",
    ),
    ActionSpec(
        "check_model",
        "Check again",
        "Ctrl+K",
        "stock.check_again",
        "models",
        "Look again at the chosen model, or at the models.yaml with the chosen fault.",
    ),
    ActionSpec(
        "add_folder",
        "Add folder…",
        "Ctrl+Shift+F",
        "stock.add_folder",
        "models",
        "Look for models in a folder of yours.",
    ),
    ActionSpec(
        "scan_models",
        "Look again",
        "F5",
        "stock.scan_again",
        "models",
        "Read the catalogue anew, and look for models on this machine: in the places of Hugging "
        "Face, LM Studio, llama.cpp and Ollama.",
    ),
    ActionSpec(
        "show_playground",
        "Playground",
        "Ctrl+1",
        "pages.show_playground",
        "view",
        "Show the page where runs are made.",
    ),
    ActionSpec(
        "show_runs", "Runs", "Ctrl+2", "pages.show_runs", "view", "Show the page of kept runs."
    ),
    ActionSpec(
        "show_train",
        "Train",
        "Ctrl+3",
        "pages.show_train",
        "view",
        "Show the page where a draft head is taught to guess ahead of a target.",
    ),
    ActionSpec(
        "show_models",
        "Models",
        "Ctrl+4",
        "pages.show_models",
        "view",
        "Show the page of models: what is on offer, what is on this machine, and why not.",
    ),
    ActionSpec(
        "find",
        "Find",
        "Ctrl+F",
        "pages.search_list",
        "view",
        "Search the list that is shown: models on their page, elsewhere the kept runs.",
    ),
    ActionSpec(
        "thrown",
        "Show rejected guesses",
        "R",
        "page.set_thrown",
        "view",
        "Show guesses that were thrown away, in their place.",
        checkable=True,
    ),
    ActionSpec(
        "seams",
        "Show loop seams",
        "L",
        "page.set_seams",
        "view",
        "Show where one loop ends and the next begins.",
        checkable=True,
    ),
    ActionSpec(
        "charts",
        "Show charts",
        "Ctrl+Shift+H",
        "page.charts.setVisible",
        "view",
        "Show or hide the charts.",
        checkable=True,
    ),
    ActionSpec(
        "prompt", "Go to the prompt", "Ctrl+L", "pages.focus_prompt", "view", "Type a prompt."
    ),
    ActionSpec(
        "scheme_system",
        "Dark or light as the system",
        "",
        "theme.follow_system",
        "view",
        "Dark or light as the system is.",
        one_of="scheme",
    ),
    ActionSpec(
        "scheme_dark",
        "Always dark",
        "",
        "theme.go_dark",
        "view",
        "Stay dark.",
        one_of="scheme",
    ),
    ActionSpec(
        "scheme_light",
        "Always light",
        "",
        "theme.go_light",
        "view",
        "Stay light.",
        one_of="scheme",
    ),
    ActionSpec(
        "updates",
        "Look for a newer version at the start",
        "",
        "updates.set_wanted",
        "program",
        "Read at every start what the newest release says of itself, and tell if it is newer; "
        "nothing is downloaded. Off unless you switch it on.",
        checkable=True,
    ),
    ActionSpec(
        "release",
        "Release models",
        "Ctrl+Shift+M",
        "running.release",
        "program",
        "Let go of the models that are loaded, and give their memory back; the next run loads "
        "what it needs.",
    ),
    ActionSpec(
        "forget_texts",
        "Kept texts…",
        "",
        "texts.forget",
        "program",
        "Tell how much of earlier runs is kept for suffix decoding to copy from, and let it go.",
    ),
    ActionSpec(
        "restart",
        "Restart the engine",
        "",
        "restart_engine",
        "program",
        "End the engine process and start a new one; this frees all memory that it holds.",
    ),
    ActionSpec("quit", "Quit", "Ctrl+Q", "close", "program", "End the program."),
)
"""All actions, in the order of the menu."""


def make_actions(owner: QWidget) -> dict[str, QAction]:
    """A live action for every row of the table, with its slot on the owner."""
    made = {spec.name: _action(spec, owner) for spec in ACTIONS}
    for word in {spec.one_of for spec in ACTIONS} - {""}:
        group = QActionGroup(owner)
        for spec in ACTIONS:
            if spec.one_of == word:
                group.addAction(made[spec.name])
    return made


def explain(action: QAction, obstacle: str) -> None:
    """Tells on hover why an action cannot be done; without a reason, what it does."""
    spec = next(spec for spec in ACTIONS if spec.name == action.objectName())
    action.setToolTip(tip(obstacle or _told(spec)))


def make_menu(actions: dict[str, QAction], parent: QWidget) -> QMenu:
    """The menu of all actions, group by group."""
    menu = QMenu(parent)
    group = ACTIONS[0].group
    for spec in ACTIONS:
        if spec.group != group:
            menu.addSeparator()
            group = spec.group
        menu.addAction(actions[spec.name])
    return menu


def _action(spec: ActionSpec, owner: QWidget) -> QAction:
    made = QAction(spec.text, owner)
    made.setObjectName(spec.name)
    made.setCheckable(spec.checkable or bool(spec.one_of))
    made.setShortcut(QKeySequence(spec.shortcut))
    made.setToolTip(tip(_told(spec)))
    slot = attrgetter(spec.slot)  # looked up when it is called: pages are made after actions
    if spec.checkable:
        made.toggled.connect(lambda checked: slot(owner)(checked))
    else:
        made.triggered.connect(lambda _checked=False: slot(owner)())
    owner.addAction(made)
    return made


def _told(spec: ActionSpec) -> str:
    """What it does, and its keys."""
    return spec.help + (f" ({spec.shortcut})" if spec.shortcut else "")
