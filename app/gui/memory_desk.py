"""What the settings of the form take of the memory that is free."""

from __future__ import annotations

from collections.abc import Sequence

from app.gui.background import Background
from app.gui.colours import Colours
from app.gui.fit_bar import FitBar
from app.library.catalogue import Catalogue
from app.library.device_precision import Refused
from app.library.memory_plan import Wish, sizes_of
from app.run.preparation import DeviceMemory
from app.run.settings import RunSettings

_LETTERS_A_TOKEN = 3
"""Few enough that a prompt is rather taken for too long."""


class MemoryDesk:
    """Keeps the bar of memory true to the form."""

    def __init__(self, catalogue: Catalogue, background: Background, colours: Colours) -> None:
        self._fit = FitBar(background, colours)
        self.bar = self._fit.bar
        self._catalogue = catalogue

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Looks pairs up in another catalogue."""
        self._catalogue = catalogue
        self.forget()

    def take_devices(self, devices: Sequence[DeviceMemory]) -> None:
        """Compares with what is free on these; nothing is shown while none is known."""
        self._fit.take_devices(devices)

    def take_refused(self, refused: Refused) -> None:
        """Plans and proposes nothing any more that a device cannot take."""
        self._fit.take_refused(refused)

    def forget(self) -> None:
        """Reads the sizes of the pair anew: it may have been fetched since."""
        self._fit.forget()

    def show(self, settings: RunSettings) -> None:
        """Shows what a run of these settings takes."""
        catalogue, wish = self._catalogue, _wish(settings)
        self._fit.show(
            settings.pair, lambda: sizes_of(catalogue, settings.pair), lambda sizes: wish
        )


def _wish(settings: RunSettings) -> Wish:
    """What settings ask of their pair's memory."""
    read = (len(settings.system) + len(settings.prompt)) // _LETTERS_A_TOKEN
    written = max(read + settings.max_new_tokens, 1)
    return Wish(
        tokens=min(written, settings.context_length or written),
        precision=settings.precision,
        draft_precision=settings.draft_precision,
        device=settings.device,
        draft_device=settings.draft_device,
        method=settings.method,
        method_options=settings.method_options,
        draft_length=settings.draft_length,
        passes=settings.passes,
        baseline=settings.baseline,
    )
