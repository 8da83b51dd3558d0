"""The tests for a card, with a CPU in its place, as far as that can tell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ASKED = {
    "test_lanes_of_graphs": "(fp32 and draft-model) or (fp32 and holds) or cannot or replayed",
    "test_memory_of_graphs": "round_seven or graph or prompt or load or stopped or head",
}


@pytest.mark.parametrize("file", ASKED)
def test_the_tests_for_a_card_hold_where_a_cpu_stands_in(file, tmp_path):
    said = [f"tests/gpu/{file}.py", "-p", "rehearsal", "-p", "no:cacheprovider", "-k", ASKED[file]]
    made = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *said],
        cwd=ROOT,
        env={
            **{name: told for name, told in os.environ.items() if "PYTEST" not in name},
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
            "FORETOKEN_HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout[-4000:]
    assert " skipped" not in made.stdout
