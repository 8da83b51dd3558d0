"""The set-up's decisions, and the whole of it with a Python that only writes down its calls."""

import ast
import http.server
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"foretoken_{name}", PACKAGING / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


torch_build = load("torch_build")
Build, Card, Machine = torch_build.Build, torch_build.Card, torch_build.Machine

HOPPER = Card("nvidia", 13000, (9, 0))
AMD = Card("amd")
NONE = torch_build.NO_CARD


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", list(sys.path))
    return load("start")


# ---- Which build -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "processor", "card", "folder"),
    [
        ("Linux", "x86_64", HOPPER, "cu130"),
        ("Linux", "x86_64", Card("nvidia", 13020, (12, 0)), "cu130"),
        ("Linux", "x86_64", Card("nvidia", 13000, (7, 5)), "cu130"),
        ("Linux", "x86_64", Card("nvidia", 13000, (7, 0)), "cu126"),
        ("Linux", "x86_64", Card("nvidia", 12040, (8, 6)), "cu126"),
        ("Linux", "x86_64", Card("nvidia", 12080, (10, 0)), "cpu"),
        ("Linux", "x86_64", Card("nvidia", 12080, (3, 7)), "cpu"),
        ("Linux", "x86_64", Card("nvidia", 11080, (8, 6)), "cpu"),
        ("Linux", "x86_64", AMD, "rocm7.2"),
        ("Linux", "x86_64", NONE, "cpu"),
        ("Linux", "aarch64", HOPPER, "cu130"),
        ("Linux", "aarch64", Card("nvidia", 12060, (9, 0)), "cu126"),
        ("Linux", "aarch64", Card("nvidia", 13000, (7, 5)), "cpu"),
        ("Linux", "aarch64", AMD, "cpu"),
        ("Linux", "aarch64", NONE, "cpu"),
        ("Windows", "AMD64", HOPPER, "cu130"),
        ("Windows", "AMD64", Card("nvidia", 12060, (6, 1)), "cu126"),
        ("Windows", "AMD64", Card("nvidia", 11000, (6, 1)), ""),
        ("Windows", "AMD64", AMD, ""),
        ("Windows", "AMD64", NONE, ""),
        ("Darwin", "arm64", NONE, ""),
    ],
)
def test_every_system_and_card_has_its_build(system, processor, card, folder):
    assert torch_build.choose_build(Machine(system, processor, card), cpu=False).folder == folder


@pytest.mark.parametrize(
    ("system", "processor", "folder"),
    [("Linux", "x86_64", "cpu"), ("Windows", "AMD64", ""), ("Darwin", "arm64", "")],
)
def test_cpu_overrules_the_card(system, processor, folder):
    assert torch_build.choose_build(Machine(system, processor, HOPPER), cpu=True).folder == folder


def test_an_intel_mac_is_refused_with_a_remedy():
    with pytest.raises(torch_build.SetUpError) as refused:
        torch_build.choose_build(Machine("Darwin", "x86_64"), cpu=True)
    assert "arm64" in refused.value.remedy


def test_the_local_version_ties_torch_to_the_chosen_build():
    assert torch_build.torch_arguments(Build("cu130", ""), "2.13.0") == [
        "torch==2.13.0+cu130",
        "--extra-index-url",
        "https://download.pytorch.org/whl/cu130",
    ]
    assert torch_build.torch_arguments(Build("", ""), "2.13.0") == ["torch==2.13.0"]


@pytest.mark.parametrize(
    ("system", "folder", "words"),
    [
        ("Linux", "cpu", "gigabytes"),
        ("Linux", "cu130", ""),
        ("Linux", "cu126", "cannot use"),
        ("Linux", "rocm7.2", "cannot use"),
        ("Windows", "cu130", "cannot use"),
    ],
)
def test_the_plain_version_is_taken_with_a_warning_where_it_differs(system, folder, words):
    warning = torch_build.plain_pin_warning(Machine(system, "x86_64"), Build(folder, ""))
    assert words in warning
    assert bool(words) == bool(warning)


@pytest.mark.parametrize(("answers", "folder"), [(True, "cu130"), (False, "")])
def test_an_index_that_does_not_answer_gives_the_plain_version(
    monkeypatch, capsys, answers, folder
):
    monkeypatch.setattr(torch_build, "index_answers", lambda folder: answers)
    build = torch_build.reachable_build(Machine("Linux", "x86_64", HOPPER), cpu=False)
    assert build.folder == folder
    said = capsys.readouterr().out
    assert "torch: the cu130 build, as an NVIDIA card" in said
    assert ("does not answer" in said) is not answers


