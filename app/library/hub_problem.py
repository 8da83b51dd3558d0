"""What a failed talk with the Hub means to a person, and what to do."""

from __future__ import annotations

import errno

from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError is re-exported
    DisabledRepoError,
    EntryNotFoundError,
    GatedRepoError,
    HTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from app.library.entries import HubSource
from app.library.hub_access import HubAccess
from app.library.hub_patience import status_of
from app.run.problems import Problem

_LOG_IN = "log in with `foretoken models login`"
_GOES_ON = (
    "Models that are on this machine go on working, and a fetch that was begun goes on where it "
    "stopped."
)


def hub_problem(source: HubSource, access: HubAccess, error: Exception) -> Exception:
    """The problem that an error of the Hub's library is; a bug stays what it is.

    No address of a file is told: those of other hosts hold keys.
    """
    page = f"{access.host}/{source.repo}"
    status = status_of(error)
    if isinstance(error, GatedRepoError):
        return _gated(source, page, refused=status == 403)
    if isinstance(error, RevisionNotFoundError):
        return Problem(
            f"{source.repo} has no revision {source.revision}.",
            f"Correct `revision` in the catalogue; {page} lists its branches and tags.",
        )
    if isinstance(error, RepositoryNotFoundError):
        return Problem(
            f"The Hub knows no {source.repo}, or it is private.",
            f"Check the name in the catalogue; if it is private, {_LOG_IN}.",
        )
    if isinstance(error, DisabledRepoError):
        return Problem(f"The Hub has switched {source.repo} off.", f"See {page}.")
    if status == 401:
        return Problem(
            "The Hub does not accept the token: it has run out, or it is wrong.",
            "Put a new one into HF_TOKEN if that is set; else make one at "
            f"{access.host}/settings/tokens and {_LOG_IN}.",
        )
    if status == 403:
        return Problem(
            f"The token does not allow {source.repo} to be read.",
            f"Give it the right to read repositories at {access.host}/settings/tokens, and see "
            f"{page}.",
        )
    if isinstance(error, EntryNotFoundError) or status == 404:
        return Problem(
            f"A file that {source.repo} lists is not there.", "Choose another revision, or wait."
        )
    if isinstance(error, HTTPError | OSError):
        return _no_answer(source, access, error)
    return error


def _gated(source: HubSource, page: str, *, refused: bool) -> Problem:
    """A model whose owner wants to know who has it."""
    if refused:
        return Problem(
            f"{source.repo} is gated, and this account has not been let in yet.",
            f"Ask for it at {page}; if you have, wait for the answer. A fine-grained token also "
            "needs the right to read gated repositories.",
        )
    return Problem(
        f"{source.repo} is gated: its owner lets in accounts that have asked for it.",
        f"Ask for it at {page}, then {_LOG_IN}.",
    )


def _no_answer(source: HubSource, access: HubAccess, error: Exception) -> Problem:
    """A hub that cannot be reached, will not answer, or a disk that takes no more."""
    status = status_of(error)
    if isinstance(error, OfflineModeIsEnabled):
        return Problem(
            f"{source.repo} is not on this machine, and HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE "
            "forbids to fetch it.",
            "Unset it for this fetch, or copy the model's folder here and use a `folder` source.",
        )
    if status == 429:
        return Problem(
            "The Hub takes no further requests for now (status 429).",
            f"Try again in some minutes, or {_LOG_IN}: with a token it takes more. {_GOES_ON}",
        )
    if status is not None:
        return Problem(f"The Hub has a trouble of its own (status {status}).", _again_later())
    if isinstance(error, HTTPError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return Problem(
            f"The certificate of {access.host} is not trusted on this machine.",
            "A proxy may stand in between: set SSL_CERT_FILE to its certificate.",
        )
    if isinstance(error, HTTPError):
        return Problem(
            f"{access.host} cannot be reached: this machine seems to be offline "
            f"({type(error).__name__}).",
            "Check the connection; behind a proxy set HTTPS_PROXY, behind a mirror HF_ENDPOINT. "
            + _GOES_ON,
        )
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Problem(
            f"The disk is full: {source.repo} could not be fetched to its end.",
            "Free some space, or set HF_HUB_CACHE to a folder on another disk. " + _GOES_ON,
        )
    return Problem(
        f"{source.repo} could not be put into {access.cache}: "
        f"{getattr(error, 'strerror', None) or type(error).__name__}.",
        "Check that the folder may be written to, or set HF_HUB_CACHE to another one.",
    )


def _again_later() -> str:
    return f"Try again later. {_GOES_ON}"
