"""Whether a newer version is out: one small file is read, and nothing is ever downloaded."""

from __future__ import annotations

import urllib.request
from http.client import HTTPException, HTTPMessage
from typing import IO

import msgspec
from packaging.version import InvalidVersion, Version

from app import __version__
from app.run.problems import Problem

ADDRESS = "https://github.com/foretoken/foretoken/releases/latest/download/latest.json"
"""What the newest release says of itself; every release brings this file along."""

_TIMEOUT_SECONDS = 10
_LARGEST = 10_000
"""Bytes that are read at most."""


class Release(msgspec.Struct, frozen=True):
    """A version that is out, and the page that tells of it."""

    version: str
    page: str


class OnlyHttps(urllib.request.HTTPRedirectHandler):
    """Follows no redirection that would leave HTTPS."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The request for the new address. Raises Problem for one that is not HTTPS."""
        _require_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def newer_release() -> Release | None:
    """The newest release, if it is newer than this program.

    Raises Problem if it cannot be asked for, or says nothing that can be used.
    """
    try:
        release = msgspec.json.decode(_read(ADDRESS), type=Release)
        newer = Version(release.version) > Version(__version__)
    except (OSError, HTTPException) as error:
        raise Problem(
            f"Whether a newer version is out could not be asked: {error}.",
            "Check the connection, or switch the question off in the menu.",
        ) from error
    except (msgspec.DecodeError, InvalidVersion) as error:
        raise Problem(
            f"What the newest release says of itself cannot be read: {error}.",
            "Look on the project's page.",
        ) from error
    _require_https(release.page)
    return release if newer else None


def _read(address: str) -> bytes:
    """What lies at an address, its beginning at least."""
    _require_https(address)
    opener = urllib.request.build_opener(OnlyHttps)
    request = urllib.request.Request(address, headers={"User-Agent": "foretoken"})
    with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
        content: bytes = answer.read(_LARGEST)
    return content


def _require_https(address: str) -> None:
    if not address.startswith("https://"):
        raise Problem(
            f"{address!r} is not an address of HTTPS, and was left alone.",
            "Look on the project's page.",
        )
