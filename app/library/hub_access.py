"""Whom to ask for models of the Hub, as whom, and where they are kept."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from huggingface_hub import HfApi, constants
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # re-exported

from app.library.hub_token import hub_token
from app.library.scan_places import hub_cache


class HubAccess(msgspec.Struct, frozen=True):
    """A hub, what lets one in, and the cache that is shared with other programs."""

    endpoint: str
    cache: Path
    token: str | None = None
    """None: what the Hub's own library finds, if anything."""

    def __repr__(self) -> str:
        return f"HubAccess({self.endpoint!r}, {self.cache!r})"  # the token never shows

    @property
    def host(self) -> str:
        """The hub as a person calls it."""
        return urlsplit(self.endpoint).netloc or self.endpoint

    @property
    def api(self) -> HfApi:
        """The library's own client for it."""
        return HfApi(endpoint=self.endpoint, token=self.token, library_name="foretoken")

    @property
    def headers(self) -> dict[str, str]:
        """What goes with a request to the hub itself; the library's client takes the token off
        when it is redirected to another host.
        """
        return build_hf_headers(token=self.token, library_name="foretoken")


def hub_access() -> HubAccess:
    """The hub that the environment names, with the token of this person."""
    endpoint = os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or constants.ENDPOINT
    return HubAccess(endpoint, hub_cache(), hub_token())
