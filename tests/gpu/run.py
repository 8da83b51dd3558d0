r"""Everything that only a graphics card can show, in one go: tests, benches, and what the card is.

On a machine with a card, where the program runs:

    python tests/gpu/run.py --out results

On a bare machine with torch, transformers and pytest, but without the rest and without internet,
bring the missing packages as wheels in one folder, made for its Python and its processor:

    pip download --no-deps --only-binary=:all: --python-version 3.12 -d wheels \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_24_x86_64 \
        --platform manylinux_2_17_x86_64 bitsandbytes gguf keyring jaraco.classes \
        jaraco.context jaraco.functools more-itertools msgspec platformdirs
    python3 tests/gpu/run.py --wheels wheels --out results

(bitsandbytes is the large one, 43 MB. A card needs the library of its own CUDA alone: for CUDA 13.0
`zip -d wheels/bitsandbytes*.whl '*_cuda11*' '*_cuda12*' '*_rocm*' '*_xpu*'` leaves 7 MB.)

Which packages are missing is told at the start (`NEEDED`). Whatever the folder holds is taken,
before what the machine has. Nothing is fetched.

Each step has a time limit of its own, and all of them together the one of `--minutes`; a step that
fails or takes too long does not stop the others. `--only tests,bench` takes the steps whose names
hold one of these words; `--list` shows them. `results.json` has what each step answered, with the
outcome of each test and the figures of each bench, and `log.txt` all that was printed; both are
written anew after every step. The exit code is 0 if every step succeeded, else 1; tests that were
all left out, as they are without a card, are no success.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
HERE = Path("tests") / "gpu"
NEEDED = (
    "torch",
    "transformers",
    "accelerate",
    "bitsandbytes",
    "gguf",
    "huggingface_hub",
    "jinja2",
    "keyring",
    "msgspec",
    "numpy",
    "platformdirs",
    "psutil",
    "pytest",
    "PyYAML",
    "rich",
    "safetensors",
    "tokenizers",
    "tqdm",
    "typer",
)
"""What the tests and the benches import, as pip names it."""
_FACTS = """
import json, torch
from app.models.machine import choose_device, environment
from app.models.devices import device_memory
import msgspec
card = choose_device("cuda")
found = msgspec.to_builtins(environment(card))
found["memory"] = msgspec.to_builtins(device_memory())
found["capability"] = torch.cuda.get_device_capability(card)
found["torch_cuda"] = torch.version.cuda
print(json.dumps(found))
"""


@dataclass
class Step:
    """One program to be run, and what came of it."""

    name: str
    command: list[str]
    limit_s: float
    code: int | None = None
    """Its exit code; None if it was not run, or ended at its limit."""
    seconds: float = 0.0
    succeeded: bool = False
    """Whether it ended well; of tests, whether none failed and some were not left out."""
    said: str = "not run"
    answer: Any = None
    """What it printed as JSON, or the outcome of each test."""
    report: Path | None = field(default=None, repr=False)
    """Where pytest leaves the outcomes."""


def bench(shape: str, precision: str, passes: str, limit_s: float, prompt: int = 64) -> Step:
    """A bench of random weights, behind a prompt of so many tokens."""
    options = ["--random-model", shape, "--precision", precision, "--passes", passes]
    options += ["--prompt-tokens", str(prompt)]
    command = [sys.executable, "-m", "app", "bench", *options, "--device", "cuda", "--json"]
    behind = f"-behind-{prompt}" if prompt != 64 else ""
    return Step(f"bench-{shape}-{precision}-{passes}{behind}", command, limit_s)


def tests(file: str, limit_s: float, folder: Path) -> Step:
    """One file of tests, in a process of its own: a card that one of them breaks is whole again."""
    report = folder / f"{file}.xml"
    command = [sys.executable, "-m", "pytest", "-m", "gpu", str(HERE / f"{file}.py"), "-v"]
    command += [
        "-p",
        "no:cacheprovider",
        "-o",
        "faulthandler_timeout=90",
        "--tb=short",
        "-W",
        "default",
    ]
    return Step(f"tests-{file}", [*command, f"--junitxml={report}"], limit_s, report=report)


def steps(folder: Path) -> list[Step]:
    """All of them; what is worth most comes first, as the time may end before the last."""
    first = {"test_graphs": 60, "test_lanes_of_graphs": 180, "test_memory_of_graphs": 120}
    others = sorted({file.stem for file in (ROOT / HERE).glob("test_*.py")} - first.keys())
    graphs, lanes, memory = (tests(file, limit, folder) for file, limit in first.items())
    timed = [
        Step(name, [sys.executable, "-m", f"tests.benchmarks.{name}", "--device", "cuda"], 60)
        for name in ("attention", "verification")
    ]
    return [
        Step("facts", [sys.executable, "-c", _FACTS], 60),
        Step("nvidia-smi", ["nvidia-smi"], 20),
        graphs,
        bench("llama-8b", "nf4", "auto", 150),
        lanes,
        bench("llama-1b", "bf16", "auto", 75),
        bench("qwen-0.5b", "bf16", "auto", 75),
        bench("qwen-0.5b", "bf16", "eager", 75),
        memory,
        *timed,
        *(bench("llama-1b", "bf16", passes, 60, 4000) for passes in ("auto", "eager")),
        *(tests(file, 120, folder) for file in others),
    ]


def main() -> int:
    """Runs what is asked for; the exit code."""
    asked = _arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wanted = [one for one in steps(folder) if any(word in one.name for word in asked.only)]
        if asked.list:
            print(*(f"{one.name} ({one.limit_s:.0f} s)" for one in wanted), sep="\n")
            return 0
        asked.out.mkdir(parents=True, exist_ok=True)
        end = time.monotonic() + 60 * asked.minutes
        surroundings = _surroundings(folder, asked.wheels)
        with open(asked.out / "log.txt", "w", encoding="utf-8") as log:
            for step in wanted:
                _run(step, surroundings, end, log)
                print(f"{step.name}: {step.said}, {step.seconds:.0f} s", flush=True)
                _write(asked.out / "results.json", wanted)
    return int(not all(one.succeeded for one in wanted))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Everything that only a card can show.")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "gpu-results")))
    parser.add_argument("--wheels", type=Path, help="a folder of wheels to install for this alone")
    parser.add_argument("--minutes", type=float, default=9.5, help="all steps together")
    parser.add_argument("--only", default="", help="words, with commas: steps named so alone")
    parser.add_argument("--list", action="store_true", help="show the steps, and run none")
    asked = parser.parse_args()
    asked.only = asked.only.split(",")
    return asked


def _surroundings(folder: Path, wheels: Path | None) -> dict[str, str]:
    """The environment of every step: this source tree, what came along, and a home of its own."""
    paths = [str(ROOT)]
    if wheels is not None:
        site = str(folder / "site")
        found = sorted(str(one) for one in wheels.glob("*.whl"))
        options = ["--no-index", "--no-deps", "--no-compile", "--quiet", "--target", site]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, *found], check=True)
        paths.append(site)
        sys.path.insert(0, site)
    missing = [name for name in NEEDED if not _version(name)]
    if missing:
        print(f"Missing, so that steps may fail: {', '.join(missing)}", flush=True)
    more = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*paths, *more]),
        "PYTHONUNBUFFERED": "1",
        "FORETOKEN_HOME": str(folder / "home"),
        "HF_HUB_OFFLINE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # other programs' plugins may bring trouble
        "COLUMNS": "160",
    }


def _run(step: Step, surroundings: dict[str, str], end: float, log: Any) -> None:
    """Runs a step within its limit and the time that is left, and notes what came of it."""
    limit = min(step.limit_s, end - time.monotonic())
    if limit < 5:
        step.said = "not run: no time is left"
        return
    start = time.monotonic()
    code, printed, problems = _ended(step.command, surroundings, limit)
    step.code, step.seconds = code, round(time.monotonic() - start, 1)
    step.said = f"ended at its limit of {limit:.0f} s" if code is None else f"exit code {code}"
    step.answer = _outcomes(step.report) if step.report else _json(printed)
    step.succeeded = code == 0
    if code == 0 and step.report and not _some_passed(step.answer):
        step.said, step.succeeded = "no test was run", False
    log.write(f"\n===== {step.name}: {step.said}\n{printed}\n----- errors and progress\n{problems}")
    log.flush()


def _ended(
    command: list[str], surroundings: dict[str, str], limit: float
) -> tuple[int | None, str, str]:
    """The exit code of a program (None at its limit), and what it printed to each stream."""
    with (
        tempfile.TemporaryFile("w+", errors="replace") as out,
        tempfile.TemporaryFile("w+", errors="replace") as err,
    ):
        try:
            child = subprocess.Popen(
                command, cwd=ROOT, env=surroundings, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as error:
            return 127, "", str(error)
        try:
            code: int | None = child.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end_all(child)
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


def _end_all(child: subprocess.Popen[bytes]) -> None:
    """Ends a program and all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _outcomes(report: Path) -> Any:
    """How each test ended, as pytest's report has it; why, where it did not pass."""
    try:
        cases = ElementTree.parse(report).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return None
    found = {}
    for case in cases:
        told = [one for one in case if one.tag in ("failure", "error", "skipped")]
        ended = {one.tag: (one.get("message") or "")[:600] for one in told} or "passed"
        found[case.get("name")] = {"ended": ended, "seconds": float(case.get("time") or 0)}
    return found


def _some_passed(outcomes: Any) -> bool:
    return any(one["ended"] == "passed" for one in (outcomes or {}).values())


def _json(printed: str) -> Any:
    """The last line that is a JSON object; None without any."""
    for line in reversed(printed.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None


def _write(file: Path, wanted: list[Step]) -> None:
    """All that is known so far, as one JSON object."""
    told = [asdict(one) for one in wanted]
    for one in told:
        del one["report"]
    whole = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in NEEDED},
        "steps": told,
    }
    file.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
