"""Fetching from the Hub, by its own library, against a stand-in with the faults of a real one."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from huggingface_hub import scan_cache_dir, snapshot_download
from safetensors.numpy import load, save

from app.library.entries import HubSource, ModelEntry
from app.library.hub_cache import find_in_cache, repository_folder
from app.library.hub_token import keep_token
from app.library.preflight import check
from app.library.sources import fetch, is_download_needed, locate
from app.run.events import Progress
from app.run.problems import Cancelled, Problem
from hub_stand_in import COMMIT, TOKEN, HubStandIn, digest, sha256

Make = Callable[..., Path]
REPO = "org/name"
WEIGHTS = "model.safetensors"


def entry(file: str | None = None, revision: str = "main") -> ModelEntry:
    return ModelEntry("tiny", "Tiny", HubSource(REPO, revision, file))


def get(model: ModelEntry | None = None, reports: list[Progress] | None = None) -> Path:
    seen = reports if reports is not None else []
    return fetch(model or entry(), seen.append, pause=lambda: None)


def refused(said: str, model: ModelEntry | None = None) -> Problem:
    with pytest.raises(Problem, match=said) as caught:
        get(model)
    assert caught.value.remedy
    return caught.value


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def cached(name: str = "*") -> list[Path]:
    return sorted((repository_folder(REPO) / "blobs").glob(name))


@pytest.fixture
def files(make_folder: Make) -> dict[str, bytes]:
    """A whole tiny model of some 20 kB, and what may lie beside one."""
    folder = make_folder("on the hub", vocabulary=640, generation={"do_sample": True})
    return contents(folder) | {"chat_template.jinja": b"{{ messages }}"}


@pytest.fixture
def model(hub: HubStandIn, files: dict[str, bytes]) -> dict[str, bytes]:
    """The same, on the hub."""
    hub.put(REPO, files)
    return files


class TestWhole:
    def test_a_model_is_fetched_once_and_any_program_finds_it(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        assert locate(entry()) is None
        assert is_download_needed(entry())
        reports: list[Progress] = []
        folder = get(reports=reports)
        assert contents(folder) == model
        assert folder == repository_folder(REPO) / "snapshots" / COMMIT
        last, total = reports[-1], sum(map(len, model.values()))
        assert (last.stage, last.unit) == ("Downloading org/name", "bytes")
        assert (last.done, last.total) == (total, total)
        assert {path.name for path in cached()} == {digest(*file) for file in model.items()}
        asked = len(hub.asked)
        assert locate(entry()) == get() == folder
        assert not is_download_needed(entry())
        assert len(hub.asked) == asked
        cache = repository_folder(REPO).parent
        found = scan_cache_dir(cache)
        assert not found.warnings
        (repo,) = found.repos
        assert (repo.repo_id, set(repo.refs), repo.size_on_disk) == (REPO, {"main"}, total)
        theirs = snapshot_download(REPO, cache_dir=cache, endpoint=hub.endpoint)
        assert Path(theirs) == folder
        assert len(hub.gets(WEIGHTS)) == 1

    def test_a_cache_filled_by_the_library_needs_no_fetch(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        cache = repository_folder(REPO).parent
        folder = snapshot_download(REPO, cache_dir=cache, endpoint=hub.endpoint)
        hub.stop()
        assert locate(entry()) == Path(folder)
        assert get() == Path(folder)

    def test_what_another_revision_has_is_not_fetched_again(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        first = get()
        hub.revisions["v2.0"] = "f" * 40
        model["config.json"] += b"\n"
        second = get(entry(revision="v2.0"))
        assert second != first
        assert contents(second) == model
        assert len(hub.gets(WEIGHTS)) == 1
        assert len(hub.gets("config.json")) == 2
        assert get(entry(revision=COMMIT)) == first

    def test_where_there_are_no_links_nothing_is_kept_twice(
        self, hub: HubStandIn, model: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError("A required privilege is not held by the client")

        model["special_tokens_map.json"] = model["generation_config.json"]
        monkeypatch.setattr(Path, "symlink_to", refuse)
        folder = get()
        assert contents(folder) == model
        assert not any(path.is_symlink() for path in folder.iterdir())
        assert cached() == []
        assert get() == folder
        assert len(hub.gets(WEIGHTS)) == 1

    def test_a_copied_snapshot_without_its_links_is_completed(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        folder = repository_folder(REPO) / "snapshots" / COMMIT
        folder.mkdir(parents=True)
        (folder / "config.json").write_bytes(model["config.json"])
        (folder / "tokenizer.json").symlink_to("../../blobs/not-copied")
        assert get() == folder
        assert contents(folder) == model
        assert not hub.gets("config.json")

    def test_the_network_is_not_touched_for_what_is_there(
        self, hub: HubStandIn, model: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = get()
        monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a connection"))
        assert get() == locate(entry()) == folder


class TestChoice:
    def test_neither_code_nor_pickles_nor_other_formats_come(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        never = ["pytorch_model.bin", "modeling_x.py", "tokenizer.py", "onnx/model.safetensors"]
        never += ["README.md", "model.gguf", "original/params.json", "tokenizer.pkl"]
        never += ["consolidated.safetensors", "model.safetensors.index.json"]
        hub.put(REPO, model | {name: name.encode() for name in never})
        assert contents(get()) == model
        assert {one.path.split("/", 5)[-1] for one in hub.asked if "resolve" in one.path} == set(
            model
        )

    def test_only_the_shards_of_the_index_come(
        self, hub: HubStandIn, model: dict[str, bytes], tmp_path: Path
    ) -> None:
        hub.put(REPO, _sharded(model))
        folder = get()
        assert "extra-00003.safetensors" not in contents(folder)
        assert len(check(folder).weight_files) == 2
        assert len(hub.gets("model.safetensors.index.json")) == 1

    def test_an_index_that_names_more_than_there_is_is_refused(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        sharded = _sharded(model)
        del sharded["model-00002-of-00002.safetensors"]
        for index in (sharded["model.safetensors.index.json"], b"[]"):
            hub.put(REPO, sharded | {"model.safetensors.index.json": index})
            assert "another revision" in refused("index").remedy
        assert not hub.gets("model-00001-of-00002.safetensors")

    def test_an_index_cannot_ask_for_a_pickle(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        index = json.dumps({"weight_map": {"a": "pytorch_model.bin"}}).encode()
        del model[WEIGHTS]
        pickled = {"pytorch_model.bin": b"x", "model.safetensors.index.json": index}
        hub.put(REPO, model | pickled)
        refused("does not hold as safetensors")
        assert not hub.gets("pytorch_model.bin")

    def test_pickles_alone_are_refused_before_anything_comes(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        del model[WEIGHTS]
        hub.put(REPO, model | {"pytorch_model.bin": b"x" * 100})
        problem = refused("only as pickle")
        assert "weights_only=True" in problem.remedy
        assert f"hf download {REPO}" in problem.remedy
        assert not [one for one in hub.asked if "resolve" in one.path]

    def test_no_weights_and_strange_names_are_told(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        del model[WEIGHTS]
        hub.put(REPO, model)
        refused("no weights of a language model")
        hub.put(REPO, model | {"weights.safetensors": b"x"})
        refused(r"weights\.safetensors, under a name")

    def test_what_leads_out_of_the_cache_is_not_fetched(
        self, hub: HubStandIn, model: dict[str, bytes], tmp_path: Path
    ) -> None:
        odd = ["../../../evil.json", "/evil.json", "a\\evil.json", "C:evil.json", "./x.json", "."]
        hub.put(REPO, model | dict.fromkeys(odd, b"evil"))
        assert contents(get()) == model
        assert not list(tmp_path.rglob("*evil*"))

    def test_a_hub_that_answers_nonsense_writes_nothing(
        self, hub: HubStandIn, model: dict[str, bytes], tmp_path: Path
    ) -> None:
        hub.revisions["main"] = "../../../../evil"
        refused("does not answer as the Hub does")
        hub.page = b"<html>Please log in</html>"
        assert "login" in refused("does not answer as the Hub does").remedy
        assert not list(tmp_path.rglob("*evil*"))

    def test_a_file_larger_than_the_hub_hands_out_in_one_piece_comes_in_parts(
        self, hub: HubStandIn, model: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        size = len(model[WEIGHTS])
        monkeypatch.setattr("app.library.hub_transfer.LARGEST", size - 1)
        monkeypatch.setattr("app.library.hub_transfer.PART", 8000)
        hub.next(WEIGHTS, cut=3000)
        assert contents(get()) == model
        ranges = [one.headers["range"] for one in hub.gets(WEIGHTS)]
        firsts = [0, *range(3000, size, 8000)]
        lasts = [7999, *(min(first + 8000, size) - 1 for first in firsts[1:])]
        assert size > 16_000
        assert ranges == [
            f"bytes={first}-{last}" for first, last in zip(firsts, lasts, strict=True)
        ]

    def test_a_large_file_that_is_not_handed_out_at_all_names_another_way(
        self, hub: HubStandIn, model: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.library.hub_transfer.LARGEST", len(model[WEIGHTS]) - 1)
        hub.always(WEIGHTS, status=400)
        assert f"hf download {REPO} {WEIGHTS}" in refused("by plain HTTP").remedy

    def test_room_on_the_disk_is_checked_first(
        self, hub: HubStandIn, model: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        needed = sum(map(len, model.values()))
        usage = shutil.disk_usage("/")._replace(free=needed - 1)
        monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
        problem = refused(f"{needed:,} bytes .* are needed .*{needed - 1:,} .* are free")
        assert "HF_HUB_CACHE" in problem.remedy
        assert not [one for one in hub.asked if "resolve" in one.path]


def _sharded(model: dict[str, bytes]) -> dict[str, bytes]:
    """The model with its weights in two files, and a third that the index does not name."""
    tensors = load(model[WEIGHTS])
    names = [f"model-{number:05}-of-00002.safetensors" for number in (1, 2)]
    places = dict(zip(sorted(tensors), names, strict=True))
    index = json.dumps({"metadata": {}, "weight_map": places}).encode()
    shards = {place: save({name: tensors[name]}) for name, place in places.items()}
    rest = {name: content for name, content in model.items() if name != WEIGHTS}
    more = {"extra-00003.safetensors": b"x", "model.safetensors.index.json": index}
    return rest | shards | more


class TestGguf:
    @pytest.fixture
    def gguf(self, tmp_path: Path, tiny_gguf: Make) -> bytes:
        return tiny_gguf(tmp_path / "tiny.gguf").read_bytes()

    def test_the_only_one_is_fetched_and_converted(self, hub: HubStandIn, gguf: bytes) -> None:
        hub.put(REPO, {"README.md": b"# x", "tiny.Q8_0.gguf": gguf})
        assert is_download_needed(entry())
        folder = get()
        assert check(folder).requantised_from == "Q8_0"
        assert locate(entry()) == folder
        hub.stop()
        shutil.rmtree(folder)
        assert not is_download_needed(entry())
        assert get() == folder

    def test_a_named_one_is_fetched_from_among_others(self, hub: HubStandIn, gguf: bytes) -> None:
        hub.put(REPO, {"a.gguf": b"x", "Q8/b.gguf": gguf, WEIGHTS: b"x", "config.json": b"{}"})
        assert check(get(entry("Q8/b.gguf"))).requantised_from == "Q8_0"
        assert not hub.gets("a.gguf") + hub.gets(WEIGHTS)

    def test_several_and_missing_ones_and_parts_are_refused(self, hub: HubStandIn) -> None:
        hub.put(REPO, {"a.gguf": b"x", "b.gguf": b"x"})
        assert "`file:`" in refused(r"several GGUF files: a\.gguf, b\.gguf").remedy
        assert "a.gguf, b.gguf" in refused(r"no file c\.gguf", entry("c.gguf")).remedy
        hub.put(REPO, {"c-00001-of-00002.gguf": b"x"})
        refused("one part of several")


class TestCuts:
    def test_a_cut_transfer_goes_on_by_range_and_fetches_no_byte_twice(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        weights = model[WEIGHTS]
        for cut in (5000, 0, 3000):
            hub.next(WEIGHTS, cut=cut)
        reports: list[Progress] = []
        assert contents(get(reports=reports)) == model
        ranges = [one.headers.get("range") for one in hub.gets(WEIGHTS)]
        assert ranges == [None, "bytes=5000-", "bytes=5000-", "bytes=8000-"]
        assert max(one.done for one in reports) == sum(map(len, model.values()))
        assert sha256(weights) in {path.name for path in cached()}

    def test_a_line_that_is_cut_often_but_brings_something_is_not_given_up(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        for _ in range(12):
            hub.next(WEIGHTS, cut=1000)
        assert contents(get()) == model
        assert hub.gets(WEIGHTS)[-1].headers["range"] == "bytes=12000-"

    def test_a_server_that_ignores_range_is_read_from_the_beginning(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        hub.next(WEIGHTS, cut=5000)
        hub.next(WEIGHTS, whole=True)
        reports: list[Progress] = []
        assert contents(get(reports=reports)) == model
        assert len(hub.gets(WEIGHTS)) == 2
        assert reports[-1].done == reports[-1].total

    def test_a_rest_that_is_too_long_is_thrown_away(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        rest = repository_folder(REPO) / "blobs" / f"{sha256(model[WEIGHTS])}.incomplete"
        rest.parent.mkdir(parents=True)
        rest.write_bytes(bytes(1 << 20))
        assert contents(get()) == model
        assert [one.headers.get("range") for one in hub.gets(WEIGHTS)] == [None]
        assert not rest.exists()

    def test_a_rest_that_is_whole_is_only_checked(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        rest = repository_folder(REPO) / "blobs" / f"{sha256(model[WEIGHTS])}.incomplete"
        rest.parent.mkdir(parents=True)
        rest.write_bytes(model[WEIGHTS])
        assert contents(get()) == model
        assert not hub.gets(WEIGHTS)

    def test_a_connection_that_stays_cut_is_told_and_what_came_stays(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        hub.next(WEIGHTS, cut=4000)
        hub.always(WEIGHTS, cut=0)
        problem = refused("cannot be reached")
        assert "goes on where it stopped" in problem.remedy
        (partial,) = cached("*.incomplete")
        assert partial.name == f"{sha256(model[WEIGHTS])}.incomplete"
        assert partial.read_bytes() == model[WEIGHTS][:4000]
        assert locate(entry()) is None
        assert find_in_cache(HubSource(REPO)) is None
        hub.mend()
        asked = len(hub.gets(WEIGHTS))
        get()
        assert [one.headers.get("range") for one in hub.gets(WEIGHTS)[asked:]] == ["bytes=4000-"]

    def test_a_wrong_content_of_the_right_size_is_found_and_removed(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        spoilt = bytearray(model[WEIGHTS])
        spoilt[-1] ^= 1
        hub.next(WEIGHTS, content=bytes(spoilt))
        problem = refused("another content than the Hub says")
        assert sha256(model[WEIGHTS]) in problem.message
        assert sha256(bytes(spoilt)) in problem.message
        assert cached(f"{sha256(model[WEIGHTS])}*") == []
        assert contents(get()) == model

    def test_a_page_in_the_place_of_a_small_file_is_found(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        page = b"<html>".ljust(len(model["config.json"]))
        hub.next("config.json", content=page)
        refused(r"config\.json .* another content")

    @pytest.mark.parametrize(("size", "said"), [(-7, "ends after"), (7, "is longer")])
    def test_a_file_of_another_length_than_told_is_found_and_removed(
        self, hub: HubStandIn, model: dict[str, bytes], size: int, said: str
    ) -> None:
        weights = model[WEIGHTS]
        hub.always(WEIGHTS, content=weights[:size] if size < 0 else weights + bytes(size))
        problem = refused(said)
        assert f"{len(weights):,} bytes" in problem.message
        assert cached(f"{sha256(weights)}*") == []


class TestRefusals:
    def test_a_gated_model_says_how_to_get_in(
        self, hub: HubStandIn, model: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hub.gated.add(REPO)
        assert "foretoken models login" in refused("is gated").remedy
        monkeypatch.setenv("HF_TOKEN", "hf_wrong_token")
        assert "HF_TOKEN" in refused("does not accept the token").remedy
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        hub.refused.add(REPO)
        assert "wait for the answer" in refused("not been let in").remedy
        hub.refused.clear()
        assert contents(get()) == model

    def test_what_is_not_there_is_told_apart(self, hub: HubStandIn) -> None:
        assert "private" in refused("knows no org/name").message
        hub.put(REPO, {"config.json": b"{}"})
        refused("no revision v9", entry(revision="v9"))
        hub.put(REPO, {WEIGHTS: b"x"})
        hub.next(WEIGHTS, status=404)
        refused("lists is not there")
        hub.next(WEIGHTS, status=403)
        refused("does not allow")

    def test_a_name_that_cannot_be_is_told(self, hub: HubStandIn) -> None:
        refused("no name that the Hub", ModelEntry("a", "A", HubSource("-a./b--c")))

    def test_a_busy_hub_is_waited_for_as_long_as_it_says(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        hub.next("list", status=503)
        hub.next("list", status=429, headers={"Retry-After": "0"})
        hub.next(WEIGHTS, status=429, headers={"Retry-After": "1"})
        hub.next(WEIGHTS, status=500)
        reports: list[Progress] = []
        begun = time.monotonic()
        assert contents(get(reports=reports)) == model
        assert time.monotonic() - begun >= 1
        told = {one.stage for one in reports}
        assert "The Hub asks for patience; the next attempt comes after 1 s" in told

    def test_what_a_single_file_waits_for_does_not_hide_the_download(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        held = threading.Event()
        hub.next("config.json", status=429, headers={"Retry-After": "1"})
        hub.next(WEIGHTS, cut=500, hold=held)
        seen: list[str] = []

        def report(progress: Progress) -> None:
            seen.append(progress.stage)
            if len(seen) > 8:
                held.set()

        fetch(entry(), report, pause=lambda: None)
        assert not [stage for stage in seen[:8] if "attempt" in stage]
        assert "Downloading org/name" in seen[:8]

    def test_a_hub_that_stays_busy_is_given_up(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        hub.always("list", status=429, headers={"ratelimit": '"api";r=0;t=0'})
        assert "foretoken models login" in refused("no further requests for now").remedy
        assert len(hub.asked) == 5
        hub.always("list", status=502)
        refused("trouble of its own .status 502")

    @pytest.mark.parametrize(
        "headers", [{"Retry-After": "3600"}, {"ratelimit": '"api";r=0;t=3600', "Retry-After": "1"}]
    )
    def test_a_long_wait_is_told_instead_of_waited(
        self, hub: HubStandIn, model: dict[str, bytes], headers: dict[str, str]
    ) -> None:
        hub.always("config.json", status=429, headers=headers)
        refused("for 60 minutes")

    def test_without_a_network_it_says_so_at_once_and_the_cache_still_works(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        folder = get()
        hub.stop()
        other = ModelEntry("other", "Other", HubSource("org/other"))
        begun = time.monotonic()
        problem = refused("offline", other)
        assert time.monotonic() - begun < 2
        assert "127.0.0.1" in problem.message
        assert "go on working" in problem.remedy
        assert get() == folder

    def test_offline_by_order_asks_nobody(
        self, hub: HubStandIn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        assert "Unset" in refused("HF_HUB_OFFLINE").remedy
        assert hub.asked == []

    def test_a_disk_that_fills_up_is_told(
        self, hub: HubStandIn, model: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        refused("disk is full")

    def test_a_cache_that_cannot_be_written_is_told(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        repository_folder(REPO).parent.touch()
        refused("could not be put into")


class TestPause:
    def test_a_stopped_fetch_goes_on_where_it_was(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        held = threading.Event()
        hub.next(WEIGHTS, cut=6000, hold=held)
        partial = repository_folder(REPO) / "blobs" / f"{sha256(model[WEIGHTS])}.incomplete"
        reports: list[Progress] = []
        rest = sum(map(len, model.values())) - len(model[WEIGHTS])

        def pause() -> None:
            if reports and reports[-1].done >= rest + 6000:
                held.set()
                raise Cancelled

        with pytest.raises(Cancelled):
            fetch(entry(), reports.append, pause=pause)
        assert partial.read_bytes() == model[WEIGHTS][:6000]
        assert locate(entry()) is None
        again: list[Progress] = []
        assert contents(get(reports=again)) == model
        assert hub.gets(WEIGHTS)[-1].headers["range"] == "bytes=6000-"
        # What was here from the beginning is no speed: it is counted at once.
        assert next(one.done for one in again if one.total) >= rest + 6000
        assert again[-1].done == again[-1].total == rest + len(model[WEIGHTS])
        assert len(hub.gets("config.json")) == 1

    def test_a_connection_that_says_nothing_more_can_be_stopped_and_gone_on_from_at_once(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        hub.next(WEIGHTS, cut=6000, hold=threading.Event())
        rest = sum(map(len, model.values())) - len(model[WEIGHTS])
        reports: list[Progress] = []

        def pause() -> None:
            if reports and reports[-1].done >= rest + 6000:
                raise Cancelled

        with pytest.raises(Cancelled):
            fetch(entry(), reports.append, pause=pause)
        begun = time.monotonic()
        assert contents(get()) == model
        assert time.monotonic() - begun < 5
        assert hub.gets(WEIGHTS)[-1].headers["range"] == "bytes=6000-"

    def test_a_wait_can_be_stopped(self, hub: HubStandIn, model: dict[str, bytes]) -> None:
        hub.always("list", status=429, headers={"Retry-After": "200"})
        reports: list[Progress] = []

        def pause() -> None:
            if reports and "200 s" in reports[-1].stage:
                raise Cancelled

        begun = time.monotonic()
        with pytest.raises(Cancelled):
            fetch(entry(), reports.append, pause=pause)
        assert time.monotonic() - begun < 5

    def test_a_file_that_another_program_downloads_is_waited_for(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        cache = repository_folder(REPO).parent
        locks = cache / ".locks" / "models--org--name"
        locks.mkdir(parents=True)
        blob = repository_folder(REPO) / "blobs" / sha256(model[WEIGHTS])
        lock = FileLock(locks / f"{blob.name}.lock")
        lock.acquire()

        def pause() -> None:
            if lock.is_locked and any("another program" in one.stage for one in reports):
                blob.write_bytes(model[WEIGHTS])
                lock.release()

        reports: list[Progress] = []
        folder = fetch(entry(), reports.append, pause=pause)
        assert contents(folder) == model
        assert not hub.gets(WEIGHTS)


class TestToken:
    def test_it_goes_to_the_hub_and_to_no_other_host(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        hub.gated.add(REPO)
        keep_token(TOKEN)
        assert contents(get()) == model
        told = {(one.server, one.headers.get("authorization")) for one in hub.asked}
        assert told == {("hub", f"Bearer {TOKEN}"), ("storage", None)}

    def test_it_does_not_follow_a_list_that_is_elsewhere(
        self, hub: HubStandIn, model: dict[str, bytes]
    ) -> None:
        keep_token(TOKEN)
        moved = f"{hub.storage}/api/models/{REPO}/revision/main"
        hub.next("list", status=302, headers={"Location": moved})
        get()
        first, second = hub.asked[:2]
        assert (first.server, first.headers.get("authorization")) == ("hub", f"Bearer {TOKEN}")
        assert (second.server, second.headers.get("authorization")) == ("storage", None)

    def test_the_environment_goes_before_the_keyring(
        self, hub: HubStandIn, model: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keep_token("hf_other_token")
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        get()
        assert hub.asked[0].headers["authorization"] == f"Bearer {TOKEN}"

    def test_a_token_of_the_hubs_own_program_serves_too(
        self, hub: HubStandIn, model: dict[str, bytes], tmp_path: Path
    ) -> None:
        (tmp_path / "no token").write_text(TOKEN, encoding="utf-8")
        get()
        assert hub.asked[0].headers["authorization"] == f"Bearer {TOKEN}"

    def test_neither_it_nor_the_keys_of_other_hosts_are_told(
        self, hub: HubStandIn, model: dict[str, bytes], caplog: pytest.LogCaptureFixture
    ) -> None:
        keep_token(TOKEN)
        hub.always(WEIGHTS, status=500)
        caplog.set_level("DEBUG")
        problem = refused("trouble of its own")
        for said in (str(problem), caplog.text):
            assert TOKEN not in said
        assert "secret-key" not in str(problem)
