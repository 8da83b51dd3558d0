"""The catalogue: what ships is sound, and no file a person writes can stop the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import files
from app.library.catalogue import Catalogue, load_catalogue
from app.library.entries import FolderSource, HubSource, ModelEntry, ResourceSource, WheelSource
from app.library.shape import Shape
from app.run.problems import Problem

GOOD = """
models:
  good:
    title: Good
    source: {folder: /models/good}
pairs:
  good-pair: {title: Good pair, target: good, method: ngram}
"""


def load(tmp_path: Path, text: str | bytes, *, before: str | None = None) -> Catalogue:
    file = tmp_path / "models.yaml"
    file.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    if before is None:
        return load_catalogue([file])
    first = tmp_path / "shipped.yaml"
    first.write_text(before, encoding="utf-8")
    return load_catalogue([first, file])


def test_what_ships_is_sound() -> None:
    catalogue = load_catalogue([files.shipped_catalogue()])
    assert catalogue.faults == ()
    assert catalogue.default == "embedded"
    assert [pair.name for pair in catalogue.pairs if pair.tested] == [
        "embedded",
        "embedded-nf4-draft",
    ]
    embedded, copy = catalogue.pair("embedded"), catalogue.pair("embedded-nf4-draft")
    assert (embedded.method, embedded.draft, embedded.draft_length) == ("ngram-else-head", None, 8)
    assert isinstance(catalogue.model(embedded.head).source, ResourceSource)
    assert (copy.method, copy.draft, copy.draft_precision) == ("draft-model", copy.target, "nf4")
    assert isinstance(catalogue.model(embedded.target).source, WheelSource)


def shipped() -> dict[str, ModelEntry]:
    return {model.name: model for model in load_catalogue([files.shipped_catalogue()]).models}


# The numbers in the safetensors files of each model, as its hub counts them.
COUNTED = {
    "smollm2-135m-instruct": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
    "smollm3-3b": 3_075_098_624,
    "gemma-3-270m": 268_098_176,
    "gemma-3-1b": 999_885_952,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.3-70b": 70_553_706_496,
    "mistral-7b": 7_248_023_552,
    "mistral-small-24b": 23_572_403_200,
}
# These two files hold the table of embeddings a second time, as the output layer that it is.
STORED_TWICE = {"qwen3-0.6b": 751_632_384, "qwen3-1.7b": 2_031_739_904}
# Millions without the embeddings, of the language part: Gemma 3 technical report, table 1.
WITHOUT_EMBEDDINGS = {"gemma-3-4b": 3209, "gemma-3-12b": 10759, "gemma-3-27b": 25600}


def parameters(name: str, shape: Shape) -> int:
    """Every weight of a decoder of the Llama kind, matrix by matrix; what its family adds."""
    inner, shared = shape.heads * shape.head_size, shape.key_value_heads * shape.head_size
    queries = inner * shape.hidden
    keys_and_values = 2 * shared * shape.hidden
    output = shape.hidden * inner
    gate_up_down = 3 * shape.hidden * shape.intermediate
    norms = 2 * shape.hidden
    if name.startswith("qwen2.5"):  # biases of queries, keys and values
        norms += inner + 2 * shared
    if name.startswith(("qwen3", "gemma-3")):  # norms of a head's queries and keys
        norms += 2 * shape.head_size
    if name.startswith("gemma-3"):  # norms behind attention and feed-forward, too
        norms += 2 * shape.hidden
    layer = queries + keys_and_values + output + gate_up_down + norms
    tables = 1 if shape.tied else 2
    return tables * shape.vocabulary * shape.hidden + shape.layers * layer + shape.hidden


def test_parameters_follow_from_the_sizes_and_are_the_published_ones() -> None:
    shapes = {name: model.shape for name, model in shipped().items() if model.shape is not None}
    assert shapes.keys() == COUNTED.keys() | STORED_TWICE.keys() | WITHOUT_EMBEDDINGS.keys()
    for name, shape in shapes.items():
        assert shape.parameters == parameters(name, shape), name
        embeddings = shape.vocabulary * shape.hidden
        if name in WITHOUT_EMBEDDINGS:
            millions = (shape.parameters - embeddings) / 1e6
            assert round(millions) == WITHOUT_EMBEDDINGS[name], name
        else:
            twice = embeddings if name in STORED_TWICE else 0
            assert shape.parameters + twice == (COUNTED | STORED_TWICE)[name], name


def test_what_is_fetched_has_two_bytes_for_every_counted_number() -> None:
    counted = COUNTED | STORED_TWICE
    for name, model in shipped().items():
        if model.download_bytes and name in counted and isinstance(model.source, HubSource):
            header = model.download_bytes - 2 * counted[name]
            assert 0 <= header < 100_000, name


def test_every_fact_that_ships_says_where_it_was_read() -> None:
    for model in shipped().values():
        facts = (model.licence, model.gated, model.download_bytes, model.shape)
        if any(fact not in ("", None) for fact in facts):
            assert model.facts_from, model.name


def test_no_pair_that_ships_is_said_to_be_tested_but_what_is_embedded() -> None:
    catalogue = load_catalogue([files.shipped_catalogue()])
    for pair in catalogue.pairs:
        sources = [catalogue.model(name).source for name in pair.models]
        assert pair.tested == (not any(isinstance(one, HubSource) for one in sources)), pair.name


def test_a_drafts_model_is_smaller_and_of_the_targets_kind() -> None:
    catalogue = load_catalogue([files.shipped_catalogue()])
    for pair in catalogue.pairs:
        if pair.draft is None or pair.draft == pair.target:
            continue
        target, draft = catalogue.model(pair.target).shape, catalogue.model(pair.draft).shape
        assert target is not None
        assert draft is not None
        assert 3 * draft.parameters / 2 < target.parameters, pair.name
        # Padding differs in Qwen2.5 and Gemma 3, by less than 2 %.
        assert abs(target.vocabulary - draft.vocabulary) < 0.02 * target.vocabulary, pair.name


def test_a_published_head_is_a_head_for_pairs(tmp_path: Path) -> None:
    text = GOOD + "  eagle:\n    title: B\n    target: good\n    method: head\n    head: far\n"
    text = text.replace("pairs:", "  far: {title: Far, kind: eagle-3, source: {hub: a/b}}\npairs:")
    catalogue = load(tmp_path, text)
    assert catalogue.faults == ()
    assert catalogue.model(catalogue.pair("eagle").head or "").kind == "eagle-3"


def test_the_examples_in_what_ships_can_be_used(tmp_path: Path) -> None:
    commented = files.shipped_catalogue().read_text(encoding="utf-8").splitlines()
    examples = [line[4:] for line in commented if line.startswith("#   ")]
    text = "\n".join(line for line in examples if line not in ("models:", "pairs:"))
    models, pairs = text.split("  my-pair:")
    catalogue = load(tmp_path, f"models:\n{models}\npairs:\n  my-pair:{pairs}")
    assert catalogue.faults == ()
    assert catalogue.default == "my-pair"
    assert catalogue.model("my-draft").source == HubSource("organisation/name")


def test_later_files_win(tmp_path: Path) -> None:
    own = """
