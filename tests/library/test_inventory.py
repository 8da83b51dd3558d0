"""One list of all models: nothing is left out, nothing stands there twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app import files
from app.library.catalogue import Catalogue, load_catalogue
from app.library.checking import Check
from app.library.dropped import look_into
from app.library.inventory import Listed, listing
from app.library.overview import overview
from app.library.own_catalogue import offer_pair
from app.library.scan import scan
from app.library.together import _judged, obstacles, together
from app.run.problems import Cancelled, Problem

Make = Callable[..., Path]


def nothing() -> None:
    """Never cancels."""


def own(text: str) -> Catalogue:
    """A person's own catalogue, read back."""
    file = files.user_catalogue()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return load_catalogue([file])


def by_title(rows: tuple[Listed, ...]) -> dict[str, Listed]:
    assert len({row.key for row in rows}) == len(rows)
    return {row.title: row for row in rows}


def test_what_ships_is_listed_with_its_roles_before_it_is_fetched(home: Path) -> None:
    rows = by_title(listing(load_catalogue([files.shipped_catalogue()])))
    target = rows["SmolLM2-135M-Instruct"]
    assert (target.standing, target.where, target.here) == ("to be fetched", "catalogue", False)
    assert target.download_bytes == 92871040
    assert target.roles == ("target", "draft")
    assert target.reason == ""
    head = rows["Draft head for SmolLM2-135M-Instruct"]
    assert (head.standing, head.where, head.is_head) == ("ready", "Foretoken", True)


def test_a_faulty_entry_is_a_row_with_its_place_and_its_remedy(home: Path) -> None:
    catalogue = own("models:\n  mine:\n    titel: Mine\n    source: {folder: /m}\n")
    [row] = listing(catalogue)
    assert row.fault is catalogue.faults[0]
    assert (row.title, row.standing) == ("models.yaml, line 3, column 5", "faulty")
    assert "titel" in row.reason
    assert "Did you mean 'title'?" in row.remedy
    assert row.entry is None


def test_a_broken_folder_of_the_catalogue_says_why_it_cannot_be_used(
    home: Path, make_folder: Make
) -> None:
    folder = make_folder("broken")
    (folder / "tokenizer.json").unlink()
    [row] = listing(own(f"models:\n  mine:\n    title: Mine\n    source: {{folder: {folder}}}\n"))
    assert (row.standing, row.offered) == ("faulty", True)
    assert "tokenizer" in row.reason
    assert row.remedy


def test_what_was_found_stands_there_once_and_moves_to_its_entry(
    home: Path, make_folder: Make, tiny_gguf: Make, tmp_path: Path
) -> None:
    folder = make_folder("mine/a")
    tiny_gguf(tmp_path / "mine" / "b.gguf")
    found = look_into(tmp_path / "mine", Catalogue(), pause=nothing)
    rows = by_title(listing(Catalogue(), [*found, *found]))
    assert {title: row.standing for title, row in rows.items()} == {
        "a": "ready",
        "b": "to be converted",
    }
    row = rows["a"]
    assert (row.where, row.path, row.offered) == ("your folder", folder, False)
    assert row.entry is not None
    name = offer_pair(files.user_catalogue(), Catalogue(), row.entry, None, role=None)
    catalogue = load_catalogue([files.user_catalogue()])
    assert catalogue.pair(name).target == row.entry.name
    rows = by_title(listing(catalogue, found))
    assert len(rows) == 2
    assert rows["a"].offered
    assert rows["a"].pairs == ("a, n-gram",)


def test_two_of_one_name_are_offered_under_names_of_their_own(
    home: Path, make_folder: Make, tmp_path: Path
) -> None:
    make_folder("one/same")
    make_folder("two/same")
    rows = listing(Catalogue(), look_into(tmp_path, Catalogue(), pause=nothing))
    names = [row.entry.name for row in rows if row.entry]
    assert names == ["same", "same-2"]


