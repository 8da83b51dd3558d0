"""Sets Foretoken up in the folder .venv and starts it; `start.py --help` says how.

Standard library only. Python older than 3.11 only has to read this file far enough to say so,
hence no syntax that 3.6 cannot parse.
"""

import sys

OLDEST, NEWEST = (3, 11), (3, 14)  # PySide6 6.10 has no wheels for Python 3.15 and later.

if not OLDEST <= sys.version_info[:2] <= NEWEST:
    sys.stderr.write(
        f"Foretoken needs Python {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}, "
        f"and this is Python {sys.version_info[0]}.{sys.version_info[1]}.\n"
    )
    raise SystemExit(2)

import contextlib
import hashlib
import importlib.util
import os
import re
import subprocess
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from torch_build import (
    Build,
    SetUpError,
    reachable_build,
    this_machine,
    torch_arguments,
)

USAGE = """\
python packaging/start.py [--cpu]                   set up what is missing, then open the window
python packaging/start.py [--cpu] test [...]        set up, then run the tests (pytest's arguments)
python packaging/start.py [--cpu] COMMAND [...]     set up, then foretoken's command line:
  run, bench, audit, train, report, elsewhere, texts, models or selftest; COMMAND --help tells more
  --cpu    install the build of torch for the CPU, whatever card is there
Everything is installed in the folder .venv; delete it to set up anew, after adding a card say.
Behind a mirror or proxy set PIP_INDEX_URL, HTTPS_PROXY, PIP_CERT as for pip."""


# ---- What was asked for --------------------------------------------------------------------


class Request(NamedTuple):
    """What the command line asks for; `arguments` go to pytest or to foretoken unchanged."""

    help: bool
    cpu: bool
    test: bool
    arguments: tuple[str, ...]

    @property
    def extras(self) -> frozenset[str]:
        """The optional dependencies this request needs."""
        return frozenset({"test"}) if self.test else frozenset()


def parse(arguments: list[str]) -> Request:
    """Reads the options before the first argument; all behind it belongs to the other program."""
    own = 0
    while own < len(arguments) and arguments[own] in ("--cpu", "--help", "-h"):
        own += 1
    options, rest = arguments[:own], tuple(arguments[own:])
    test = rest[:1] == ("test",)
    return Request(
        help="--help" in options or "-h" in options,
        cpu="--cpu" in options,
        test=test,
        arguments=rest[1:] if test else rest,
    )


def final_command(request: Request, python: Path) -> list[str]:
    """The command that takes over once all is set up."""
    if request.test:
        return [str(python), "-m", "pytest", *(request.arguments or _side_by_side())]
    # -P: a folder named app where the person stands must not be taken for Foretoken.
    return [str(python), "-P", "-m", "app", *request.arguments]


def _side_by_side() -> list[str]:
    """pytest's arguments for the whole suite: as many tests at once as there are processors.

    At most four, as each holds a copy of torch; the tests of one file stay together. Files come in
    the order of their folders, which ends with short ones: no process is left with a long one.
    A process that crashes ends it all, as another would begin with the test that it crashed in.
    """
    at_once = ["-n", str(min(os.cpu_count() or 1, 4)), "--max-worker-restart", "0"]
    return [*at_once, "--dist", "loadfile", "--no-loadscope-reorder"]


# ---- What is there already -------------------------------------------------------------------


class Place:
    """The source tree, and where things lie in it."""

    def __init__(self, root: Path) -> None:
        """Derives every place from the root; the stamps are written after complete work only."""
        self.root = root
        self.venv = root / ".venv"
        self.python = self.venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self.constraints = root / "packaging" / "constraints.txt"
        self.pyproject = root / "pyproject.toml"
        self.stamp = self.venv / "foretoken-set-up"
        self.model_stamp = self.venv / "foretoken-model"


class Stamp(NamedTuple):
    """What a complete set-up writes down: the build of torch, the extras, what they hang on."""

    folder: str
    extras: frozenset[str]
    fingerprint: str

    def text(self) -> str:
        """The stamp as its file holds it."""
        return "\n".join([self.folder, ",".join(sorted(self.extras)), self.fingerprint])


def read_stamp(place: Place) -> Stamp | None:
    """The stamp of the last complete set-up, or None."""
    try:
        folder, extras, fingerprint = place.stamp.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError):
        return None
    return Stamp(folder, frozenset(filter(None, extras.split(","))), fingerprint)


