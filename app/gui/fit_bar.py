"""A bar of memory that stays true to what is free, to what devices refuse, and to what is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.gui.background import Background
from app.gui.colours import Colours
from app.gui.memory_bar import MemoryBar
from app.library.device_precision import NONE_REFUSED, Refused
from app.library.fitting import fit
from app.library.memory import Plan
from app.library.memory_plan import PairSizes, Wish, plan_of
from app.run.preparation import DeviceMemory

Read = Callable[[], PairSizes]
Wished = Callable[[PairSizes], Wish]


class FitBar:
    """Shows what a pair takes; its sizes are read from its files in a thread, and once."""

    def __init__(self, background: Background, colours: Colours) -> None:
        self.bar = MemoryBar(colours)
        self.planned: Callable[[Plan | None], None] = lambda plan: None
        """Hears of each plan that is shown; None: nothing is shown."""
        self._background = background
        self._devices: tuple[DeviceMemory, ...] = ()
        self._refused: Refused = NONE_REFUSED
        self._key = ""
        self._asked = self._told = 0
        """The sizes that were asked for last, and those that are known, by their number."""
        self._sizes: PairSizes | None = None
        self._wished: Wished | None = None

    def take_devices(self, devices: Sequence[DeviceMemory]) -> None:
        """Compares with what is free on these; nothing is shown while none is known."""
        self._devices = tuple(devices)
        self._renew()

    def take_refused(self, refused: Refused) -> None:
        """Plans and proposes nothing any more that a device cannot take."""
        self._refused = refused
        self._renew()

    def show(self, key: str, read: Read, wished: Wished) -> None:
        """Shows what a wish takes of the pair that `key` names, as soon as `read` has told its
        sizes; nothing where no one tells them.
        """
        self._wished = wished
        if key == self._key:
            self._renew()
            return
        self._key = key
        self._asked += 1
        number = self._asked
        self._background.start(
            read, lambda sizes: self._take(number, sizes), lambda problem: self._take(number, None)
        )

    def forget(self) -> None:
        """Reads sizes anew when they are asked for next; what is shown stays until then."""
        self._key = ""

    def hide(self) -> None:
        """Shows nothing any more."""
        self._asked += 1
        self._key = ""
        self._take(self._asked, None)

    def _take(self, number: int, sizes: PairSizes | None) -> None:
        """Sizes have been read; others may have been asked for since."""
        if number == self._asked:
            self._told, self._sizes = number, sizes
            self._renew()

    def _renew(self) -> None:
        if self._told != self._asked:  # what is drawn stays until these sizes are known
            return
        sizes, wished = self._sizes, self._wished
        if sizes is None or wished is None or not self._devices:
            self.bar.show_fit(None)
            self.planned(None)
            return
        plan = plan_of(sizes, wished(sizes), self._devices, refused=self._refused)
        self.bar.show_fit(fit(plan, self._devices, refused=self._refused))
        self.planned(plan)
