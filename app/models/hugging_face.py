"""Imports transformers, muted. Models are loaded from folders only, so that nothing calls home."""

from __future__ import annotations

import sys

# The package `kernels` fetches compiled code from a hub as soon as a library finds it: as if it
# were not there. The libraries that would ask for it are imported after this file.
sys.modules.setdefault("kernels", None)  # type: ignore[arg-type]

import transformers  # noqa: E402
from transformers.quantizers.auto import AutoQuantizationConfig  # noqa: E402
from transformers.utils import logging as _transformers_logging  # noqa: E402
from transformers.utils.logging import set_tqdm_hook  # noqa: E402

_transformers_logging.set_verbosity_error()
_transformers_logging.disable_progress_bar()

FROM_FOLDERS_ONLY = {"local_files_only": True, "trust_remote_code": False}
"""What every `from_pretrained` is given: no network, nothing of a model's folder is executed."""

__all__ = ["FROM_FOLDERS_ONLY", "AutoQuantizationConfig", "set_tqdm_hook", "transformers"]