def make_stamp(place: Place, cpu: bool, folder: str, extras: frozenset[str]) -> Stamp:
    """The stamp for a set-up as of now; a moved source tree or another Python changes it too."""
    facts = [folder, str(cpu), str(sys.version_info[:2]), str(place.root), *sorted(extras)]
    digest = hashlib.sha256("\n".join(facts).encode())
    digest.update(place.constraints.read_bytes() + place.pyproject.read_bytes())
    return Stamp(folder, extras, digest.hexdigest())


def is_set_up(place: Place, request: Request) -> bool:
    """Whether the last complete set-up still holds and serves the request."""
    stamp = read_stamp(place)
    return (
        stamp is not None
        and request.extras <= stamp.extras
        and stamp == make_stamp(place, request.cpu, stamp.folder, stamp.extras)
        and place.python.exists()
    )


def model_fingerprint(place: Place) -> str:
    """What the embedded model hangs on: the catalogue, and where the person's files lie."""
    catalogue = place.root / "models.yaml"
    text = catalogue.read_bytes() if catalogue.exists() else b""
    home = os.environ.get("FORETOKEN_HOME", "")
    return hashlib.sha256(text + home.encode()).hexdigest()


def model_is_fetched(place: Place) -> bool:
    """Whether the embedded model was fetched before; the window looks for itself."""
    stamp = place.model_stamp
    return stamp.exists() and stamp.read_text(encoding="utf-8") == model_fingerprint(place)


# ---- Doing it --------------------------------------------------------------------------------


class Step(NamedTuple):
    """One command of the set-up, and what the person reads while it runs."""

    title: str
    command: list[str]


def set_up(place: Place, request: Request) -> None:
    """Makes or completes the environment; a set-up that was broken off is resumed."""
    before = read_stamp(place)
    extras = request.extras | (before.extras if before else frozenset())
    place.stamp.unlink(missing_ok=True)
    print(f"Foretoken is set up in {place.venv}")
    build = reachable_build(this_machine(), request.cpu)
    steps = [*venv_steps(place), *install_steps(place, build, extras)]
    for number, step in enumerate(steps, 1):
        run_step(step, f"[{number}/{len(steps)}] {step.title}")
    print(installed_torch(place), end="")
    stamp = make_stamp(place, request.cpu, build.folder, extras)
    place.stamp.write_text(stamp.text(), encoding="utf-8")


def venv_steps(place: Place) -> list[Step]:
    """The step that makes the environment, or none where a whole one of this Python is there."""
    other = venv_is_of_another_python(place)
    if not other and place.python.exists() and has_pip(place):
        return []
    if importlib.util.find_spec("ensurepip") is None:
        raise SetUpError(
            "This Python cannot make environments: its module ensurepip is missing.",
            f"On Debian or Ubuntu: sudo apt install python3.{sys.version_info[1]}-venv",
        )
    clear = ["--clear"] if other else []
    command = [sys.executable, "-m", "venv", *clear, str(place.venv)]
    return [Step("Making the environment", command)]


