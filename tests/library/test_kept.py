"""What Foretoken keeps of models, and that it removes nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from app.library.catalogue import Catalogue
from app.library.entries import FolderSource, HubSource, ModelEntry, WheelSource
from app.library.hub_cache import repository_folder
from app.library.kept import converted_root, hub_bytes, kept_of, remove, without_entry
from app.library.sources import fetch, locate
from app.library.wheel import unpacked_member
from app.run.problems import Problem
from hub_stand_in import HubStandIn, sha256

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


def test_own_folders_are_left(make_folder: Make) -> None:
    kept = kept_of(Catalogue((model("own", make_folder("own")),)), "own")
    assert kept.paths == ()
    assert "your own" in kept.left[0]


class TestHub:
    def of_hub(self, name: str = "tiny", revision: str = "main") -> ModelEntry:
        return ModelEntry(name, name, HubSource("org/name", revision))

    @pytest.fixture
    def files(self, hub: HubStandIn, make_folder: Make) -> dict[str, bytes]:
        """A model on the hub, with a second revision of another config.json."""
        folder = make_folder()
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        hub.put("org/name", files)
        hub.put("org/other", dict(files))
        hub.revisions |= {"v2": "f" * 40}
        return files

    def test_a_snapshot_goes_and_nothing_else_in_the_cache(self, files: dict[str, bytes]) -> None:
        entry = self.of_hub()
        other = ModelEntry("other", "Other", HubSource("org/other"))
        folder, beside = converted(entry), converted(other)
        catalogue = Catalogue((entry, other))
        size = sum(map(len, files.values()))
        assert hub_bytes(catalogue) >= 2 * size
        kept = kept_of(catalogue, "tiny")
        assert (kept.paths, kept.size, kept.left) == ((folder,), size, ())
        remove(kept)
        assert not repository_folder("org/name").exists()
        assert locate(entry) is None
        assert locate(other) == beside
        assert kept_of(catalogue, "tiny").paths == ()

    def test_what_another_snapshot_uses_stays(self, files: dict[str, bytes]) -> None:
        first, second = self.of_hub(), self.of_hub("second", "v2")
        converted(first)
        files["config.json"] += b" "
        folder = converted(second)
        kept = kept_of(Catalogue((first, second)), "second")
        assert kept.size == len(files["config.json"])
        remove(kept)
        assert not folder.exists()
        assert locate(first) is not None

    def test_a_snapshot_that_another_model_needs_is_left(self, files: dict[str, bytes]) -> None:
        first, again = self.of_hub(), self.of_hub("again")
        converted(first)
        kept = kept_of(Catalogue((first, again)), "tiny")
        assert kept.paths == ()
        assert "used for again too" in kept.left[0]

    def test_a_copied_commit_in_another_repository_is_not_touched(
        self, files: dict[str, bytes]
    ) -> None:
        entry, copy = self.of_hub(), ModelEntry("copy", "Copy", HubSource("org/other"))
        converted(copy)  # the same commit, as a fork has it
        converted(entry)
        remove(kept_of(Catalogue((entry,)), "tiny"))
        assert locate(copy) is not None

    def test_what_a_stopped_fetch_left_goes_unless_it_is_under_way(
        self, hub: HubStandIn, files: dict[str, bytes]
    ) -> None:
        entry = self.of_hub()
        hub.next("model.safetensors", cut=100)
        hub.always("model.safetensors", status=404)
        with pytest.raises(Problem):
            converted(entry)
        blobs = repository_folder("org/name") / "blobs"
        theirs = blobs / f"{'0' * 64}.0123abcd.incomplete"
        theirs.touch()
        left = set(blobs.iterdir()) - {theirs}
        weights = blobs / f"{sha256(files['model.safetensors'])}.incomplete"
        assert weights in left
        kept = kept_of(Catalogue((entry,)), "tiny")
        assert set(kept.paths) == left
        assert kept.size == sum(path.stat().st_size for path in left) >= 100
        locks = blobs.parents[1] / ".locks" / "models--org--name"
        with FileLock(locks / f"{weights.stem}.lock"):
            assert set(kept_of(Catalogue((entry,)), "tiny").paths) == left - {weights}
        remove(kept)
        assert list(blobs.iterdir()) == [theirs]

    def test_a_damaged_snapshot_is_told(self, files: dict[str, bytes]) -> None:
        entry = self.of_hub()
        folder = converted(entry)
        (folder / "model.safetensors").resolve().unlink()
        kept = kept_of(Catalogue((entry,)), "tiny")
        assert kept.paths == ()
        assert "damaged" in kept.left[0]

    def test_a_gguf_goes_with_its_conversion(
        self, hub: HubStandIn, tiny_gguf: Make, tmp_path: Path
    ) -> None:
        hub.put("org/name", {"a.gguf": tiny_gguf(tmp_path / "a.gguf").read_bytes()})
        entry = self.of_hub()
        folder = converted(entry)
        catalogue = Catalogue((entry,))
        assert without_entry(catalogue) == ()
        kept = kept_of(catalogue, "tiny")
        assert kept.paths[0] == folder
        assert kept.size > hub_bytes(catalogue) - 100
        remove(kept)
        assert hub_bytes(catalogue) == 0
        assert not folder.exists()


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
