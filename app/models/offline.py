"""Imports transformers so that it never calls home: import it from here, and nowhere else first."""

from __future__ import annotations

import os

for _name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
    os.environ[_name] = "1"
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")

import transformers  # noqa: E402  # the variables are read at import
from transformers.utils import logging as _transformers_logging  # noqa: E402

_transformers_logging.set_verbosity_error()
_transformers_logging.disable_progress_bar()

__all__ = ["transformers"]
