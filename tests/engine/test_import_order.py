"""Which libraries meet in which process: torch and Qt never do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "transformers", "PySide6", "numpy")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "module",
    ["app.engine.client", "app.engine.protocol", "app.engine.process", "app.engine.worker"],
)
def test_importing_a_side_of_the_engine_imports_neither_torch_nor_qt(module: str) -> None:
    program = f"import sys, {module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
