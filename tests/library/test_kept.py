"""What Foretoken keeps of models, and that it removes nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from app.library.catalogue import Catalogue
from app.library.entries import FolderSource, HubSource, ModelEntry, WheelSource
from app.library.kept import converted_root, kept_of, remove, without_entry
from app.library.sources import fetch, locate
from app.library.wheel import unpacked_member
from app.run.problems import Problem

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def _own_home(home: Path) -> None:
    """No test touches the person's own."""


def model(name: str, path: Path) -> ModelEntry:
    return ModelEntry(name, name, FolderSource(str(path)))


def converted(entry: ModelEntry) -> Path:
    return fetch(entry, lambda progress: None, pause=lambda: None)


def test_a_conversion_goes_and_its_source_stays(tiny_gguf: Make, tmp_path: Path) -> None:
    one = model("a", tiny_gguf(tmp_path / "a.gguf"))
    near = model("a-0123456789ab", tiny_gguf(tmp_path / "b.gguf"))
    folder, other = converted(one), converted(near)
    kept = kept_of(Catalogue((one, near)), "a")
    assert kept.folders == (folder,)
    assert kept.size == sum(path.stat().st_size for path in folder.iterdir())
    assert str(tmp_path / "a.gguf") in kept.left[0]
    remove(kept)
    assert not folder.exists()
    assert (tmp_path / "a.gguf").is_file()
    assert locate(one) is None
    assert locate(near) == other


def test_names_that_are_written_alike_are_kept_apart(tiny_gguf: Make, tmp_path: Path) -> None:
    one = model("a b", tiny_gguf(tmp_path / "a.gguf"))
    near = model("a_b", tiny_gguf(tmp_path / "b.gguf"))
    folder, other = converted(one), converted(near)
    catalogue = Catalogue((one, near))
    assert kept_of(catalogue, "a b").folders == (folder,)
    assert kept_of(catalogue, "a_b").folders == (other,)


def test_conversions_of_earlier_files_and_entries_go_too(tiny_gguf: Make, tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    one = model("a", tiny_gguf(file))
    earlier = converted(one)
    file.write_bytes(file.read_bytes() + bytes(32))
    now = converted(one)
    catalogue = Catalogue((one,))
    assert without_entry(catalogue) == (earlier,)
    assert set(kept_of(catalogue, "a").folders) == {earlier, now}
    assert set(without_entry(Catalogue())) == {earlier, now}
    assert set(kept_of(Catalogue(), "a").folders) == {earlier, now}
    with pytest.raises(Problem, match="no model named"):
        kept_of(Catalogue(), "b")


def test_own_folders_and_the_hubs_cache_are_left(
    make_folder: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    make_folder("models--org--name/snapshots/1")
    own = model("own", make_folder("own"))
    hub = ModelEntry("hub", "Hub", HubSource("org/name"))
    catalogue = Catalogue((own, hub))
    for name, said in (("own", "your own"), ("hub", "`hf cache rm model/org/name`")):
        kept = kept_of(catalogue, name)
        assert kept.folders == ()
        assert said in kept.left[0]


def test_what_a_wheel_held_goes_unless_another_model_needs_it() -> None:
    source = WheelSource("some", "1.0", "0" * 64, "some/a.gguf")
    member = unpacked_member(source)
    member.parent.mkdir(parents=True)
    member.write_bytes(bytes(10))
    by_hand = member.parent.parent / "some-1.0-py3-none-any.whl"
    by_hand.touch()
    one, other = ModelEntry("one", "One", source), ModelEntry("other", "Other", source)
    shared = kept_of(Catalogue((one, other)), "one")
    assert shared.folders == ()
    assert "used for other too" in shared.left[0]
    kept = kept_of(Catalogue((one,)), "one")
    assert (kept.folders, kept.size) == ((member.parent,), 10)
    remove(kept)
    assert not member.parent.exists()
    assert by_hand.exists()


def test_one_that_is_being_made_is_not_removed(tiny_gguf: Make, tmp_path: Path) -> None:
    one = model("a", tiny_gguf(tmp_path / "a.gguf"))
    folder = converted(one)
    with (
        FileLock(folder.parent / f"{folder.name}.lock"),
        pytest.raises(Problem, match="being made"),
    ):
        remove(kept_of(Catalogue((one,)), "a"))
    assert locate(one) == folder


def test_of_a_link_only_the_link_goes(make_folder: Make) -> None:
    own = make_folder("own")
    converted_root().mkdir(parents=True)
    link = converted_root() / "a-0123456789ab"
    link.symlink_to(own)
    remove(kept_of(Catalogue(), "a"))
    assert not link.is_symlink()
    assert (own / "config.json").is_file()