@pytest.mark.parametrize(("status", "seconds", "answers"), [(200, 0, 1), (404, 0, 0), (200, 2, 0)])
def test_the_index_is_asked_for_a_short_while_only(monkeypatch, status, seconds, answers):
    class Index(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            time.sleep(seconds)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("PIP_CERT", raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(torch_build, "TORCH_INDEX", f"http://127.0.0.1:{server.server_port}")
        began = time.monotonic()
        assert torch_build.index_answers("cu130", seconds=0.5) is bool(answers)
        assert time.monotonic() - began < 1.5
        server.shutdown()
        thread.join()


# ---- What the machine is ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "card"),
    [
        ("580.65.06, 9.0\n", HOPPER),
        ("535.54.03, 6.1\n535.54.03, 8.6\n", Card("nvidia", 12000, (8, 6))),
        ("470.82, 3.7", Card("nvidia", 11000, (3, 7))),
        ("NVIDIA-SMI has failed because it couldn't communicate with the driver.", None),
        ("", None),
    ],
)
def test_nvidia_smi_is_read(answer, card):
    assert torch_build.read_nvidia_smi(answer) == card


@pytest.mark.parametrize(
    ("ids", "card"), [(["0\n"], None), (["0\n", "53458\n"], AMD), (["\n"], None), ([], None)]
)
def test_an_amd_card_is_a_node_with_an_id(tmp_path, ids, card):
    for number, text in enumerate(ids):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "gpu_id").write_text(text)
    assert torch_build.amd_card(tmp_path) == card


# ---- What was asked for ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], (False, False, False, ())),
        (["--cpu"], (False, True, False, ())),
        (["--help"], (True, False, False, ())),
        (["--cpu", "-h"], (True, True, False, ())),
        (["test", "-k", "a or b"], (False, False, True, ("-k", "a or b"))),
        (["--cpu", "test", "--help"], (False, True, True, ("--help",))),
        (["run", "--cpu"], (False, False, False, ("run", "--cpu"))),
        (["run", "test"], (False, False, False, ("run", "test"))),
        (["--version"], (False, False, False, ("--version",))),
    ],
)
def test_only_options_before_the_first_argument_are_read(start, arguments, expected):
    assert tuple(start.parse(arguments)) == expected


def test_help_explains_and_does_nothing_else(start, tmp_path, capsys):
    assert start.main(["--help"], start.Place(tmp_path)) == 0
    assert "--cpu" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_help_names_every_command_of_the_program(start):
    from app.cli.commands import terminal

    commands = [one.callback.__name__ for one in terminal.registered_commands]
    commands += [one.name for one in terminal.registered_groups]
    assert "run" in commands
    assert set(commands) <= set(re.findall(r"\w+", start.USAGE))


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n", "2.13.0+cpu: the CPU build"),
        ("__version__ = '2.13.0'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n",
         "2.13.0: the CUDA 13.0 build"),
    ],
)  # fmt: skip
def test_the_build_that_was_installed_is_told(tree, version, told):
    torch = tree.root / ".venv" / "lib" / "python3" / "site-packages" / "torch"
    torch.mkdir()
    (torch / "version.py").write_text(version)
    assert f"\ntorch {told}\n" in tree.run("--cpu").stdout


@pytest.mark.parametrize("version", [(3, 6, 15), (3, 10, 13), (3, 15, 0)])
def test_another_python_is_refused_in_one_sentence(start, monkeypatch, capsys, version):
    monkeypatch.setattr(sys, "version_info", version)
    source = (PACKAGING / "start.py").read_text(encoding="utf-8")
    code = compile(source, "start.py", "exec")
    with pytest.raises(SystemExit) as refused:
        exec(code, {"__name__": "start", "__file__": str(PACKAGING / "start.py")})
    assert refused.value.code == 2
    said = capsys.readouterr().err
    assert said.endswith(f"this is Python {version[0]}.{version[1]}.\n")
    assert said.count("\n") == 1


