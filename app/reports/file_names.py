"""Names for report files that every system takes."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime

from app.run.record import RunRecord

_LONGEST = 60
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)$", re.IGNORECASE)


def suggested_name(record: RunRecord) -> str:
    """A file name without a suffix: the pair, the method, and when the run began."""
    settings = record.settings
    return f"{slug(settings.pair)}-{slug(settings.method)}-{_stamp(record.started)}"


def slug(text: str) -> str:
    """The text as part of a file name: small letters, digits, dots and dashes; never empty."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9.]+", "-", plain)
    name = re.sub(r"\.{2,}", ".", name)[:_LONGEST].strip("-.")
    if _RESERVED.match(name.split(".")[0]):
        return f"run-{name}"
    return name or "run"


def _stamp(started: str) -> str:
    """When the run began, to the second, as it sorts."""
    try:
        return datetime.fromisoformat(started).strftime("%Y%m%d-%H%M%S")
    except ValueError:
        return slug(started)
