"""Whether the model that is chosen on the page of models fits into the memory that is free."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.gui.background import Background
from app.gui.colours import Colours
from app.gui.fit_bar import FitBar
from app.gui.models_page import ModelsPage
from app.gui.plain import label, scaled_font, tip
from app.library.device_precision import Refused
from app.library.entries import ModelEntry, PairEntry
from app.library.inventory import Listed
from app.library.memory import Plan
from app.library.memory_plan import PairSizes, Wish, model_size
from app.run.preparation import DeviceMemory

TOKENS = 4096
"""Of prompt and text; fewer where the model holds fewer."""


class ModelsFit:
    """A model by itself as a target, in the precision that this machine would choose."""

    def __init__(self, page: ModelsPage, background: Background, colours: Colours) -> None:
        self._page = page
        self._fit = FitBar(background, colours)
        self._fit.planned = self._show_heading
        self.bar = self._fit.bar
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
        self._fit.take_devices(devices)

    def take_refused(self, refused: Refused) -> None:
        """Plans and proposes nothing any more that a device cannot take."""
        self._fit.take_refused(refused)

    def look(self) -> None:
        """Shows what the chosen model takes, read anew: it may have been fetched since."""
        row = self._page.table.row
        if row is None or row.entry is None or _is_no_target(row):
            self._fit.hide()
            return
        entry = row.entry
        self._fit.forget()
        self._fit.show(row.key, lambda: _alone(entry), lambda sizes: Wish(tokens=_tokens(sizes)))

    def _show_heading(self, plan: Plan | None) -> None:
        self._place.setVisible(plan is not None)
        if plan is None:
            return
        held = plan.target.held or plan.precision
        self.heading.setText(f"MEMORY AS A TARGET, {held}, {plan.tokens:,} TOKENS")
        self.heading.setToolTip(
            tip(
                "What this model would take by itself, with the n-gram method beside its baseline, "
                "in the precision that this machine would choose."
            )
        )


def _alone(entry: ModelEntry) -> PairSizes:
    """A model as a pair of itself, with a method that asks for no other."""
    pair = PairEntry(entry.name, entry.title, entry.name, "ngram")
    return PairSizes(pair, model_size(entry), None, None, same_weights=False)


def _tokens(sizes: PairSizes) -> int:
    return min(TOKENS, sizes.target.shape.context_length or TOKENS)


def _is_no_target(row: Listed) -> bool:
    return row.is_head or row.standing == "faulty" or row.fault is not None