def test_a_cached_model_of_the_hub_is_that_of_the_catalogue_whichever_way_it_is_named(
    home: Path, make_folder: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    commit = "a" * 40
    make_folder(f"hub/models--org--x/snapshots/{commit}")
    refs = tmp_path / "hub" / "models--org--x" / "refs"
    refs.mkdir()
    (refs / "main").write_text(commit)
    source = f"{{hub: org/x, revision: {commit}}}"
    catalogue = own(f"models:\n  x:\n    title: X\n    source: {source}\n")
    found = scan((), catalogue, pause=nothing).found
    assert [one.title for one in found] == ["org/x"]
    [row] = listing(catalogue, found)
    assert (row.title, row.standing, row.where) == ("X", "ready", "Hugging Face cache")


class TestDropped:
    def test_a_file_of_a_folder_stands_for_the_folder(self, home: Path, make_folder: Make) -> None:
        folder = make_folder()
        for name in ("config.json", "model.safetensors"):
            [one] = look_into(folder / name, Catalogue(), pause=nothing)
            assert (one.path, one.loads) == (folder, True)

    def test_a_gguf_file_alone(self, home: Path, tiny_gguf: Make, tmp_path: Path) -> None:
        tiny_gguf(tmp_path / "other.gguf")
        file = tiny_gguf(tmp_path / "this.gguf")
        [one] = look_into(file, Catalogue(), pause=nothing)
        assert (one.path, one.kind, one.place) == (file, "GGUF file", "your folder")

    @pytest.mark.parametrize("name", ["notes.txt", "picture.json", "empty"])
    def test_what_is_no_model_is_told(self, home: Path, tmp_path: Path, name: str) -> None:
        place = tmp_path / "place" / name
        place.mkdir(parents=True) if name == "empty" else place.parent.mkdir()
        if name != "empty":
            place.write_text("{}")
        with pytest.raises(Problem) as told:
            look_into(place, Catalogue(), pause=nothing)
        assert str(place) in told.value.message
        assert "config.json" in told.value.remedy

    def test_what_is_not_there_is_told(self, home: Path, tmp_path: Path) -> None:
        with pytest.raises(Problem, match="There is no"):
            look_into(tmp_path / "gone", Catalogue(), pause=nothing)

    def test_a_broken_model_is_found_with_its_reason(self, home: Path, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "model.safetensors").write_bytes(b"no")
        [one] = look_into(folder, Catalogue(), pause=nothing)
        assert not one.loads
        assert one.reason
        [row] = listing(Catalogue(), [one])
        assert (row.standing, row.entry, row.reason) == ("faulty", None, one.reason)

    def test_a_cancel_ends_it(self, home: Path, make_folder: Make) -> None:
        def pause() -> None:
            raise Cancelled

        with pytest.raises(Cancelled):
            look_into(make_folder(), Catalogue(), pause=pause)


class TestTogether:
    def entries(self, *folders: Path) -> Catalogue:
        lines = [
            f"  m{place}:\n    title: M{place}\n    source: {{folder: '{folder}'}}\n"
            for place, folder in enumerate(folders)
        ]
        pair = "  p:\n    title: P\n    target: m0\n    draft: m1\n    method: draft-model\n"
        return own("models:\n" + "".join(lines) + "pairs:\n" + pair)

    def test_one_vocabulary_fits(self, home: Path, make_folder: Make) -> None:
        catalogue = self.entries(make_folder("t", hidden=16), make_folder("d"))
        found = together(*catalogue.models, role="draft")
        assert (found.verdict, found.reason) == ("fits", "Every id means the same to both.")
        assert obstacles(catalogue, overview(catalogue)) == {}

    def test_another_vocabulary_fits_by_other_methods_and_says_which(
        self, home: Path, make_folder: Make, byte_tokenizer: Make
    ) -> None:
        other = make_folder("d", tokenizer=byte_tokenizer(swap=(3, 9)))
        catalogue = self.entries(make_folder("t", hidden=16), other)
        found = together(*catalogue.models, role="draft")
        assert found.verdict == "fits"
        assert "another vocabulary: 100.0% of its tokens" in found.reason  # two ids are swapped
        # The pair asks for a method that needs the same ids.
        refused = obstacles(catalogue, overview(catalogue))["p"]
        assert refused.verdict == "cannot"
        assert "slem" in refused.remedy
        assert "d 3 means" in refused.reason

    def test_a_broken_draft_makes_its_pair_unusable(self, home: Path, make_folder: Make) -> None:
        draft = make_folder("d")
        (draft / "config.json").unlink()
        catalogue = self.entries(make_folder("t", hidden=16), draft)
        assert "config.json" in obstacles(catalogue, overview(catalogue))["p"].reason

    def test_what_is_not_here_is_left_open(self, home: Path, make_folder: Make) -> None:
        catalogue = load_catalogue([files.shipped_catalogue()])
        entry = catalogue.model("smollm2-135m-instruct")
        found = together(entry, entry, role="draft")
        assert found.verdict == "open"
        assert "SmolLM2-135M-Instruct" in found.reason
        assert obstacles(catalogue, overview(catalogue)) == {}

    def test_a_file_is_compared_once_it_is_converted(
        self, home: Path, make_folder: Make, tiny_gguf: Make, tmp_path: Path
    ) -> None:
        catalogue = self.entries(make_folder("t"), tiny_gguf(tmp_path / "d.gguf"))
        found = together(*catalogue.models, role="draft")
        assert found.verdict == "open"
        assert "converted" in found.reason

    def test_a_head_fits_its_own_target_alone(
        self, home: Path, make_folder: Make, make_head: Make
    ) -> None:
        catalogue = self.entries(make_folder("t"), make_head("h", hidden=99))
        assert together(*catalogue.models, role="head").verdict == "cannot"


def test_what_is_said_of_a_fitting_head_adds_to_the_verdict() -> None:
    fitting = _judged(Check(()), "head")
    assert (fitting.verdict, fitting.reason) == ("fits", "Its sizes are the target's.")
