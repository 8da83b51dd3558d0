"""Whose token it is: asked of the Hub before a token is kept."""

from __future__ import annotations

import msgspec
from huggingface_hub import get_session, hf_raise_for_status
from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # re-exported

from app.library.hub_access import HubAccess, hub_access
from app.library.hub_patience import status_of
from app.library.hub_token import refuse_odd
from app.run.problems import Problem

_TIMEOUT_SECONDS = 10


class _Account(msgspec.Struct):
    name: str


def account_of(token: str) -> str | None:
    """The account that a token belongs to; None if the Hub cannot be asked just now.

    Raises Problem for what is no token, and for a token that the Hub does not accept.
    """
    refuse_odd(token)
    access = msgspec.structs.replace(hub_access(), token=token)
    try:
        return _ask(access)
    except (HTTPError, OSError, msgspec.DecodeError) as error:
        if status_of(error) not in (401, 403):
            return None
        raise Problem(
            f"{access.host} does not accept this token.",
            f"Copy it again, or make a new one at {access.host}/settings/tokens.",
        ) from error


def _ask(access: HubAccess) -> str:
    url = f"{access.endpoint}/api/whoami-v2"
    response = get_session().get(url, headers=access.headers, timeout=_TIMEOUT_SECONDS)
    hf_raise_for_status(response)
    return msgspec.json.decode(response.content, type=_Account).name
