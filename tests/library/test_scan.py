"""Little stores of models, as each program lays them out, and what a scan makes of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from app.library import scan_walk
from app.library.catalogue import Catalogue, load_catalogue
from app.library.entries import FolderSource, HubSource, ModelEntry
from app.library.scan import Found, Scan, scan
from app.library.sources import locate
from app.run.problems import Cancelled

Make = Callable[..., Path]
_COMMIT, _OLDER = "a" * 40, "b" * 40
_NOTHING = Catalogue()


@pytest.fixture(autouse=True)
def person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path) -> Path:
    """The home folder of a person who has nothing yet."""
    folder = tmp_path / "person"
    folder.mkdir()
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(folder))
    monkeypatch.setenv("LOCALAPPDATA", str(folder / "local"))
    for variable in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LLAMA_CACHE", str(folder / "llama"))
    monkeypatch.setenv("OLLAMA_MODELS", str(folder / "ollama"))
    return folder


def look(*folders: Path, catalogue: Catalogue = _NOTHING) -> Scan:
    return scan(folders, catalogue, pause=lambda: None)


def only(found: Scan) -> Found:
    assert found.troubles == ()
    assert len(found.found) == 1, [one.path for one in found.found]
    return found.found[0]


def titles(found: Scan) -> list[str]:
    return [one.title for one in found.found]


def test_a_machine_without_models(tmp_path: Path) -> None:
    found = look()
    assert (found.found, found.troubles, found.entries) == ((), (), "")
    assert not any(place.there for place in found.places)


def test_a_folder_tells_its_facts_and_its_entry_works(
    make_folder: Make, tmp_path: Path, home: Path
) -> None:
    folder = make_folder("mine/é 模型: no #1")
    found = look(tmp_path / "mine")
    one = only(found)
    assert (one.path, one.kind, one.loads, one.reason) == (folder, "safetensors folder", True, "")
    assert (one.architecture, one.model_type) == ("LlamaForCausalLM", "llama")
    assert one.parameters == 64 * 8 + 8
    assert one.quantisation == "float32"
    assert one.context_length == 128
    assert one.bytes_on_disk == sum(path.stat().st_size for path in folder.iterdir())
    own = home / "config" / "models.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(found.entries, encoding="utf-8")
    catalogue = load_catalogue([own])
    assert catalogue.faults == ()
    assert [locate(model) for model in catalogue.models] == [folder]
    again = only(look(tmp_path / "mine", catalogue=catalogue))
    assert again.offered_as == catalogue.models[0].name
    assert again.entry == ""


class TestHub:
    @pytest.fixture
    def cache(self, person: Path) -> Path:
        return person / ".cache" / "huggingface" / "hub"

    @pytest.fixture
    def repository(self, cache: Path, make_folder: Make, tmp_path: Path) -> Path:
        """A repository as the Hub's library writes one: links from a snapshot into blobs."""
        return fill(cache / "models--org--name", make_folder("plain"))

    def test_the_snapshot_of_its_ref_is_found(self, repository: Path) -> None:
        one = only(look())
        assert (one.title, one.place) == ("org/name", "Hugging Face cache")
        assert one.path == repository / "snapshots" / _COMMIT
        assert one.loads
        assert one.bytes_on_disk == sum(p.stat().st_size for p in (repository / "blobs").iterdir())
        assert yaml.safe_load(one.entry) == {
            "models": {
                "name": {"title": "org/name", "source": {"hub": "org/name", "revision": "main"}}
            }
        }

    def test_what_the_catalogue_offers_is_named(self, repository: Path) -> None:
        model = ModelEntry("known", "Known", HubSource("org/name"))
        one = only(look(catalogue=Catalogue((model,))))
        assert (one.offered_as, one.entry) == ("known", "")

    @pytest.mark.parametrize("variable", ["HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"])
    def test_the_environment_moves_it(
        self, repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
    ) -> None:
        moved = tmp_path / "elsewhere"
        inside = moved / "hub" if variable == "HF_HOME" else moved
        inside.mkdir(parents=True)
        repository.rename(inside / repository.name)
        monkeypatch.setenv(variable, str(moved))
        assert only(look()).path.is_relative_to(moved)

    def test_a_snapshot_that_no_ref_names_is_told_but_not_listed(
        self, repository: Path, make_folder: Make
    ) -> None:
        make_folder("old").rename(repository / "snapshots" / _OLDER)
        one = only(look())
        assert one.path.name == _COMMIT
        assert one.notes == ("1 older snapshots are here too.",)

    def test_without_refs_every_snapshot_is_listed_by_its_folder(
        self, repository: Path, make_folder: Make
    ) -> None:
        (repository / "refs" / "main").unlink()
        make_folder("old").rename(repository / "snapshots" / _OLDER)
        found = look()
        assert [one.path.name for one in found.found] == [_COMMIT, _OLDER]
        names = yaml.safe_load(found.entries)["models"]
        assert list(names) == ["name", "name-2"]
        assert all(Path(entry["source"]["folder"]).is_dir() for entry in names.values())

    def test_a_copied_cache_whose_links_dangle(self, repository: Path) -> None:
        for blob in (repository / "blobs").iterdir():
            if blob.name == "model.safetensors":
                blob.unlink()
        one = only(look())
        assert not one.loads
        assert "target of the link" in one.reason
        assert "links resolved" in one.remedy
        assert one.model_type == "llama"

    def test_unfinished_blobs_are_told(self, repository: Path) -> None:
        (repository / "snapshots" / _COMMIT / "model.safetensors").unlink()
        (repository / "blobs" / "abc.incomplete").write_bytes(bytes(3_000_000))
        one = only(look())
        assert not one.loads
        assert one.notes == ("1 downloads are unfinished (3 MB so far).",)

    def test_nothing_but_an_unfinished_download(self, cache: Path) -> None:
        blobs = cache / "models--org--name" / "blobs"
        blobs.mkdir(parents=True)
        (blobs.parent / "snapshots").mkdir()
        (blobs / "abc.incomplete").touch()
        one = only(look())
        assert not one.loads
        assert "1 downloads are unfinished" in one.reason

    @pytest.mark.parametrize(
        "said", [b"", b"../../..", b"/etc", b"\xff\xfe\x00", _OLDER.encode(), b"x" * 5_000]
    )
    def test_a_ref_may_hold_anything(self, repository: Path, said: bytes) -> None:
        (repository / "refs" / "main").write_bytes(said)
        one = only(look())
        assert (one.path.name, one.loads) == (_COMMIT, True)

    def test_a_gguf_within_a_snapshot(self, repository: Path, tiny_gguf: Make) -> None:
        folder = repository / "snapshots" / _COMMIT / "quants"
        folder.mkdir()
        tiny_gguf(folder / "tiny-Q8_0.gguf")
        assert sorted(titles(look())) == ["org/name", "tiny-Q8_0"]

    def test_a_tokenizer_alone_is_told(self, repository: Path) -> None:
        (repository / "snapshots" / _COMMIT / "model.safetensors").unlink()
        assert "holds no weights" in only(look()).reason

    def test_data_sets_are_passed_by(self, cache: Path, make_folder: Make) -> None:
        fill(cache / "datasets--org--name", make_folder("plain"))
        assert look().found == ()