def venv_is_of_another_python(place: Place) -> bool:
    """Whether an environment is there that another version of Python made."""
    try:
        settings = (place.venv / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return False
    found = re.search(r"^version\w*\s*=\s*(\d+)\.(\d+)", settings, re.MULTILINE)
    return found is not None and (int(found[1]), int(found[2])) != sys.version_info[:2]


def has_pip(place: Place) -> bool:
    """Whether pip is installed in the environment; a broken-off making leaves it out."""
    places = ("lib/python*/site-packages/pip", "Lib/site-packages/pip")
    return any(any(place.venv.glob(pattern)) for pattern in places)


def install_steps(place: Place, build: Build, extras: frozenset[str]) -> list[Step]:
    """torch first, so that nothing else decides its build; then the rest; then Foretoken."""
    pip = [str(place.python), "-m", "pip", "install", "--quiet", "--no-input"]
    pip += ["--disable-pip-version-check"]
    pinned = [*pip, "--constraint", str(place.constraints)]
    version = torch_version(place.constraints.read_text(encoding="utf-8"))
    steps = [
        Step("Installing torch", [*pinned, *torch_arguments(build, version)]),
        Step("Installing the libraries", [*pinned, *requirements(place, extras)]),
        Step("Installing Foretoken", [*pip, "--no-deps", "--editable", str(place.root)]),
    ]
    if "test" in extras:
        compared = [*pinned, "--no-deps", *optional_requirements(place)["compare"]]
        steps.append(Step("Installing what the tests compare with", compared))
    return steps


def torch_version(constraints: str) -> str:
    """The version of torch that the constraints pin."""
    found = re.search(r"^torch==(\S+)", constraints, re.MULTILINE)
    if found is None:
        raise SetUpError("packaging/constraints.txt does not pin torch.", "Restore the file.")
    return found[1]


def installed_torch(place: Place) -> str:
    """A line that says which build of torch is installed, by its own file; "" without one."""
    for pattern in ("lib/python*/site-packages", "Lib/site-packages"):
        for file in place.venv.glob(f"{pattern}/torch/version.py"):
            text = file.read_text(encoding="utf-8")
            told = dict(re.findall(r"^(\w+)(?:: [^=]+)? = '([^']+)'", text, re.MULTILINE))
            names = (("cuda", "CUDA"), ("hip", "ROCm"), ("xpu", "XPU"))
            kinds = [f"{name} {told[key]}" for key, name in names if key in told]
            return f"torch {told.get('__version__', '')}: the {' '.join(kinds) or 'CPU'} build\n"
    return ""


def requirements(place: Place, extras: frozenset[str]) -> list[str]:
    """The libraries that pyproject.toml names, with those of the extras."""
    optional = optional_requirements(place)
    groups = [project(place)["dependencies"], *(optional[extra] for extra in sorted(extras))]
    return [name for group in groups for name in group]


def optional_requirements(place: Place) -> dict[str, list[str]]:
    """What pyproject.toml names for each extra."""
    found: dict[str, list[str]] = project(place)["optional-dependencies"]
    return found


def project(place: Place) -> dict[str, Any]:
    """What pyproject.toml says of the project."""
    found: dict[str, Any] = tomllib.loads(place.pyproject.read_text(encoding="utf-8"))["project"]
    return found


def run_step(step: Step, title: str) -> None:
    """Runs one command with the time it takes on screen, and raises SetUpError if it fails."""
    started = time.monotonic()
    print(title, end="", flush=True)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            step.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        while process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
            if sys.stdout.isatty():  # In a log each second would be a line.
                print(f"\r{title}: {time.monotonic() - started:.0f} s", end="", flush=True)
        print("" if sys.stdout.isatty() else f": {time.monotonic() - started:.0f} s")
        if process.returncode != 0:
            output.seek(0)
            raise failed_step(step, output.read().decode(errors="replace"))


def failed_step(step: Step, output: str) -> SetUpError:
    """The error for a step that failed, with the lines of its output that tell why."""
    said = "\n".join("  " + line for line in telling_lines(output))
    return SetUpError(
        f"{step.title} failed. The last it said:\n{said}",
        "Behind a mirror or proxy set PIP_INDEX_URL, HTTPS_PROXY and PIP_CERT; what is installed "
        "is named in packaging/constraints.txt.\nStart again to go on from here.",
    )


def telling_lines(output: str, limit: int = 8) -> list[str]:
    """The last lines that speak of an error, or simply the last ones."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return ([line for line in lines if "error" in line.lower()] or lines)[-limit:]


def fetch_model(place: Place) -> None:
    """Fetches the embedded model; without it Foretoken starts all the same, and offers it."""
    print("Fetching the embedded model", flush=True)
    command = [str(place.python), "-P", "-m", "app", "models", "fetch", "embedded"]
    if subprocess.run(command).returncode == 0:
        place.model_stamp.write_text(model_fingerprint(place), encoding="utf-8")
    else:
        print("The embedded model could not be fetched now; Foretoken will offer it again.")


def launch(command: list[str]) -> int:
    """Hands over to the command; Windows cannot replace a process, so it is waited for there."""
    sys.stdout.flush()
    if os.name == "nt":
        return subprocess.run(command).returncode
    os.execv(command[0], command)


def main(arguments: list[str], place: Place) -> int:
    """Sets up what is missing, then hands over; the value is the exit code."""
    request = parse(arguments)
    if request.help:
        print(USAGE)
        return 0
    try:
        complete = is_set_up(place, request)
        if not complete:
            set_up(place, request)
        if not model_is_fetched(place) and (request.test or not complete):
            fetch_model(place)
        if request.test:
            os.chdir(place.root)
        return launch(final_command(request, place.python))
    except SetUpError as error:
        print(f"\n{error.message}\n{error.remedy}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Place(Path(__file__).resolve().parents[1])))
