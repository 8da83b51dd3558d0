"""Imports transformers, muted. Models are loaded from folders only, so that nothing calls home."""

from __future__ import annotations

import transformers
from transformers.utils import logging as _transformers_logging
from transformers.utils.logging import set_tqdm_hook

_transformers_logging.set_verbosity_error()
_transformers_logging.disable_progress_bar()

FROM_FOLDERS_ONLY = {"local_files_only": True, "trust_remote_code": False}
"""What every `from_pretrained` is given: no network, nothing of a model's folder is executed."""

__all__ = ["FROM_FOLDERS_ONLY", "set_tqdm_hook", "transformers"]