def fill(repository: Path, plain: Path) -> Path:
    """Makes a model's folder a repository of the cache."""
    snapshot = repository / "snapshots" / _COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(_COMMIT, encoding="utf-8")
    plain.rename(repository / "blobs")
    for blob in (repository / "blobs").iterdir():
        (snapshot / blob.name).symlink_to(f"../../blobs/{blob.name}")
    return repository


class TestOllama:
    @pytest.fixture
    def store(self, person: Path) -> Path:
        folder = person / "ollama"
        (folder / "blobs").mkdir(parents=True)
        return folder

    def add(self, store: Path, name: str, content: str) -> None:
        manifest = store / "manifests" / name
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(content, encoding="utf-8")

    def manifest(self, digest: str) -> str:
        model = "application/vnd.ollama.image.model"
        layers = [{"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:00"}]
        return json.dumps({"layers": [*layers, {"mediaType": model, "digest": digest, "size": 1}]})

    def test_a_model_is_found_by_its_name_and_loads(self, store: Path, tiny_gguf: Make) -> None:
        digest = "0123456789abcdef" * 4
        tiny_gguf(store / "blobs" / f"sha256-{digest}")
        self.add(store, "registry.ollama.ai/library/tiny/1b", self.manifest(f"sha256:{digest}"))
        found = look()
        one = only(found)
        assert (one.title, one.place, one.kind) == ("tiny:1b", "Ollama", "GGUF file")
        assert one.loads
        assert (one.architecture, one.quantisation) == ("llama", "Q8_0")
        entry = yaml.safe_load(found.entries)["models"]["tiny_1b"]
        model = ModelEntry("tiny", "Tiny", FolderSource(entry["source"]["folder"]))
        assert locate(model) is None  # not converted yet, and no problem
        known = look(catalogue=Catalogue((model,)))
        assert only(known).offered_as == "tiny"

    @pytest.mark.parametrize(
        ("name", "title"),
        [
            ("registry.ollama.ai/someone/tiny/latest", "someone/tiny:latest"),
            ("hf.co/org/name/Q4_K_M", "hf.co/org/name:Q4_K_M"),
        ],
    )
    def test_names_are_ollamas_own(self, store: Path, name: str, title: str) -> None:
        self.add(store, name, self.manifest(f"sha256:{'0' * 64}"))
        assert only(look()).title == title

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ("", "broken"),
            ("{", "broken"),
            ("[1]", "broken"),
            ('{"layers": 3}', "broken"),
            ('{"layers": []}', "names no GGUF file"),
            ("{}", "names no GGUF file"),
        ],
    )
    def test_a_broken_manifest(self, store: Path, content: str, reason: str) -> None:
        self.add(store, "registry.ollama.ai/library/tiny/1b", content)
        one = only(look())
        assert not one.loads
        assert reason in one.reason
        assert one.remedy

    @pytest.mark.parametrize(
        "digest", ["sha256:../../../secret", "sha256:" + "g" * 64, "", "md5:0"]
    )
    def test_a_digest_cannot_name_another_file(self, store: Path, digest: str) -> None:
        self.add(store, "registry.ollama.ai/library/tiny/1b", self.manifest(digest))
        one = only(look())
        assert not one.loads
        assert "no form that Ollama writes" in one.reason

    def test_a_file_that_is_gone_or_not_there_yet(self, store: Path) -> None:
        digest = "0" * 64
        self.add(store, "registry.ollama.ai/library/tiny/1b", self.manifest(f"sha256:{digest}"))
        gone = only(look())
        assert (gone.reason, gone.loads) == ("Its file is gone.", False)
        assert "`ollama pull tiny:1b`" in gone.remedy
        (store / "blobs" / f"sha256-{digest}-partial-0").touch()
        assert "unfinished" in only(look()).reason