default: own
models:
  good: {title: Mine, source: {folder: /elsewhere}}
pairs:
  own: {title: Own, target: good, method: ngram, draft_length: 7}
"""
    catalogue = load(tmp_path, own, before=GOOD)
    assert catalogue.faults == ()
    assert catalogue.model("good").title == "Mine"
    assert [pair.name for pair in catalogue.pairs] == ["good-pair", "own"]
    assert catalogue.default == "own"


def test_a_relative_folder_lies_beside_the_file(tmp_path: Path) -> None:
    text = "models: {a: {title: A, source: {folder: sub/a}}, b: {title: B, source: {folder: ~/b}}}"
    catalogue = load(tmp_path, text)
    assert catalogue.model("a").source == FolderSource(str(tmp_path / "sub" / "a"))
    assert catalogue.model("b").source == FolderSource("~/b")


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    assert load_catalogue([tmp_path / "none.yaml"]) == Catalogue()


@pytest.mark.parametrize("text", ["", "# nothing\n", "models:\n", "\ufeff" + GOOD, "---\n" + GOOD])
def test_what_is_merely_empty_or_marked_is_no_fault(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text).faults == ()


ENTRY = "    title: T\n    source: {folder: /m}\n"
WHOLE_FILE = {
    "bad escape": ('models:\n  a:\n    source: {folder: "C:\\Users\\me"}', 3, 27, "single quotes"),
    "tab": ("models:\n\ta: 1", 2, 1, "spaces"),
    "colon": ("models:\n  a:\n    title: Qwen: small", 3, 16, "quotes"),
    "two documents": ("models:\n---\nmodels:\n", 2, 1, "---"),
    "control": ("models:\n  a\x07: 1", 2, 4, "Delete"),
    "list on top": ("- a\n- b\n", 1, 1, "models:"),
    "text on top": ("hello", 1, 1, "models:"),
    "loop": ("models: &a\n  b: *a\n", 1, 9, "Drop it"),
    "loop in a list": ("models:\n  a: &a [*a]\n", 2, 6, "Drop it"),
    "deep": ("models: " + "[" * 5000, 1, 1, "flatter"),
    "flood": (
        "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n"
            for a, b in zip("abcdefg", "bcdefgh", strict=True)
        ),
        1,
        14,
        "fewer",
    ),
    "unknown alias": ("models:\n  a: *nothing\n", 2, 6, "*"),
    "unclosed": ("models: {a: ", 1, 13, "quotes"),
}
ONE_ENTRY = {
    "good escape": ('    title: T\n    source: {folder: "D:\\tmp\\new"}\n', 4, 22, "single quotes"),
    "title no": ("    title: no\n    source: {folder: /m}\n", 3, 12, "quotes"),
    "version": (
        f"    title: T\n    source: {{wheel: w, version: 1.10, sha256: {'0' * 64}, member: m}}\n",
        4,
        33,
        "quotes",
    ),
    "number": ("    title: 012\n    source: {folder: /m}\n", 3, 12, "quotes"),
    "time": ("    title: 1:30\n    source: {folder: /m}\n", 3, 12, "quotes"),
    "date": ("    title: 2024-01-01\n    source: {folder: /m}\n", 3, 12, "quotes"),
    "impossible date": ("    title: 2024-99-99\n    source: {folder: /m}\n", 3, 5, ""),
    "null path": ("    title: T\n    source: {folder: ~}\n", 4, 22, "quotes"),
    "python": (
        "    title: !!python/object/apply:os.system [ls]\n    source: {folder: /m}\n",
        3,
        12,
        "!",
    ),
    "int tag": ("    title: !!int abc\n    source: {folder: /m}\n", 3, 5, ""),
    "unknown field": (ENTRY + "    licens: MIT\n", 5, 5, "licence"),
    "number as field": (ENTRY + "    12: MIT\n", 5, 5, "licence"),
    "unknown source field": ("    title: T\n    source: {folder: /m, reversion: x}\n", 4, 26, ""),
    "two sources": ("    title: T\n    source: {folder: /m, hub: a/b}\n", 4, 13, "folder"),
    "no source kind": ("    title: T\n    source: {}\n", 4, 13, "folder"),
    "source text": ("    title: T\n    source: /m\n", 4, 13, ""),
    "twice": ("    title: T\n    title: U\n    source: {folder: /m}\n", 4, 5, "Keep one"),
    "twice below": ("    title: T\n    source: {folder: /m, folder: /n}\n", 4, 26, "Keep one"),
    "no title": ("    source: {folder: /m}\n", 3, 5, "Add"),
    "own name": (ENTRY + "    name: other\n", 5, 11, "Remove"),
    "hub": ("    title: T\n    source: {hub: just-a-name}\n", 4, 19, "spelling"),
    "file outside": ("    title: T\n    source: {hub: a/b, file: ../x.gguf}\n", 4, 30, "spelling"),
    "file of another kind": ("    title: T\n    source: {hub: a/b, file: x.bin}\n", 4, 30, "spell"),
    "revision outside": (
        "    title: T\n    source: {hub: a/b, revision: a/../b}\n",
        4,
        34,
        "spell",
    ),
    "unknown size": (
        ENTRY + "    shape: {parameters: 1, layer: 2}\n",
        5,
        28,
        "layers",
    ),
    "size that is none": (ENTRY + "    shape: {parameters: 0}\n", 5, 25, "Correct"),
    "size missing": (ENTRY + "    shape: {parameters: 1}\n", 5, 12, "Add"),
    "kind": (ENTRY + "    kind: eagle-9\n", 5, 11, "Correct"),
    "checksum": (
        "    title: T\n    source: {wheel: w, version: v, sha256: abc, member: m}\n",
        4,
        44,
        "spelling",
    ),
    "merged nonsense": ("    <<: 3\n    title: T\n", 3, 9, ""),
}


@pytest.mark.parametrize("case", WHOLE_FILE)
def test_an_unreadable_file_is_one_fault_and_shipped_entries_stay(
    tmp_path: Path, case: str
) -> None:
    text, line, column, remedy = WHOLE_FILE[case]
    catalogue = load(tmp_path, text, before=GOOD)
    fault = catalogue.faults[0]
    assert (fault.line, fault.column) == (line, column), str(fault)
    assert fault.file == tmp_path / "models.yaml"
    assert fault.message
    assert remedy in fault.remedy
    assert catalogue.pair("good-pair").target == "good"


@pytest.mark.parametrize("case", ONE_ENTRY)
def test_a_bad_entry_is_a_fault_and_the_others_stay(tmp_path: Path, case: str) -> None:
    body, line, column, remedy = ONE_ENTRY[case]
    after = "  fine:\n    title: Fine\n    source: {folder: /fine}\n"
    catalogue = load(tmp_path, f"models:\n  bad:\n{body}{after}")
    assert [model.name for model in catalogue.models] == ["fine"]
    (fault,) = catalogue.faults
    assert (fault.line, fault.column) == (line, column), str(fault)
    assert remedy in fault.remedy
    assert fault.remedy


def test_keys_that_yaml_does_not_read_as_text_are_named(tmp_path: Path) -> None:
    catalogue = load(tmp_path, "models:\n  no:\n" + ENTRY + "  ? [x]\n  : 1\n  ok:\n" + ENTRY)
    assert [model.name for model in catalogue.models] == ["ok"]
    assert [(fault.line, "quotes" in fault.remedy) for fault in catalogue.faults] == [
        (2, True),
        (5, True),
    ]


def test_a_name_twice_keeps_the_first(tmp_path: Path) -> None:
    text = f"models:\n  a:\n{ENTRY}  a:\n{ENTRY.replace('T', 'U')}"
    catalogue = load(tmp_path, text)
    assert catalogue.model("a").title == "T"
    assert [(fault.line, fault.column) for fault in catalogue.faults] == [(5, 3)]


def test_a_section_that_is_none_is_named_with_the_closest(tmp_path: Path) -> None:
    (fault,) = load(tmp_path, "modles: {}").faults
    assert "Did you mean 'models'?" in fault.remedy


def test_anchors_and_merges_are_fine(tmp_path: Path) -> None:
    text = """