def test_an_old_python_can_read_the_file_as_far_as_the_refusal():
    source = (PACKAGING / "start.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 7))


def test_packaging_never_hides_the_library_of_that_name():
    assert not (PACKAGING / "__init__.py").exists()


# ---- Steps -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "other"),
    [
        (f"version = {sys.version_info[0]}.{sys.version_info[1]}.99\n", False),
        ("home = /usr/bin\nversion = 3.5.2\n", True),
        ("version_info = 3.5.2.final.0\n", True),
        ("home = /usr/bin\n", False),
    ],
)
def test_an_environment_of_another_python_is_made_anew(start, tmp_path, settings, other):
    place = start.Place(tmp_path)
    place.venv.mkdir()
    (place.venv / "pyvenv.cfg").write_text(settings)
    assert start.venv_is_of_another_python(place) is other
    (step,) = start.venv_steps(place)
    assert ("--clear" in step.command) is other


def test_a_missing_ensurepip_is_one_sentence_with_the_remedy(start, tmp_path, monkeypatch):
    monkeypatch.setattr(start.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(start.SetUpError) as failed:
        start.venv_steps(start.Place(tmp_path))
    assert "apt install python3" in failed.value.remedy
    assert not (tmp_path / ".venv").exists()


def test_every_requirement_is_pinned(start):
    pins = (PACKAGING / "constraints.txt").read_text(encoding="utf-8").lower()
    for requirement in start.requirements(start.Place(ROOT), frozenset({"test", "compare"})):
        name = requirement.split(">")[0].split("=")[0].split("[")[0].strip().lower()
        assert f"\n{name}==" in pins


def test_the_lines_that_tell_are_those_with_an_error(start):
    output = "Collecting a\nERROR: no matching distribution\n\nnotice\n"
    assert start.telling_lines(output) == ["ERROR: no matching distribution"]
    assert start.telling_lines("one\ntwo\nthree\n", limit=2) == ["two", "three"]


# ---- The whole of it ---------------------------------------------------------------------------


class Tree:
    """A source tree with a Python in .venv that writes its calls down and can be made to fail."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "packaging").mkdir(parents=True)
        for name in ("start.py", "torch_build.py", "constraints.txt"):
            shutil.copy(PACKAGING / name, root / "packaging" / name)
        shutil.copy(ROOT / "pyproject.toml", root)
        (root / ".venv" / "lib" / "python3" / "site-packages" / "pip").mkdir(parents=True)
        python = root / ".venv" / "bin" / "python"
        python.parent.mkdir()
        # A first line cannot name a Python whose path has a space: the shell can.
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$0.py" "$@"\n')
        python.with_suffix(".py").write_text(
            "import json, os, pathlib, sys\n"
            "root = pathlib.Path(__file__).parents[2]\n"
            "with open(root / 'calls', 'a') as calls:\n"
            "    print(json.dumps([os.getcwd(), *sys.argv[1:]]), file=calls)\n"
            "fail = root / 'fail'\n"
            "if fail.exists() and fail.read_text() in ' '.join(sys.argv):\n"
            "    print('Collecting x\\nERROR: No matching distribution found for x')\n"
            "    sys.exit(3)\n"
        )
        python.chmod(0o755)

    def run(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the tree's start.py where torch's own index cannot be reached."""
        environment = dict(os.environ, HTTPS_PROXY="http://127.0.0.1:9", FORETOKEN_HOME="here")
        environment.pop("https_proxy", None)
        command = [sys.executable, str(self.root / "packaging" / "start.py"), *arguments]
        return subprocess.run(
            command, env=environment, cwd=cwd or self.root, capture_output=True, text=True
        )

    def calls(self) -> list[list[str]]:
        """The calls since the last time, each the folder and the arguments."""
        path = self.root / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    if os.name == "nt":
        pytest.skip("the Python that writes its calls down is a script for POSIX shells")
    return Tree(tmp_path / "with a space")


def installs(calls: list[list[str]]) -> list[list[str]]:
    return [call for call in calls if call[1:4] == ["-m", "pip", "install"]]


def test_a_first_start_installs_torch_first_and_opens_the_window(tree):
    done = tree.run("--cpu")
    assert (done.returncode, done.stderr) == (0, "")
    calls = tree.calls()
    torch, libraries, own = installs(calls)
    assert any(argument.startswith("torch==") for argument in torch)
    assert any(argument.startswith("transformers>=") for argument in libraries)
    assert not any(argument.startswith("pytest") for argument in libraries)
    assert str(tree.root / "packaging" / "constraints.txt") in torch
    assert str(tree.root / "packaging" / "constraints.txt") in libraries
    assert own[-3:] == ["--no-deps", "--editable", str(tree.root)]
    assert calls[3][1:] == ["-P", "-m", "app", "models", "fetch", "embedded"]
    assert calls[4][1:] == ["-P", "-m", "app"]
    assert "[1/3] Installing torch" in done.stdout


def test_a_second_start_goes_straight_to_the_window(tree, tmp_path):
    tree.run("--cpu")
    tree.calls()
    done = tree.run("--cpu", cwd=tmp_path)
    assert done.stdout == ""
    assert tree.calls() == [[str(tmp_path), "-P", "-m", "app"]]


def test_arguments_pass_unchanged_and_the_folder_stays(tree, tmp_path):
    tree.run("--cpu")
    tree.calls()
    arguments = ["run", "a prompt with 'quotes' and spaces", "--cpu", ""]
    tree.run("--cpu", *arguments, cwd=tmp_path)
    assert tree.calls() == [[str(tmp_path), "-P", "-m", "app", *arguments]]


def test_tests_bring_their_libraries_and_run_from_the_root(tree, tmp_path):
    tree.run("--cpu", "test", "-k", "a or b", cwd=tmp_path)
    calls = tree.calls()
    _, libraries, _, compared = installs(calls)
    assert any(argument.startswith("pytest>=") for argument in libraries)
    assert not any(argument.startswith("speculators") for argument in libraries)
    assert compared[-2] == "--no-deps"
    assert compared[-1].startswith("speculators>=")
    assert calls[-1] == [str(tree.root), "-m", "pytest", "-k", "a or b"]
    tree.run("--cpu", "test")
    at_once = ["-n", str(min(os.cpu_count(), 4)), "--max-worker-restart", "0"]
    at_once += ["--dist", "loadfile", "--no-loadscope-reorder"]
    assert tree.calls()[-1] == [str(tree.root), "-m", "pytest", *at_once]
    tree.run("--cpu", "run")
    assert installs(tree.calls()) == []


def test_the_exit_code_is_passed_on(tree):
    (tree.root / "fail").write_text("pytest")
    assert tree.run("--cpu", "test").returncode != 0
    (tree.root / "fail").write_text("-m pytest")
    assert tree.run("--cpu", "test").returncode == 3


def test_a_failed_install_says_why_and_is_resumed(tree):
    (tree.root / "fail").write_text("transformers")
    failed = tree.run("--cpu")
    assert failed.returncode == 1
    for words in ("Installing the libraries failed", "ERROR: No matching", "PIP_INDEX_URL"):
        assert words in failed.stderr
    for words in ("Traceback", "Collecting x"):
        assert words not in failed.stderr
    assert len(tree.calls()) == 2
    (tree.root / "fail").unlink()
    assert tree.run("--cpu").returncode == 0
    assert len(installs(tree.calls())) == 3


def test_a_model_that_cannot_be_fetched_does_not_stop_the_window(tree):
    (tree.root / "fail").write_text("models fetch")
    done = tree.run("--cpu")
    assert done.returncode == 0
    assert "could not be fetched" in done.stdout
    assert tree.calls()[-1][1:] == ["-P", "-m", "app"]
    tree.run("--cpu")
    assert len(tree.calls()) == 1


@pytest.mark.parametrize("changed", ["packaging/constraints.txt", "pyproject.toml"])
def test_a_change_of_what_is_needed_installs_again(tree, changed):
    tree.run("--cpu", "test")
    tree.calls()
    with (tree.root / changed).open("a") as file:
        file.write("\n# changed\n")
    tree.run("--cpu", "run")
    again = installs(tree.calls())
    assert len(again) == 4
    assert any(argument.startswith("pytest>=") for argument in again[1])


def test_another_build_of_torch_or_another_folder_installs_again(tree, tmp_path):
    tree.run("--cpu")
    tree.calls()
    moved = Tree.__new__(Tree)
    moved.root = tree.root.rename(tmp_path / "moved")
    moved.run("--cpu", "run")
    assert len(installs(moved.calls())) == 3
    moved.run("run")
    assert len(installs(moved.calls())) == 3


def test_an_unreachable_index_is_said_and_the_plain_version_taken(tree):
    done = tree.run("--cpu")
    if sys.platform == "linux":
        assert "does not answer" in done.stdout
        assert "gigabytes larger" in done.stdout
    assert "--extra-index-url" not in installs(tree.calls())[0]