class TestGguf:
    def test_each_place(self, person: Path, tiny_gguf: Make) -> None:
        studio = person / ".lmstudio" / "models" / "org" / "repo"
        llama = person / "llama"
        for number, folder in enumerate((studio, llama)):
            folder.mkdir(parents=True)
            tiny_gguf(folder / f"m{number}.gguf")
        assert [(one.title, one.place) for one in look().found] == [
            ("m0", "LM Studio"),
            ("m1", "llama.cpp"),
        ]

    def test_parts_are_one_model(self, tiny_gguf: Make, tmp_path: Path) -> None:
        folder = tmp_path / "split"
        folder.mkdir()
        for part in (1, 2):
            tiny_gguf(folder / f"big-0000{part}-of-00003.gguf")
        one = only(look(folder))
        assert (one.title, one.loads) == ("big", False)
        assert "part of several" in one.reason
        assert "llama-gguf-split --merge" in one.remedy
        assert one.notes == ("2 of its 3 parts are here.",)
        assert one.bytes_on_disk == sum(path.stat().st_size for path in folder.iterdir())

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"architecture": "qwen3"}, "'qwen3'; only llama"),
            ({"pre": "unheard-of"}, "'unheard-of'"),
            ({"extra_tensor": "rope_freqs.weight"}, "rope_freqs.weight"),
            ({"extra": {"general.type": "adapter"}}, "a part for one (adapter)"),
            ({"extra": {"llama.rope.scaling.type": "yarn"}}, "'yarn'"),
        ],
    )
    def test_what_would_not_convert_is_told_with_its_facts(
        self, tiny_gguf: Make, tmp_path: Path, changes: dict[str, object], reason: str
    ) -> None:
        folder = tmp_path / "g"
        folder.mkdir()
        tiny_gguf(folder / "a.gguf", **changes)
        one = only(look(folder))
        assert not one.loads
        assert reason in one.reason
        assert one.remedy
        assert one.parameters is not None
        assert one.parameters > 0
        assert one.entry == ""

    @pytest.mark.parametrize("keep", [0, 10, 24, 100, 2_000, 0.5, 0.99])
    def test_a_cut_file(self, tiny_gguf: Make, tmp_path: Path, keep: float) -> None:
        folder = tmp_path / "g"
        folder.mkdir()
        file = tiny_gguf(folder / "a.gguf")
        content = file.read_bytes()
        file.write_bytes(content[: keep if isinstance(keep, int) else int(len(content) * keep)])
        one = only(look(folder))
        assert not one.loads
        assert "GGUF file" in one.reason or "cut short" in one.reason


