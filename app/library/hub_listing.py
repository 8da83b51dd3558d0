"""What a repository of the Hub holds at a revision. Nothing that a server says is trusted."""

from __future__ import annotations

import re

import msgspec
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.hf_api import ModelInfo

from app.library.entries import HubSource
from app.library.hub_access import HubAccess
from app.run.problems import Problem

_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_UNSAFE = re.compile(r'[\\:*?"<>|\x00-\x1f]')
"""What would mean something to a file system, in the name of a file."""
_TIMEOUT_SECONDS = 10


class RemoteFile(msgspec.Struct, frozen=True):
    """A file of a repository."""

    name: str
    """With slashes for folders, none of them leading upwards."""
    size: int
    digest: str
    """The SHA-256 of a large file (LFS), git's SHA-1 of another: by it the cache names the file."""

    @property
    def is_gguf(self) -> bool:
        """Whether it is a model by itself, by its name."""
        return self.name.lower().endswith(".gguf")


class Listing(msgspec.Struct, frozen=True):
    """The files of a repository at one commit, but for those that no file system could take."""

    repo: str
    commit: str
    files: tuple[RemoteFile, ...]

    def file(self, name: str) -> RemoteFile | None:
        """The file of this name."""
        return next((file for file in self.files if file.name == name), None)


def list_repository(source: HubSource, access: HubAccess) -> Listing:
    """Asks the Hub. Raises the library's errors, and Problem for an answer that makes no sense."""
    told = _info(source, access)
    if not told.sha or not _COMMIT.fullmatch(told.sha):
        raise _nonsense(access, f"its commit is {told.sha!r}")
    files = []
    for one in told.siblings or []:
        if not _is_inside(one.rfilename):
            continue
        digest = one.lfs.sha256 if one.lfs else one.blob_id
        size = one.lfs.size if one.lfs else one.size
        if size is None or size < 0 or not digest or not _DIGEST.fullmatch(digest):
            raise _nonsense(access, f"it does not say the size and hash of {one.rfilename}")
        files.append(RemoteFile(one.rfilename, size, digest))
    return Listing(source.repo, told.sha, tuple(files))


def _info(source: HubSource, access: HubAccess) -> ModelInfo:
    """What the library makes of the answer."""
    try:
        return access.api.model_info(
            source.repo, revision=source.revision, files_metadata=True, timeout=_TIMEOUT_SECONDS
        )
    except HfHubHTTPError:
        raise
    except HFValidationError as error:
        raise Problem(
            f"{source.repo} is no name that the Hub could have.", "Correct it in the catalogue."
        ) from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:  # not such JSON
        raise _nonsense(access, "what came is no list of files") from error


def _is_inside(name: str) -> bool:
    """Whether a name stays below the folder that it is put into, on any system."""
    parts = name.split("/")
    return not _UNSAFE.search(name) and all(part.strip(". ") for part in parts)


def _nonsense(access: HubAccess, said: str) -> Problem:
    return Problem(
        f"{access.host} does not answer as the Hub does: {said}.",
        "If HF_ENDPOINT is set, check it. A network that asks for a login first answers so too: "
        "open a page in a browser.",
    )
