"""The way out for weights that come only as pickle, which Foretoken itself never reads.

A pickle can run code as it is read. What is offered is a command for the person to run: torch's
reader that takes nothing but tensors (`weights_only`), which fails on anything else.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

_PICKLED = "pytorch_model*.bin"
# Within double quotes in any shell: no character here means anything to one.
_CODE = (
    "import glob, os, sys, torch; from safetensors.torch import save_file; "
    "d = sys.argv[1]; w = {}; "
    "[w.update(torch.load(f, map_location='cpu', weights_only=True)) for f in "
    f"sorted(glob.glob(os.path.join(glob.escape(d), '{_PICKLED}')))]; "
    "save_file({k: v.clone().contiguous() for k, v in w.items()}, "
    "os.path.join(d, 'model.safetensors'), metadata={'format': 'pt'})"
)


def pickled_files(folder: Path) -> list[Path]:
    """The files that hold a folder's weights as pickle, by transformers' names for them."""
    return sorted(folder.glob(_PICKLED))


def conversion_command(folder: Path) -> str:
    """A command line that writes model.safetensors beside a folder's pickled weights.

    It needs twice the weights' size of memory, and Python with torch and safetensors: this
    program's own, or any other if this one is frozen.
    """
    python = "python" if getattr(sys, "frozen", False) else sys.executable
    return f'{_quoted(python)} -c "{_CODE}" {_quoted(str(folder))}'


def _quoted(word: str) -> str:
    return subprocess.list2cmdline([word]) if sys.platform == "win32" else shlex.quote(word)