class TestHostile:
    def test_names_only_name(self, make_folder: Make, tmp_path: Path, home: Path) -> None:
        make_folder("all/- a: b\n\x1b[31mred")
        make_folder("all/[x](y)` $(z) 'q' \"p\"")
        found = look(tmp_path / "all")
        assert all(one.loads for one in found.found)
        with_newline = next(one for one in found.found if "\n" in one.title)
        assert with_newline.entry == ""
        assert "control characters" in with_newline.notes[-1]
        own = tmp_path / "models.yaml"
        own.write_text(found.entries, encoding="utf-8")
        catalogue = load_catalogue([own])
        assert catalogue.faults == ()
        assert len(catalogue.models) == 1
        assert locate(catalogue.models[0]) is not None

    @pytest.mark.skipif(os.name == "nt", reason="names there are Unicode")
    def test_a_name_that_is_no_unicode(self, make_folder: Make, tmp_path: Path) -> None:
        folder = make_folder("all/plain")
        os.rename(folder, os.fsencode(folder.parent) + b"/caf\xe9")
        found = look(tmp_path / "all")
        assert only(found).loads
        assert json.dumps(found.entries)

    def test_links_in_a_circle_end(self, make_folder: Make, tmp_path: Path) -> None:
        folder = make_folder("all/one")
        (folder / "up").symlink_to("..")
        (tmp_path / "all" / "again").symlink_to("one")
        (tmp_path / "all" / "self").symlink_to("self")
        (tmp_path / "all" / "self.gguf").symlink_to("self.gguf")
        found = look(tmp_path / "all", tmp_path / "all")
        assert sorted(titles(found)) in (["again", "self"], ["one", "self"])
        circle = next(one for one in found.found if one.title == "self")
        assert not circle.loads

    @pytest.mark.skipif(os.name == "nt", reason="there are no named pipes in folders")
    def test_a_pipe_is_not_opened(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "a.gguf")
        (tmp_path / "b.gguf").symlink_to("a.gguf")
        assert look(tmp_path).found == ()

    def test_a_folder_that_may_not_be_read_is_told(
        self, make_folder: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_folder("all/open")
        shut = tmp_path / "all" / "shut"
        shut.mkdir()
        scandir = os.scandir

        def refuse(path: Path) -> object:
            if Path(path) == shut:
                raise PermissionError(13, "Permission denied", str(path))
            return scandir(path)

        monkeypatch.setattr("app.library.scan_walk.os.scandir", refuse)
        found = look(tmp_path / "all")
        assert titles(found) == ["open"]
        assert found.troubles == (f"{shut} cannot be read: Permission denied.",)

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        assert "There is no folder" in look(tmp_path / "no such").troubles[0]

    def test_bounds_are_told(
        self, make_folder: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_folder("/".join(["all", *"abcdefghijkl"]))
        assert "too deep" in look(tmp_path / "all").troubles[0]
        monkeypatch.setattr(scan_walk, "MOST_FOLDERS", 3)
        assert "Stopped in" in look(tmp_path / "all").troubles[0]

    def test_a_cancel_ends_it(self, tmp_path: Path) -> None:
        def pause() -> None:
            raise Cancelled

        with pytest.raises(Cancelled):
            scan([tmp_path], _NOTHING, pause=pause)


class TestOther:
    def test_pickled_weights_are_told_with_a_way_out(
        self, make_folder: Make, tmp_path: Path
    ) -> None:
        folder = make_folder("all/old")
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
        one = only(look(tmp_path / "all"))
        assert "pickle" in one.reason
        assert "weights_only=True" in one.remedy

    @pytest.mark.parametrize(
        ("config", "reason"),
        [
            ({"architectures": ["BertForMaskedLM"]}, "does not continue a text"),
            ({"architectures": ["LlamaModel"]}, "does not continue a text"),
            ({"is_encoder_decoder": True}, "does not continue a text"),
            ({"quantization": {"bits": 4}, "quantization_config": {"bits": 4}}, "packed for MLX"),
        ],
    )
    def test_other_kinds(
        self, make_folder: Make, tmp_path: Path, config: dict[str, object], reason: str
    ) -> None:
        make_folder("all/other", config=config)
        one = only(look(tmp_path / "all"))
        assert not one.loads
        assert reason in one.reason

    def test_a_quantisation_of_transformers_own_is_named(
        self, make_folder: Make, tmp_path: Path
    ) -> None:
        own = {"quant_method": "fp8", "activation_scheme": "dynamic"}
        make_folder("all/q", config={"quantization": None, "quantization_config": own})
        one = only(look(tmp_path / "all"))
        assert (one.loads, one.quantisation) == (True, "fp8")

    def test_adapters_pipelines_and_other_programs(self, tmp_path: Path) -> None:
        for name, files in {
            "adapter": ("adapter_config.json", "adapter_model.safetensors"),
            "pipeline": ("model_index.json", "unet/config.json", "unet/a.safetensors"),
            "web": ("config.json", "index.html"),
        }.items():
            for file in files:
                path = tmp_path / "all" / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("{}", encoding="utf-8")
        found = look(tmp_path / "all")
        assert [(one.title, one.loads) for one in found.found] == [
            ("adapter", False),
            ("pipeline", False),
        ]

    def test_a_login_page_and_an_unfinished_shard(self, make_folder: Make, tmp_path: Path) -> None:
        page = make_folder("all/page")
        (page / "config.json").write_text("<html>Log in</html>", encoding="utf-8")
        half = make_folder("all/half")
        (half / "model.safetensors").rename(half / "model.safetensors.incomplete")
        reasons = {one.title: one.reason for one in look(tmp_path / "all").found}
        assert "<html>" in reasons["page"]
        assert "model.safetensors.incomplete" in reasons["half"]

    def test_a_draft_head(self, make_head: Make, tmp_path: Path) -> None:
        make_head("all/head")
        one = only(look(tmp_path / "all"))
        assert (one.kind, one.loads, one.parameters) == ("draft head", True, 15)
        assert one.architecture == "draft head for Tiny"

    def test_own_conversions_are_passed_by(self, home: Path, make_folder: Make) -> None:
        place = home / "cache" / "converted"
        place.mkdir(parents=True)
        make_folder("plain").rename(place / "tiny-0123456789ab")
        assert look(home).found == ()