models:
  a: &a {title: A, source: {folder: /m}}
  b: {<<: *a, title: B}
"""
    catalogue = load(tmp_path, text)
    assert catalogue.faults == ()
    assert catalogue.model("b").title == "B"


def test_a_pair_of_unknown_models_is_a_fault_where_it_names_them(tmp_path: Path) -> None:
    text = (
        GOOD + "  bad:\n    title: B\n    target: god\n    method: draft-model\n    draft: none\n"
    )
    catalogue = load(tmp_path, text)
    assert [pair.name for pair in catalogue.pairs] == ["good-pair"]
    assert [(fault.line, fault.column) for fault in catalogue.faults] == [(10, 13), (12, 12)]
    assert "Did you mean 'good'?" in catalogue.faults[0].remedy


def test_a_pair_of_a_method_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    text = GOOD + "  bad:\n    title: B\n    target: good\n    method: n-gram\n"
    catalogue = load(tmp_path, text)
    assert [pair.name for pair in catalogue.pairs] == ["good-pair"]
    (fault,) = catalogue.faults
    assert "no method 'n-gram'" in fault.message
    assert "'ngram'" in fault.remedy
    assert (fault.line, fault.column) == (len(text.splitlines()), 13)


def test_a_draft_model_pair_needs_a_draft(tmp_path: Path) -> None:
    text = GOOD + "  bad: {title: B, target: good, method: draft-model}\n"
    (fault,) = load(tmp_path, text).faults
    assert "draft:" in fault.remedy


@pytest.mark.parametrize("wrong", ["draft_length: -1", "draft_length: 65", "draft_length: '4'"])
def test_values_out_of_range_are_faults(tmp_path: Path, wrong: str) -> None:
    text = GOOD + f"  bad:\n    title: B\n    target: good\n    method: ngram\n    {wrong}\n"
    (fault,) = load(tmp_path, text).faults
    assert (fault.line, fault.column) == (12, 19)


def test_an_unknown_default_falls_back(tmp_path: Path) -> None:
    catalogue = load(tmp_path, "default: nowhere\n", before="default: good-pair\n" + GOOD)
    assert catalogue.default == "good-pair"
    assert "nowhere" in catalogue.faults[0].message


def test_a_faulty_override_leaves_the_shipped_entry(tmp_path: Path) -> None:
    catalogue = load(tmp_path, "models: {good: {title: 1}}", before=GOOD)
    assert catalogue.model("good").title == "Good"
    assert len(catalogue.faults) == 1


def test_unreadable_bytes_and_places(tmp_path: Path) -> None:
    fault = load(tmp_path, "models:\n  é\n".encode("latin-1")).faults[0]
    assert (fault.line, fault.column, fault.remedy) == (2, 3, "Save it as UTF-8.")
    (fault,) = load_catalogue([tmp_path]).faults
    assert "cannot be read" in fault.message


def test_an_unknown_pair_names_the_closest(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"Did you mean 'good-pair'\? Known: good-pair"):
        load(tmp_path, GOOD).pair("good-par")


LINES = """
models:
pairs:
default: x
  a:
  b: 1
    title: T
    source: {folder: /m}
    source: *a
    target: a
    method: ngram
    draft_length: 1e999
    <<: *a

