"""A choice of presets above a method's options: it fills them in, and says which stand there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from app.gui.choice import Choice
from app.gui.fields import Field, Row
from app.run.options import Preset

_OWN = ""
"""What is chosen while the fields hold no preset's values."""


class Presets:
    """The presets of one method, and the rows that they fill."""

    def __init__(
        self,
        presets: Sequence[Preset],
        options: Mapping[str, Row],
        draft_length: Callable[[], Field],
    ) -> None:
        """`draft_length` finds its field, which stands below these rows."""
        self._presets = {preset.name: preset for preset in presets}
        self._options, self._draft_length = options, draft_length
        self.field = Choice(
            [("Own values", _OWN), *((preset.label, preset.name) for preset in presets)]
        )
        help_ = "Fills in what another program does unless it is told otherwise."
        self.row = Row("Preset", self.field, help_=help_)
        self.field.edited.connect(self._fill)

    def show_match(self) -> None:
        """Says whose values stand in the fields."""
        names = (name for name, preset in self._presets.items() if self._stands(preset))
        blocked = self.field.blockSignals(True)
        self.field.put(next(names, _OWN))
        self.field.blockSignals(blocked)

    def _fill(self) -> None:
        """Fills in the preset that is chosen."""
        preset = self._presets.get(self.field.get())
        if preset is None:
            return
        for name, value in preset.options.items():
            self._options[name].field.put(value)
        if preset.draft_length is not None:
            self._draft_length().put(preset.draft_length)

    def _stands(self, preset: Preset) -> bool:
        """Whether the fields hold all values of a preset."""
        length = preset.draft_length
        return all(
            self._options[name].field.get() == value for name, value in preset.options.items()
        ) and (length is None or self._draft_length().get() == length)
