"""Whether a file is byte for byte the one that the Hub holds: it names files by their hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

from app.library.whole_folder import Pause

_BLOCK = 1 << 22


def content_digest(file: Path, *, like: str, pause: Pause) -> str:
    """A file's hash of the kind of `like`: SHA-256 (64 digits), or git's SHA-1 of a blob (40).

    Source: git's own format, "blob", the size, a zero byte, then the content (gitformat-pack).
    """
    if len(like) == 64:
        digest = hashlib.sha256()
    else:
        # Git's name for a file, not a protection.
        digest = hashlib.sha1(f"blob {file.stat().st_size}\0".encode(), usedforsecurity=False)
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            pause()
            digest.update(block)
    return digest.hexdigest()
