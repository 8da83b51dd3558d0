"""The options of whatever a form offers, as rows of it: those of what is chosen are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.gui.fields import Field, Row, option_field
from app.gui.presets import Presets
from app.gui.row_grid import RowGrid
from app.run.draft_lengths import LENGTH_POLICIES
from app.run.methods import METHODS
from app.run.options import Offer
from app.run.rules import RULES
from app.run.settings import OptionValue

OFFERS: dict[str, Mapping[str, Offer]] = {
    "method": METHODS,
    "draft_length_policy": LENGTH_POLICIES,
    "rule": RULES,
}
"""What has options of its own, by the row that offers it."""


class OptionRows:
    """The rows of all options, which are made once."""

    def __init__(self, draft_length: Callable[[], Field]) -> None:
        """`draft_length` finds the field that presets of a method may fill too."""
        self._draft_length = draft_length
        self.rows: dict[tuple[str, str], dict[str, Row]] = {}
        """By the row that offers what has them, and its name there."""
        self.presets: dict[str, Presets] = {}
        """By the name of the method that has them."""

    def add(self, grid: RowGrid, chosen_by: str) -> None:
        """Adds the options of everything that a row offers; nothing where that has none."""
        for offer in OFFERS.get(chosen_by, {}).values():
            rows = {
                option.name: Row(option.label, option_field(option), help_=option.help)
                for option in offer.options
            }
            self.rows[chosen_by, offer.name] = rows
            if offer.presets:
                self.presets[offer.name] = Presets(offer.presets, rows, self._draft_length)
                grid.add(self.presets[offer.name].row)
            for row in rows.values():
                grid.add(row)

    @property
    def all(self) -> list[Row]:
        """Every row, those of presets among them."""
        of_options = [row for rows in self.rows.values() for row in rows.values()]
        return [*of_options, *(presets.row for presets in self.presets.values())]

    def show(self, chosen: Mapping[str, str]) -> None:
        """Shows the rows of what is chosen, named by the row that offers it, and no others."""
        for (chosen_by, name), rows in self.rows.items():
            for row in rows.values():
                row.set_visible(chosen.get(chosen_by) == name)
        for name, presets in self.presets.items():
            presets.show_match()
            presets.row.set_visible(chosen.get("method") == name)

    def values(self, chosen_by: str, name: str) -> dict[str, OptionValue]:
        """What stands in the options of something on offer."""
        rows = self.rows.get((chosen_by, name), {})
        return {option: row.field.get() for option, row in rows.items()}

    def put(self, chosen_by: str, name: str, values: Mapping[str, OptionValue]) -> None:
        """Shows these values, and the defaults of the options that are not named."""
        offer = OFFERS[chosen_by].get(name)
        for option in offer.options if offer else ():
            row = self.rows[chosen_by, name][option.name]
            row.field.put(values.get(option.name, option.default))
