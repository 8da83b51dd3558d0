"""Models of the Hugging Face Hub, fetched into the cache that other programs share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from app.library.entries import HubSource
from app.library.hub_access import HubAccess, hub_access
from app.library.hub_cache import CachedRepository
from app.library.hub_choice import Choice, choose, shards
from app.library.hub_listing import Listing, RemoteFile, list_repository
from app.library.hub_patience import patiently
from app.library.hub_problem import hub_problem
from app.library.hub_traffic import Traffic
from app.library.hub_transfer import Transfer
from app.library.whole_folder import Pause, require_space
from app.run.events import Progress
from app.run.problems import Problem

_AT_ONCE = 4
"""Files that come side by side."""


def fetch_from_hub(source: HubSource, *, report: Callable[[Progress], None], pause: Pause) -> Path:
    """Fetches what is missing of a model; returns its folder, or its GGUF file.

    `pause` is called ten times a second, and stops the transfer by raising Cancelled: what has come
    stays, and a later call goes on from there. Raises Problem for whatever prevents the fetch.
    """
    access = hub_access()
    try:
        return _Fetch(source, access, report=report, pause=pause).run()
    except Problem:
        raise
    except Exception as error:
        meant = hub_problem(source, access, error)
        if meant is error:
            raise
        raise meant from error


class _Fetch:
    """One fetch of one model."""

    def __init__(
        self,
        source: HubSource,
        access: HubAccess,
        *,
        report: Callable[[Progress], None],
        pause: Pause,
    ) -> None:
        self._source = source
        self._access = access
        self._asking = Traffic(f"Asking {access.host} for {source.repo}", report, pause)
        self._coming = Traffic(f"Downloading {source.repo}", report, pause)

    def run(self) -> Path:
        """Lists, chooses, fetches, and makes a snapshot of it."""
        listing = self._list()
        cached = CachedRepository(self._access.cache, listing)
        cached.make()
        chosen = choose(listing, self._source.file)
        files = (*chosen.files, *self._shards(listing, chosen, cached))
        distinct = tuple({file.digest: file for file in files}.values())
        transfer = Transfer(listing, self._access, cached, self._coming)
        require_space(cached.blobs, transfer.expect(distinct), variable="HF_HUB_CACHE")
        self._side_by_side(distinct, transfer)
        # The weights come last: a snapshot without them is never taken for a whole one.
        cached.show(files, revision=self._source.revision)
        return cached.pointer(files[0]) if files[0].is_gguf else cached.snapshot

    def _list(self) -> Listing:
        found: list[Listing] = []

        def ask() -> None:
            found.append(
                patiently(lambda: list_repository(self._source, self._access), self._asking)
            )

        self._asking.run([ask])
        return found[0]

    def _shards(
        self, listing: Listing, chosen: Choice, cached: CachedRepository
    ) -> tuple[RemoteFile, ...]:
        """The shards that the index names, which is fetched for it."""
        index = chosen.index
        if index is None:
            return ()
        transfer = Transfer(listing, self._access, cached, self._asking)
        self._asking.run([lambda: transfer.fetch(index)])
        return shards(listing, cached.read(index))

    def _side_by_side(self, files: Iterable[RemoteFile], transfer: Transfer) -> None:
        """Fetches these files, a few at a time."""
        waiting = list(files)
        lock = threading.Lock()

        def one_after_the_other() -> None:
            while True:
                self._coming.check()
                with lock:
                    if not waiting:
                        return
                    file = waiting.pop(0)
                transfer.fetch(file)

        self._coming.run([one_after_the_other] * min(_AT_ONCE, len(waiting)))
