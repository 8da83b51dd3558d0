"""Everything that can be done, in one table: the menu, the shortcuts and the buttons read it."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from app.gui.plain import tip

Group = Literal["run", "record", "runs", "view", "program"]
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
    ActionSpec("find_runs", "Find runs", "Ctrl+F", "find_runs", "runs", "Search the kept runs."),
    ActionSpec(
        "show_playground",
        "Playground",
        "Ctrl+1",
        "show_playground",
        "view",
        "Show the page where runs are made.",
    ),
    ActionSpec("show_runs", "Runs", "Ctrl+2", "show_runs", "view", "Show the page of kept runs."),
    ActionSpec(
        "show_train",
        "Train",
        "Ctrl+3",
        "show_train",
        "view",
        "Show the page where a draft head is taught to guess ahead of a target.",
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
    ActionSpec("prompt", "Go to the prompt", "Ctrl+L", "focus_prompt", "view", "Type a prompt."),
    ActionSpec(
        "scheme_system",
        "Dark or light as the system",
        "",
        "theme.follow_system",
        "view",
        "Dark or light as the system is.",
    ),
    ActionSpec("scheme_dark", "Always dark", "", "theme.go_dark", "view", "Stay dark."),
    ActionSpec("scheme_light", "Always light", "", "theme.go_light", "view", "Stay light."),
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
    return {spec.name: _action(spec, owner) for spec in ACTIONS}


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
    made.setCheckable(spec.checkable)
    made.setShortcut(QKeySequence(spec.shortcut))
    keys = f" ({spec.shortcut})" if spec.shortcut else ""
    made.setToolTip(tip(spec.help + keys))
    slot = attrgetter(spec.slot)(owner)
    if spec.checkable:
        made.toggled.connect(slot)
    else:
        made.triggered.connect(lambda _checked=False: slot())
    owner.addAction(made)
    return made
