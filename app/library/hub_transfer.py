"""One file from the Hub into the cache: goes on where it stopped, and is checked by its hash.

The Hub's own library throws away what came of a file whose transfer ends early, so this part of it
is done here, with the library's session, its headers and its names.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout
from huggingface_hub import constants, get_session, hf_hub_url, hf_raise_for_status
from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # re-exported

from app.library.content_hash import content_digest
from app.library.hub_access import HubAccess
from app.library.hub_cache import CachedRepository
from app.library.hub_listing import Listing, RemoteFile
from app.library.hub_patience import Patience, status_of
from app.library.hub_traffic import Traffic
from app.library.whole_folder import wait_for
from app.run.problems import Problem
from app.run.sizes import bytes_in_words

LARGEST = constants.MAX_HTTP_DOWNLOAD_SIZE
"""Bytes of a file that the Hub still hands out in one piece; of a larger one it sends parts."""
PART = 10_000_000_000
"""Bytes of such a file that are asked for at a time."""
_LARGE = 64_000_000
"""Bytes from which checking takes long enough to be told."""
_AGAIN = "Fetch the model again; if it stays so, a proxy or the mirror spoils it, or it is damaged."


class Transfer:
    """Fetches the files of one listing, each by one thread."""

    def __init__(
        self, listing: Listing, access: HubAccess, cached: CachedRepository, traffic: Traffic
    ) -> None:
        self._listing = listing
        self._access = access
        self._cached = cached
        self._traffic = traffic
        self._counted: dict[str, int] = {}
        """By digest, the bytes of a file that the traffic counts as here."""

    def expect(self, files: Iterable[RemoteFile]) -> int:
        """Counts these files as what is to come, and what is here of them; the bytes to come."""
        for file in files:
            here = file.size - self._cached.missing(file)
            self._counted[file.digest] = here
            self._traffic.add(here)
            self._traffic.total = (self._traffic.total or 0) + file.size
        return (self._traffic.total or 0) - sum(self._counted.values())

    def fetch(self, file: RemoteFile) -> None:
        """Makes a file whole in the cache. Raises the library's errors, Problem, and Cancelled,
        after which what has come stays and is gone on from.
        """
        if not self._cached.has(file):
            lock = self._cached.lock(file)
            self._await(lock, file)
            try:
                if not self._cached.has(file):
                    self._fetch(file)
                    return
            finally:
                lock.release()
        self._count(file, file.size)

    def _count(self, file: RemoteFile, here: int) -> None:
        """Corrects the count of a file, of which more or less is here than was thought."""
        self._traffic.add(here - self._counted.get(file.digest, 0))
        self._counted[file.digest] = here

    def _await(self, lock: FileLock, file: RemoteFile) -> None:
        """Waits while another program fetches the file."""
        try:
            lock.acquire(timeout=0)
        except Timeout:
            self._traffic.say(f"Waiting for another program that downloads {file.name}")
            wait_for(lock, self._traffic.check)
            self._traffic.say("")

    def _fetch(self, file: RemoteFile) -> None:
        """The rest of the file, its hash, and its name in the cache."""
        unfinished = self._cached.partial(file)
        try:
            with unfinished.open("ab") as out:
                if out.tell() > file.size:
                    _empty(out)
                self._count(file, out.tell())
                self._read_on(file, out)
                # The rename that follows must not reach the disk before the bytes do.
                os.fsync(out.fileno())
            self._check(file, unfinished)
        except _SpoiltError:
            unfinished.unlink(missing_ok=True)
            raise
        os.replace(unfinished, self._cached.blob(file))

    def _read_on(self, file: RemoteFile, out: BinaryIO) -> None:
        """Reads until all is there, through cuts and refusals that pass."""
        patience = Patience(self._traffic)
        while (before := out.tell()) < file.size:
            try:
                self._read(file, out)
            except HTTPError as error:
                if status_of(error) == 416:
                    raise _spoilt(file, f"ends after {before:,}") from error
                if status_of(error) == 400 and file.size > LARGEST:
                    raise self._refused(file) from error
                if out.tell() > before:
                    patience.came_on()
                patience.wait_after(error)
            else:
                if out.tell() == before:
                    raise _spoilt(file, f"ends after {before:,}")

    def _read(self, file: RemoteFile, out: BinaryIO) -> None:
        """One request: takes what it brings."""
        have = out.tell()
        headers = {**self._access.headers, "Accept-Encoding": "identity"}
        if file.size > LARGEST:
            headers["Range"] = f"bytes={have}-{min(have + PART, file.size) - 1}"
        elif have:
            headers["Range"] = f"bytes={have}-"
        url = hf_hub_url(
            self._listing.repo,
            file.name,
            revision=self._listing.commit,
            endpoint=self._access.endpoint,
        )
        timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
        with (
            get_session().stream("GET", url, headers=headers, timeout=timeout) as response,
            self._traffic.ending(partial(_hang_up, response.extensions.get("network_stream"))),
        ):
            hf_raise_for_status(response)
            if have and response.status_code != 206:  # it sends the whole file again
                _empty(out)
                self._traffic.add(-have)
            for block in response.iter_bytes():
                self._traffic.check()
                if out.tell() + len(block) > file.size:
                    raise _spoilt(file, "is longer")
                out.write(block)
                out.flush()  # what has come outlives a program that is ended
                self._traffic.add(len(block))

    def _refused(self, file: RemoteFile) -> Problem:
        """What to say of a large file that the Hub does not hand out by plain HTTP at all."""
        repo = self._listing.repo
        return Problem(
            f"The Hub does not hand out {file.name} of {repo} ({bytes_in_words(file.size)}) by "
            "plain HTTP.",
            f"Fetch it with `hf download {repo} {file.name}`; it is found then.",
        )

    def _check(self, file: RemoteFile, unfinished: Path) -> None:
        """Raises Problem unless the content is what the Hub says."""
        if file.size >= _LARGE:
            self._traffic.say(f"Checking {file.name}")
        found = content_digest(unfinished, like=file.digest, pause=self._traffic.check)
        self._traffic.say("")
        if found != file.digest:
            raise _SpoiltError(
                f"{file.name} of {self._listing.repo} came with another content than the Hub "
                f"says: its hash is {found}, not {file.digest}. It was removed.",
                _AGAIN,
            )


def _hang_up(stream: Any) -> None:
    """Ends a connection from another thread: whoever waits for its next bytes gets an error.

    `stream`: as the client's library hands it out, with the socket below it.
    """
    connection = stream.get_extra_info("socket") if stream is not None else None
    if connection is not None:
        with suppress(OSError):  # it has ended by itself
            connection.shutdown(socket.SHUT_RDWR)


class _SpoiltError(Problem):
    """A file that is not what the Hub says: what came of it is not kept."""


def _spoilt(file: RemoteFile, said: str) -> _SpoiltError:
    """What is wrong with a file of the wrong size."""
    return _SpoiltError(
        f"{file.name} is not as the Hub says, {file.size:,} bytes long: it {said}. It was removed.",
        _AGAIN,
    )


def _empty(out: BinaryIO) -> None:
    out.seek(0)
    out.truncate()
