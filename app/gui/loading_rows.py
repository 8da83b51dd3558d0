"""What models are loaded with, as rows of a form: the devices here, and what they cannot take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.gui.choice import Choice
from app.gui.fields import Row
from app.library.entries import PairEntry
from app.run.preparation import DeviceMemory


class LoadingRows:
    """The rows of devices, precisions and passes, among the rows of a form."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows
        self._devices: tuple[DeviceMemory, ...] = ()
        self._refusals: Mapping[str, Mapping[str, str]] = {}
        """Why not, by kind of device and precision."""

    def offer(self, devices: Sequence[DeviceMemory]) -> None:
        """Offers the devices of this machine."""
        self._devices = tuple(devices)
        named = [(device.title, device.name) for device in devices]
        self._choice("device").offer([("The best here", None), *named])
        self._choice("draft_device").offer([("The pair's own", None), *named])

    def refuse(self, reasons: Mapping[str, Mapping[str, str]]) -> None:
        """Minds what kinds of devices cannot take, and why."""
        self._refusals = reasons

    def show(self, pair: PairEntry | None) -> None:
        """Shows the rows that there is something to choose in for a pair, and greys out what the
        chosen devices cannot take.
        """
        drafts = pair is not None and bool(pair.draft)
        self._rows["draft_precision"].set_visible(drafts)
        several = len(self._devices) > 1
        self._rows["device"].set_visible(several)
        self._rows["draft_device"].set_visible(several and drafts)
        cards = any(device.name.startswith("cuda") for device in self._devices)
        for name in ("allow_offload", "passes"):
            self._rows[name].set_visible(cards)
        self._grey_out(pair)

    def _grey_out(self, pair: PairEntry | None) -> None:
        first = self._devices[0].name if self._devices else "cpu"
        device = self._choice("device").get() or first
        own = pair.draft_device if pair else None
        drafts_on = self._choice("draft_device").get() or own or device
        for name, place in (("precision", device), ("draft_precision", drafts_on)):
            self._choice(name).refuse(self._refusals.get(place.partition(":")[0], {}))

    def _choice(self, name: str) -> Choice:
        field = self._rows[name].field
        assert isinstance(field, Choice)
        return field