- x
&a
*a
!!python/object:x
!!int x
---
...
"
'
{
}
: :
? x
%YAML
#
>-
'\\x'
"""


@given(
    st.lists(st.sampled_from(LINES.split("\n")), max_size=12).map("\n".join)
    | st.text(max_size=60)
    | st.binary(max_size=60)
)
@settings(deadline=None)
def test_no_file_raises(tmp_path_factory: pytest.TempPathFactory, text: str | bytes) -> None:
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(raw)
    for fault in load_catalogue([file]).faults:
        assert fault.line >= 1
        assert fault.column >= 1
        assert fault.message
        assert fault.remedy


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("rule: vibes", "There is no rule 'vibes'"),
        ("draft_length_policy: vibes", "There is no draft length policy 'vibes'"),
        ("draft_length_options: {start: 2}", "has no option"),
        ("rule: lenience\n    rule_options: {lenience: 2.0}", "from 0.01 to 1"),
        ("rule_options: {lenience: 0.5}", "has no option"),
    ],
)
def test_a_pairs_rule_is_checked(tmp_path: Path, lines: str, said: str) -> None:
    text = GOOD + f"  bad:\n    title: B\n    target: good\n    method: ngram\n    {lines}\n"
    (fault,) = load(tmp_path, text).faults
    assert said in fault.message
    assert fault.line >= 12


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("early-exit", "{exit_layers: 4}", "no option 'exit_layers'"),
        ("early-exit", "{exit_layer: -1}", "from 0 to 1000"),
        ("ngram", "{match: middle}", "one of: last, first, most-frequent"),
    ],
)
def test_a_pairs_method_options_are_checked_where_they_stand(
    tmp_path: Path, method: str, options: str, said: str
) -> None:
    start = f"  bad:\n    title: B\n    target: good\n    method: {method}\n"
    text = GOOD + start + f"    method_options: {options}\n"
    (fault,) = load(tmp_path, text).faults
    assert said in fault.message
    assert (fault.line, fault.column) == (len(text.splitlines()), len("    method_options: {"))


def test_a_pair_brings_its_methods_options(tmp_path: Path) -> None:
    own = "  own: {title: O, target: good, method: early-exit, method_options: {exit_layer: 4}}\n"
    pair = load(tmp_path, GOOD + own).pair("own")
    assert (pair.method, pair.method_options) == ("early-exit", {"exit_layer": 4})


def test_a_pair_brings_its_rule(tmp_path: Path) -> None:
    lines = "rule: lenience, rule_options: {lenience: 1}"
    own = f"  own: {{title: O, target: good, method: ngram, {lines}}}\n"
    pair = load(tmp_path, GOOD + own).pair("own")
    assert (pair.rule, pair.rule_options) == ("lenience", {"lenience": 1})
