"""Models of the Hugging Face Hub, in the cache that other programs share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError is re-exported
    GatedRepoError,
    HfHubHTTPError,
    HTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from tqdm.auto import tqdm  # type: ignore[import-untyped]

from app.library.entries import HubSource
from app.library.whole_folder import Pause
from app.run.events import Progress
from app.run.problems import Cancelled, Problem

_WANTED = ["*.safetensors", "*.json", "tokenizer*", "*.jinja", "merges.txt", "vocab.txt"]
"""Never pickled weights, and no code."""
_UNWANTED = ["*/*", "*.bin", "*.pt", "*.pth", "*.py", "*.pkl"]
_POLL_SECONDS = 0.1


def find_in_cache(source: HubSource) -> Path | None:
    """The folder of a model that was fetched before; asks nobody."""
    try:
        return _snapshot(source, local_files_only=True)
    except (LocalEntryNotFoundError, OSError, ValueError):
        return None


def fetch_from_hub(source: HubSource, *, report: Callable[[Progress], None], pause: Pause) -> Path:
    """Downloads what is missing of a model and returns its folder. Raises Problem if it cannot.

    The cache gives a file its name once it is whole, so what a cancel leaves is never loaded.
    """
    stop = threading.Event()
    state = _Transfer()
    thread = threading.Thread(
        target=_download, args=(source, state), kwargs={"stop": stop}, daemon=True
    )
    thread.start()
    try:
        while thread.is_alive():
            pause()
            thread.join(_POLL_SECONDS)
            total = state.total or None
            report(Progress(f"Downloading {source.repo}", state.done, total, "bytes"))
    finally:
        stop.set()
    if state.error is not None:
        raise _problem(source, state.error) from state.error
    assert state.folder is not None
    return state.folder


class _Transfer:
    """What the downloading thread tells the one that waits."""

    def __init__(self) -> None:
        self.done = 0.0
        self.total = 0.0
        self.folder: Path | None = None
        self.error: Exception | None = None


def _download(source: HubSource, state: _Transfer, *, stop: threading.Event) -> None:
    """Runs the download; keeps its outcome, whatever it is, for the thread that waits."""
    try:
        state.folder = _snapshot(source, tqdm_class=_bar(state, stop))
    except Exception as error:  # re-raised, or put in words, by the thread that waits
        state.error = error


def _snapshot(source: HubSource, **options: Any) -> Path:
    """The library's call, with what is wanted of a repository."""
    folder: str = snapshot_download(
        source.repo,
        revision=source.revision,
        allow_patterns=_WANTED,
        ignore_patterns=_UNWANTED,
        **options,
    )
    return Path(folder)


def _bar(state: _Transfer, stop: threading.Event) -> type[tqdm]:
    """A progress bar that draws nothing, counts bytes, and ends the download when asked to."""

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            self._bytes = options.get("unit") == "B"
            self._count = float(options.get("initial") or 0)
            super().__init__(*args, **{**options, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            if stop.is_set():
                raise Cancelled
            self._count += n or 0
            if self._bytes:
                state.done = max(state.done, self._count)
                state.total = max(state.total, float(getattr(self, "total", 0) or 0))
            return None

    return Bar


def _problem(source: HubSource, error: Exception) -> Exception:
    """What a failed download means to a person; a bug stays what it is."""
    page = f"huggingface.co/{source.repo}"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, GatedRepoError) or status in (401, 403):
        return Problem(
            f"{source.repo} is gated, private, or not known to the Hub.",
            f"Check the name, ask for access at {page}, then log in with `hf auth login`.",
        )
    if isinstance(error, RepositoryNotFoundError | RevisionNotFoundError):
        return Problem(
            f"The Hub has no {source.repo} at revision {source.revision}.",
            "Check the name and the revision in the catalogue.",
        )
    if isinstance(error, LocalEntryNotFoundError | HfHubHTTPError | HTTPError | OSError):
        return Problem(
            f"{source.repo} could not be downloaded: {str(error).splitlines()[0]}",
            "Check the connection. Behind a mirror, set HF_ENDPOINT to it; behind a proxy, set "
            "HTTPS_PROXY; or download it elsewhere and use a `folder` source.",
        )
    return error
