"""A trained head is offered in the person's own catalogue, and all that stood there stays."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models

from app import files
from app.library.catalogue import Catalogue, load_catalogue
from app.library.entries import FolderSource, HubSource, ModelEntry
from app.library.own_catalogue import offer_head, offer_pair
from app.run.problems import Problem

OWN = """\
# What I tried in May.
default: mine          # opens first

models:
  # from the old laptop
  "mine":
    title: Mine
    source: {folder: ./mine}
  copy: &copy
    title: Copy
    source:
      folder: '/models/copy'   # a copy
pairs:
    mine:
        title: Mine, n-gram
        target: mine
        method: ngram
# the end
"""


@pytest.fixture
def file(home: Path) -> Path:
    made = files.user_catalogue()
    made.parent.mkdir(parents=True)
    return made


@pytest.fixture
def head(tmp_path: Path) -> Path:
    folder = tmp_path / "a: head, №1" / "head"
    folder.mkdir(parents=True)
    return folder


def catalogue() -> Catalogue:
    """As the window reads it."""
    return load_catalogue([files.shipped_catalogue(), files.user_catalogue()])


def offered(file: Path, head: Path, target: str = "embedded") -> str:
    """Offers the head; checks that a pair with it is what came of it, and nothing is faulty."""
    before = catalogue()
    name = offer_head(file, before, target, head)
    found = catalogue()
    assert [fault.message for fault in found.faults] == [one.message for one in before.faults]
    pair = found.pair(name)
    assert pair.method == "ngram-else-head"
    assert pair.head is not None
    source = found.model(pair.head).source
    assert isinstance(source, FolderSource)
    assert Path(source.path) == head.resolve()
    assert set(before.models) <= set(found.models)
    assert all(pair in found.pairs for pair in before.pairs)
    assert found.default == before.default
    assert sorted(os.listdir(file.parent)) == [file.name]
    return name


def stays(before: str, after: str) -> bool:
    """Whether all lines of a text stand in another, in their order."""
    lines = iter(after.splitlines())
    return all(line in lines for line in before.splitlines())


def test_a_file_is_made_where_there_is_none(home, head):
    name = offered(files.user_catalogue(), head)
    assert name == "smollm2-135m-instruct-head-2"  # the shipped one has the first name
    assert catalogue().pair(name).target == "smollm2-135m-instruct"


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "# no line end", "\n\n"])
def test_an_empty_file_is_added_to(file, head, text):
    file.write_text(text)
    offered(file, head)
    assert file.read_text().startswith(text)


def test_all_that_a_person_wrote_stays_to_the_letter(file, head):
    file.write_text(OWN)
    offered(file, head)
    new = file.read_text()
    assert stays(OWN, new)
    assert '  # from the old laptop\n  "mine":\n' in new
    assert new.count("\n") == OWN.count("\n") + 4 + 6


@pytest.mark.parametrize(
    "text",
    [
        "models:\n",
        "models:",
        "models: # mine\n\n# more\n",
        "pairs:\n  # none\n",
        "default: embedded\n",
        "default: embedded",
        "  default: embedded\n  models:\n    a:\n      title: A\n      source: {folder: /a}\n",
    ],
)
def test_sections_that_are_empty_or_indented_are_added_to(file, head, text):
    file.write_text(text)
    offered(file, head)
    assert stays(text, file.read_text())


def test_line_ends_and_the_mark_at_the_beginning_stay(file, head):
    file.write_bytes(b"\xef\xbb\xbf" + OWN.replace("\n", "\r\n").encode())
    offered(file, head)
    written = file.read_bytes()
    assert written.startswith(b"\xef\xbb\xbf# What")
    assert written.count(b"\n") == written.count(b"\r\n") > OWN.count("\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'models:\n  a:\n    source: {folder: "C:\\Users\\me"}\n', "line 3, column"),
        (b"models:\n\ta: 1\n", "line 2, column 1"),
        (b"- a list\n", "line 1, column 1"),
        (b"title: \xff\n", "not UTF-8"),
        (b"a: 1\n---\nb: 2\n", "line 2"),
        (b"&a [*a]\n", "line 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_as_it_is(file, head, text, words):
    file.write_bytes(text)
    with pytest.raises(Problem) as caught:
        offer_head(file, catalogue(), "embedded", head)
    assert words in str(caught.value)
    assert caught.value.remedy
    assert file.read_bytes() == text
    assert os.listdir(file.parent) == [file.name]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("models: {}\n", "models:"),
        ("models: {}  # none yet\r\npairs: {}", "# none yet"),
        ("models: ~\npairs: null # none\n", "# none"),
        ("{default: embedded}\n", "default: embedded}\n"),
        ("{models: {}, default: embedded}", "default: embedded}"),
        ("models: {own: {title: Own, source: {folder: '/o'}}} # one\n", "/o'}}} # one\n"),
        ("models: {\n  own: {title: Own, source: {folder: '/o'}},\n}\n", "/o'}},\n}\n"),
        ("models:\n  own: {title: Own, source: {folder: /o}}\npairs: {}\n", "folder: /o}}\n"),
    ],
)
def test_sections_in_braces_are_added_to(file, head, text, kept):
    file.write_bytes(text.encode())
    offered(file, head)
    assert kept in file.read_bytes().decode()


@pytest.mark.parametrize("text", ["default: embedded\n...\n", "models: &a {}\npairs: *a\n"])
def test_what_cannot_be_added_to_is_left_as_it_is_with_the_lines_to_add(file, head, text):
    file.write_text(text)
    with pytest.raises(Problem) as caught:
        offer_head(file, catalogue(), "embedded", head)
    assert "method: ngram-else-head" in caught.value.remedy
    assert file.read_text() == text


def test_one_faulty_entry_hinders_nothing_and_stays(file, head):
    text = "models:\n  bad:\n    titel: Bad\n"
    file.write_text(text)
    offered(file, head)
    assert "  bad:\n    titel: Bad\n" in file.read_text()


def test_a_name_that_is_taken_is_not_taken_again(file, head, tmp_path):
    taken = "smollm2-135m-instruct-head"
    file.write_text(f"models:\n  {taken}: 3\npairs:\n  {taken}-2: 4\n")
    assert offered(file, head) == f"{taken}-3"
    other = tmp_path / "other"
    other.mkdir()
    assert offered(file, other) == f"{taken}-4"
    titles = [pair.title for pair in catalogue().pairs]
    assert len(set(titles)) == len(titles)


def test_a_head_that_is_offered_is_not_offered_again(file, head):
    name = offered(file, head)
    written = file.read_bytes()
    assert offer_head(file, catalogue(), "embedded", head) == name
    assert offer_head(file, catalogue(), "smollm2-135m-instruct", head) == name
    assert file.read_bytes() == written


def test_a_target_that_is_a_folder_gets_an_entry_once(file, head, tmp_path):
    target = tmp_path / "my-llama"
    target.mkdir()
    name = offered(file, head, str(target))
    assert name == "my-llama-head"
    other = tmp_path / "other"
    other.mkdir()
    again = offered(file, other, str(target))
    assert catalogue().pair(again).target == catalogue().pair(name).target == "my-llama"


def test_a_target_that_is_a_folder_takes_no_models_name(file, head, tmp_path):
    target = tmp_path / "smollm2-135m-instruct"
    target.mkdir()
    name = offered(file, head, str(target))
    assert catalogue().pair(name).target == "smollm2-135m-instruct-2"


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_and_the_rights_of_its_file_stay(file, head, tmp_path):
    real = tmp_path / "dotfiles.yaml"
    real.write_text(OWN)
    real.chmod(0o640)
    file.symlink_to(real)
    offered(file, head)
    assert file.is_symlink()
    assert "ngram-else-head" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_folder_in_its_place_is_told(file, head):
    file.mkdir()
    with pytest.raises(Problem, match="cannot be read"):
        offer_head(file, Catalogue(), str(head), head)


def found_model(folder: Path, name: str) -> ModelEntry:
    """A model that the catalogue does not offer."""
    return ModelEntry(name, name.title(), FolderSource(str(folder / name)))


def test_two_models_that_were_found_become_a_pair_with_an_entry_each(file, tmp_path):
    file.write_text(OWN)
    target, draft = found_model(tmp_path, "big"), found_model(tmp_path, "small")
    name = offer_pair(file, catalogue(), target, draft, role="draft")
    found = catalogue()
    assert found.faults == ()
    pair = found.pair(name)
    assert (name, pair.title) == ("big-with-small", "Big, draft Small")
    assert (pair.target, pair.draft, pair.method) == ("big", "small", "draft-model")
    assert {found.model("big").source, found.model("small").source} == {target.source, draft.source}
    assert stays(OWN, file.read_text())


@pytest.mark.parametrize(("shown", "method"), [("ab", "draft-model"), ("ba", "tli"), ("bx", "tli")])
def test_the_vocabulary_of_a_draft_chooses_the_method(file, make_folder, tmp_path, shown, method):
    for name, alphabet in (("big", "ab"), ("small", shown)):
        vocabulary = {letter: id_ for id_, letter in enumerate(alphabet)}
        make_folder(name, tokenizer=Tokenizer(models.BPE(vocabulary, [])))
    target, draft = found_model(tmp_path, "big"), found_model(tmp_path, "small")
    name = offer_pair(file, catalogue(), target, draft, role="draft")
    assert catalogue().faults == ()
    pair = catalogue().pair(name)
    assert pair.method == method


def test_a_draft_that_shares_next_to_nothing_writes_freely(file, make_folder, tmp_path):
    for name, alphabet in (("big", "abc"), ("small", "xay")):
        vocabulary = {letter: id_ for id_, letter in enumerate(alphabet)}
        make_folder(name, tokenizer=Tokenizer(models.BPE(vocabulary, [])))
    target, draft = found_model(tmp_path, "big"), found_model(tmp_path, "small")
    name = offer_pair(file, catalogue(), target, draft, role="draft")
    assert catalogue().faults == ()
    pair = catalogue().pair(name)
    assert pair.method == "slem"


def test_a_target_by_itself_gets_a_pair_that_copies(file, tmp_path):
    name = offer_pair(file, catalogue(), found_model(tmp_path, "big"), None, role=None)
    pair = catalogue().pair(name)
    assert (name, pair.target, pair.method, pair.models) == ("big-ngram", "big", "ngram", ("big",))


def test_models_of_the_catalogue_get_no_second_entry(file):
    target, head = load_catalogue([files.shipped_catalogue()]).models_of("embedded")
    file.write_text("models:\n")
    name = offer_pair(file, catalogue(), target, target, role="draft")
    assert name == "embedded-nf4-draft"  # it is offered already
    assert offer_pair(file, catalogue(), target, head, role="head") == "embedded"
    assert file.read_text() == "models:\n"


def test_a_target_has_the_pair_that_opens_first(file):
    target, _ = load_catalogue([files.shipped_catalogue()]).models_of("embedded")
    assert offer_pair(file, catalogue(), target, None, role=None) == "embedded"
    file.write_text("default: embedded-nf4-draft\n")
    assert offer_pair(file, catalogue(), target, None, role=None) == "embedded-nf4-draft"


def test_a_model_of_the_hub_is_written_as_such(file):
    entry = ModelEntry("x", "org/x", HubSource("org/x", "main"))
    name = offer_pair(file, catalogue(), entry, None, role=None)
    assert catalogue().model(catalogue().pair(name).target).source == entry.source


def test_no_pair_is_added_to_a_file_that_cannot_be_read(file, tmp_path):
    file.write_bytes(b"models:\n\ta: 1\n")
    with pytest.raises(Problem, match="line 2, column 1"):
        offer_pair(file, catalogue(), found_model(tmp_path, "big"), None, role=None)
    assert file.read_bytes() == b"models:\n\ta: 1\n"
