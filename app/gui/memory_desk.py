"""Keeps the bar of memory true to what the form asks for."""

from __future__ import annotations

from collections.abc import Sequence

from app.gui.colours import Colours
from app.gui.memory_bar import MemoryBar
from app.library.catalogue import Catalogue
from app.library.fitting import Refused, fit
from app.library.memory_plan import PairSizes, Wish, plan_of, sizes_of
from app.run.preparation import DeviceMemory
from app.run.problems import Problem
from app.run.settings import RunSettings

_LETTERS_A_TOKEN = 3
"""Few enough that a prompt is rather taken for too long."""


class MemoryDesk:
    """Computes what the chosen settings take; each pair's sizes are read once."""

    def __init__(self, catalogue: Catalogue, colours: Colours) -> None:
        self.bar = MemoryBar(colours)
        self._catalogue = catalogue
        self._devices: tuple[DeviceMemory, ...] = ()
        self._refused: Refused = {}
        self._sizes: tuple[str, PairSizes | None] | None = None

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Looks pairs up in another catalogue."""
        self._catalogue = catalogue
        self.forget()

    def take_devices(self, devices: Sequence[DeviceMemory]) -> None:
        """Compares with what is free on these; nothing is shown while none is known."""
        self._devices = tuple(devices)
        self.forget()

    def take_refused(self, refused: Refused) -> None:
        """Proposes nothing any more that a device cannot take."""
        self._refused = refused

    def forget(self) -> None:
        """Reads the sizes of the pair anew: it may have been fetched since."""
        self._sizes = None

    def show(self, settings: RunSettings) -> None:
        """Shows what a run of these settings takes."""
        sizes = self._sizes_of(settings.pair) if self._devices else None
        if sizes is None:
            self.bar.show_fit(None)
            return
        read = (len(settings.system) + len(settings.prompt)) // _LETTERS_A_TOKEN
        written = max(read + settings.max_new_tokens, 1)
        wish = Wish(
            tokens=min(written, settings.context_length or written),
            precision=settings.precision,
            draft_precision=settings.draft_precision,
            device=settings.device,
            draft_device=settings.draft_device,
            method=settings.method,
            draft_length=settings.draft_length,
            baseline=settings.baseline,
        )
        plan = plan_of(sizes, wish, self._devices)
        self.bar.show_fit(fit(plan, self._devices, refused=self._refused, earlier=True))

    def _sizes_of(self, pair: str) -> PairSizes | None:
        """The sizes of a pair; None where no one tells them."""
        if self._sizes is None or self._sizes[0] != pair:
            try:
                self._sizes = pair, sizes_of(self._catalogue, pair)
            except Problem:
                self._sizes = pair, None
        return self._sizes[1]
