"""`models`, `report`, `--version`, Ctrl+C as a signal, and how the program starts."""

import ast
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from recorded import hostile_record, run_record

from app import __main__ as entry
from app import files
from app.library.catalogue import load_catalogue
from app.reports import read_record, write_report

TESTS = Path(__file__).parents[1]

PLAY = """
import sys, time
from types import ModuleType
from recorded import run_events
from app.run.events import At, LaneEnded, RunEnded
from app.run.problems import Cancelled

class Workbench:
    def __init__(self, catalogue): pass
    def run(self, run, settings, *, emit, report, pause):
        events = run_events()
        for event in events[:5]:
            emit(event)
        sys.stdout.flush()
        print("playing", file=sys.stderr, flush=True)
        try:
            while True:
                time.sleep(0.01)
                STUBBORN or pause()
        except Cancelled:
            emit(LaneEnded(At("r", "speculative"), "cancelled"))
            emit(RunEnded("r", "cancelled"))

module = ModuleType("app.studies.workbench")
module.Workbench = Workbench
sys.modules["app.studies.workbench"] = module
from app.cli import main
sys.exit(main(sys.argv[1:]))
"""


def playing(tmp_path, *, stubborn, path):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)]),
        "FORETOKEN_HOME": str(tmp_path / "home"),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", PLAY.replace("STUBBORN", str(stubborn)), "run", "--prompt", "a",
         "--json", "--report", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        env=environment,
    )  # fmt: skip
    for line in process.stderr:
        if "playing" in line:
            return process
    raise AssertionError("it never began")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as POSIX has them")
def test_ctrl_c_stops_the_run_and_keeps_its_part(tmp_path):
    path = tmp_path / "a.json"
    process = playing(tmp_path, stubborn=False, path=path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out)["outcome"] == "cancelled"
    assert "Traceback" not in err
    assert read_record(path).outcome == "cancelled"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as POSIX has them")
def test_a_second_ctrl_c_ends_at_once(tmp_path):
    process = playing(tmp_path, stubborn=True, path=tmp_path / "a.json")
    process.send_signal(signal.SIGINT)
    for line in process.stderr:
        if "again" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT


def test_a_report_is_shown_and_written_anew(call, tmp_path):
    path = tmp_path / "a.json"
    write_report(run_record(), path, overwrite=False)
    shown = call("report", str(path))
    assert shown.code == 0
    assert shown.out.count("<1><2><3><4><5>") == 2
    assert "2.00× (one pair, no spread)" in shown.out
    done = call(
        "report", str(path), "--to", str(tmp_path / "b.md"), "--to", str(tmp_path / "b.csv")
    )
    assert (done.code, done.out) == (0, "")
    names = {"b.md", "b.csv", "b.rounds.csv", "b.run.csv"}
    assert {file.name for file in tmp_path.glob("b*")} == names


def test_a_hostile_report_is_only_shown(call, tmp_path):
    path = tmp_path / "a.json"
    write_report(hostile_record(), path, overwrite=False)
    shown = call("report", str(path))
    assert shown.code == 0
    assert not set(shown.out) & {"\x1b", "\x9b", "\x07", "\r", "\0"}


def test_a_foreign_report_is_a_problem(call, tmp_path):
    path = tmp_path / "a.json"
    path.write_text("{}", encoding="utf-8")
    done = call("report", str(path))
    assert (done.code, done.out) == (1, "")
    assert "not a report" in done.err


def test_the_layout_is_told_as_a_json_schema(call):
    done = call("report", "--schema")
    assert json.loads(done.out)["$defs"]["Token"]["properties"]["draw"]["description"]


def test_models_lists_the_catalogue_and_tells_its_faults(call, tmp_path):
    own = tmp_path / "home" / "config" / "models.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("pairs:\n  broken:\n    title: 3\n", encoding="utf-8")
    done = call("models")
    assert done.code == 0
    for word in ("embedded (default)", "smollm2-135m-instruct", "to be fetched", str(own)):
        assert word in done.out
    assert "line 3" in done.err


