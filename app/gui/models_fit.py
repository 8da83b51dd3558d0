"""Whether the model that is chosen on the page of models fits into the memory that is free."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.gui.background import Background
from app.gui.colours import Colours
from app.gui.memory_bar import MemoryBar
from app.gui.models_page import ModelsPage
from app.gui.plain import label, scaled_font, tip
from app.library.entries import PairEntry
from app.library.fitting import Refused, fit
from app.library.inventory import Listed
from app.library.memory_plan import PairSizes, Wish, model_size, plan_of
from app.library.model_size import ModelSize
from app.run.preparation import DeviceMemory
from app.run.problems import Problem

TOKENS = 4096
"""Of prompt and text; fewer where the model holds fewer."""


class ModelsFit:
    """A model by itself as a target, in the precision that this machine would choose."""

    def __init__(self, page: ModelsPage, background: Background, colours: Colours) -> None:
        self._page, self._background = page, background
        self._devices: tuple[DeviceMemory, ...] = ()
        self._refused: Refused = {}
        self.bar = MemoryBar(colours)
        self.heading = label(tone="muted")
        scaled_font(self.heading, 0.85)
        self._place = QWidget()
        column = QVBoxLayout(self._place)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(3)
        column.addWidget(self.heading)
        column.addWidget(self.bar)
        layout = self.bar.layout()
        assert layout is not None
        layout.setContentsMargins(0, 0, 0, 0)
        page.side.show_fit(self._place)
        self._place.hide()
        page.table.chosen.connect(self.look)

    def take_devices(self, devices: Sequence[DeviceMemory]) -> None:
        """Compares with what is free on these; nothing is shown while none is known."""
        self._devices = tuple(devices)
        self.look()

    def take_refused(self, refused: Refused) -> None:
        """Proposes nothing any more that a device cannot take."""
        self._refused = refused
        self.look()

    def look(self) -> None:
        """Reads the sizes of the chosen model in a thread, and shows what they come to."""
        row = self._page.table.row
        if not self._devices or row is None or row.entry is None or _is_no_target(row):
            self._place.hide()
            return
        entry = row.entry
        self._background.start(
            lambda: model_size(entry), partial(self._show, row.key), partial(self._hide, row.key)
        )

    def _show(self, key: str, size: ModelSize) -> None:
        if not self._is_chosen(key):
            return
        alone = PairEntry(key, key, key, "ngram")
        tokens = min(TOKENS, size.shape.context_length or TOKENS)
        sizes = PairSizes(alone, size, None, None, same_weights=False)
        plan = plan_of(sizes, Wish(tokens=tokens), self._devices)
        held = size.held or plan.precision
        self.heading.setText(f"MEMORY AS A TARGET, {held}, {tokens:,} TOKENS")
        self.heading.setToolTip(
            tip(
                "What this model would take by itself, with the n-gram method beside its baseline, "
                "in the precision that this machine would choose."
            )
        )
        shown = fit(plan, self._devices, refused=self._refused, earlier=True)
        self.bar.show_fit(shown)
        self._place.show()

    def _hide(self, key: str, _problem: Problem) -> None:
        """Nobody tells its sizes: nothing is shown rather than guessed."""
        if self._is_chosen(key):
            self._place.hide()

    def _is_chosen(self, key: str) -> bool:
        row = self._page.table.row
        return row is not None and row.key == key


def _is_no_target(row: Listed) -> bool:
    return row.is_head or row.standing == "faulty" or row.fault is not None
