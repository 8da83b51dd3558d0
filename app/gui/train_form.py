"""What is asked of a training, as a form: target, prompts, minutes, vocabulary, folder."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.gui import dialogs
from app.gui.choice import Choice
from app.gui.fields import Row
from app.gui.numbers import WholeNumber
from app.gui.path_field import PathField
from app.gui.plain import label, scaled_font, section_label, set_tone
from app.gui.row_grid import RowGrid
from app.library.catalogue import Catalogue
from app.library.converted import plain_name
from app.run.problems import Problem
from app.run.teaching import VOCABULARY, Teach

MINUTES = 60
MOST_MINUTES = 100_000

OWN = "own"
"""The value of the offers that stand for a folder or a file of the person's own."""

HINT = (
    "Half of the time the target writes texts, half of it the head learns from them. For a model "
    "of 135M parameters on a small CPU, an hour and a half made nearly every second guess be kept; "
    "larger models need longer. What helps most is more text, and that is more time. It ends early "
    "when the head gets no better."
)


class TrainForm(QWidget):
    """The settings of a training."""

    edited = Signal()
    """Any setting has changed."""

    def __init__(self, catalogue: Catalogue, folder: Path) -> None:
        """Trainings are kept in `folder`, each in one named after its target."""
        super().__init__()
        self.setObjectName("form")
        self._catalogue, self._folder = catalogue, folder
        self._proposed = ""
        self.target = Choice(_targets(catalogue))
        self.place = PathField(_ask_target, placeholder="a folder, or a GGUF file")
        self.prompts = Choice([("Composed, of many kinds", ""), ("A file…", OWN)])
        self.file = PathField(dialogs.ask_prompts_path, placeholder="JSONL, TXT or CSV")
        self.minutes = WholeNumber(1, MOST_MINUTES, value=MINUTES)
        self.vocabulary = WholeNumber(2, 1_000_000, value=VOCABULARY)
        self.out = PathField(_ask_out, placeholder="where texts, checkpoint and head are kept")
        self.standing = label(tone="muted", wrap=True)
        """What the folder holds already."""
        self._rows = self._make_rows()
        self._lay_out()
        self._propose()
        self._refresh()
        self.target.edited.connect(self._retarget)
        self.place.edited.connect(self._retarget)
        for field in (self.prompts, self.file, self.minutes, self.vocabulary, self.out):
            field.edited.connect(self._tell)

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Offers the targets of another catalogue, and keeps the choice if it is still there."""
        self._catalogue = catalogue
        self.target.offer(_targets(catalogue))
        self._retarget()

    def wanted(self) -> Teach:
        """The training that is asked for. Raises Problem for what is left open."""
        own = self.target.get() == OWN
        target = self.place.get() if own else self.target.get()
        if not target:
            raise Problem("No target is chosen.", "Choose the folder of a model.")
        prompts = self.file.get() if self.prompts.get() == OWN else ""
        if self.prompts.get() == OWN and not prompts:
            raise Problem("No file of prompts is chosen.", "Choose one, or composed prompts.")
        out = self.out.get()
        if not out:
            raise Problem("No folder is chosen to keep the training in.", "Choose one.")
        return Teach(
            target=target,
            out=str(Path(out).absolute()),
            minutes=self.minutes.get(),
            prompts=prompts,
            draft_vocabulary=self.vocabulary.get(),
        )

    def show_standing(self, words: str, tone: str = "muted") -> None:
        """Says what the folder holds already."""
        set_tone(self.standing, tone)
        self.standing.setText(words)
        self.standing.setVisible(bool(words))

    def set_open(self, possible: bool) -> None:
        """Lets the settings be changed, or not."""
        for row in self._rows.values():
            row.field.setEnabled(possible)

    def _make_rows(self) -> dict[str, Row]:
        """The rows; the section of a wide one says what it is."""
        return {
            "target": Row(
                "Target", self.target, help_="The model that the head is to guess ahead of."
            ),
            "place": Row("Folder of the target", self.place, help_="A folder, or a GGUF file."),
            "prompts": Row(
                "Prompts",
                self.prompts,
                help_="What the target is asked; from its answers the head learns. Prompts like "
                "your own teach it what you need.",
            ),
            "file": Row(
                "File of prompts",
                self.file,
                help_="JSONL with `prompt` or `turns`, TXT with lines of --- between prompts, or "
                "CSV.",
            ),
            "minutes": Row("Minutes", self.minutes, help_="In all, earlier times included."),
            "vocabulary": Row(
                "Draft vocabulary",
                self.vocabulary,
                help_="How many tokens the head can guess: those that the target writes most. "
                "More cover more text, and make each guess dearer.",
            ),
            "out": Row(
                "Folder of the training",
                self.out,
                help_="Keeps texts (up to 8 GiB), checkpoint and head. A training that it holds "
                "is gone on with.",
            ),
        }

    def _lay_out(self) -> None:
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(12, 10, 12, 6)
        self._column.setSpacing(5)
        hint = label(HINT, tone="muted", wrap=True)
        for small in (hint, self.standing):
            scaled_font(small, 0.88)
        self._section("Target", "target", "place")
        self._section("Prompts", "prompts", "file")
        self._section("Effort")
        self._column.addLayout(self._grid("minutes", "vocabulary"))
        self._column.addWidget(hint)
        self._section("Kept in", "out")
        self._column.addWidget(self.standing)
        self._column.addStretch()

    def _section(self, title: str, *wide: str) -> None:
        """A heading, with fields below it that need no names."""
        if self._column.count():
            self._column.addSpacing(6)
        self._column.addWidget(section_label(title))
        for name in wide:
            row = self._rows[name]
            row.name.setParent(self)
            row.name.hide()
            self._column.addWidget(row.field)

    def _grid(self, *names: str) -> RowGrid:
        grid = RowGrid()
        for name in names:
            grid.add(self._rows[name])
        return grid

    def _retarget(self) -> None:
        self._propose()
        self._tell()

    def _propose(self) -> None:
        """Shows a folder named after the target, unless the person has named one."""
        if self.out.get() not in ("", self._proposed):
            return
        if self.target.get() == OWN:
            named = Path(self.place.get()).name
        else:
            named = self.target.currentText()
        self._proposed = str(self._folder / plain_name(named)) if named else ""
        self.out.put(self._proposed)

    def _tell(self) -> None:
        self._refresh()
        self.edited.emit()

    def _refresh(self) -> None:
        self.place.setVisible(self.target.get() == OWN)
        self.file.setVisible(self.prompts.get() == OWN)


def _targets(catalogue: Catalogue) -> list[tuple[str, str]]:
    """The targets of the pairs, each once, by the name of its first pair; and a folder."""
    first = {pair.target: pair.name for pair in reversed(catalogue.pairs)}
    targets = dict.fromkeys(pair.target for pair in catalogue.pairs)
    return [
        *((catalogue.model(name).title, first[name]) for name in targets),
        ("A folder…", OWN),
    ]


def _ask_target(parent: QWidget, at: str) -> str | None:
    return dialogs.ask_folder(parent, "The folder of a model", at)


def _ask_out(parent: QWidget, at: str) -> str | None:
    return dialogs.ask_folder(parent, "Where the training is kept", at)