@pytest.mark.parametrize("width", [100, 80])
def test_the_list_of_models_fits_a_terminal_and_cuts_no_name(call, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("app.library.sources.find_in_cache", lambda source: None)
    done = call("models")
    tables = done.out[: done.out.index("Gated:")].splitlines()
    assert max(len(line.rstrip()) for line in tables) <= width
    catalogue = load_catalogue([files.shipped_catalogue()])
    first = {line.split()[0] for line in tables if line.split()}
    assert {entry.name for entry in (*catalogue.pairs, *catalogue.models)} <= first
    row = next(line for line in tables if line.split()[:1] == ["qwen2.5-72b"])
    for word in ("72.71 B", "Qwen", "no", "145.4 GB"):
        assert word in row


def test_fetch_takes_the_models_of_a_pair_once(call, monkeypatch, tmp_path):
    fetched = []

    def fetch(entry, report, *, pause):
        fetched.append(entry.name)
        return tmp_path / "model"

    monkeypatch.setattr("app.cli.commands.models.fetch_model", fetch)
    assert call("models", "fetch", "embedded-nf4-draft").code == 0
    assert call("models", "fetch", "smollm2-135m-instruct").code == 0
    assert fetched == ["smollm2-135m-instruct"] * 2
    missing = call("models", "fetch", "nothing")
    assert missing.code == 1
    assert "embedded" in missing.err


def test_version(call):
    assert call("--version").out.startswith("foretoken ")


@pytest.mark.parametrize("command", [["--help"], ["models"], ["--version"]])
def test_nothing_heavy_is_imported_for_a_look(command, tmp_path):
    code = (
        "import sys; from app.__main__ import main; sys.argv[1:] = sys.argv[1:]; main(); "
        "heavy = {'torch', 'transformers', 'PySide6'} & set(sys.modules); sys.exit(len(heavy))"
    )
    environment = {**os.environ, "FORETOKEN_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=TESTS.parent, env=environment, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_entry_is_light_enough_for_every_child():
    code = (
        "import sys, app.__main__; "
        "sys.exit(bool({'typer', 'msgspec', 'torch', 'PySide6', 'rich'} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=TESTS.parent, timeout=60).returncode == 0
    )


def test_freeze_support_comes_before_any_import_of_ours():
    tree = ast.parse(Path(entry.__file__).read_text(encoding="utf-8"))
    called = next(
        node.lineno
        for node in tree.body
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value) == "multiprocessing.freeze_support()"
    )
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    before = {ast.unparse(node) for node in imports if node.lineno < called}
    assert before == {"import multiprocessing", "import os", "import sys"}
    ours = [node for node in imports if isinstance(node, ast.ImportFrom)]
    assert all(node not in tree.body for node in ours)


def test_ctrl_c_while_the_program_is_still_read_is_130(monkeypatch):
    def interrupted(name):
        raise KeyboardInterrupt

    from types import ModuleType

    unread = ModuleType("app.cli")
    unread.__getattr__ = interrupted
    monkeypatch.setitem(sys.modules, "app.cli", unread)
    monkeypatch.setattr("sys.argv", ["foretoken", "models"])
    assert entry.main() == 130


def test_missing_streams_are_repaired():
    code = (
        "import sys; sys.stdin = sys.stdout = sys.stderr = None; import app.__main__; "
        "print('x'); sys.stderr.write('y'); sys.exit(7 if sys.stdin.read() == '' else 1)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=TESTS.parent, timeout=60)
    assert done.returncode == 7


def test_no_arguments_open_the_window(monkeypatch):
    from types import ModuleType

    module = ModuleType("app.gui.application")
    module.main = lambda: 5
    monkeypatch.setitem(sys.modules, "app.gui.application", module)
    monkeypatch.setattr(sys, "argv", ["foretoken"])
    assert entry.main() == 5
