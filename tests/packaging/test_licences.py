"""Everything that is given to others comes with its licence, and what has none stops the build."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

import msgspec
import pytest
import yaml

import licences
from licences import Part, Unlicensed, notices, parts_of

ROOT = Path(__file__).resolve().parents[2]


def made(folder: Path, name: str, head: str, texts: dict[str, str]) -> metadata.Distribution:
    """A distribution that is installed in a folder."""
    place = folder / f"{name}-1.0.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{head}\n")
    for file, text in texts.items():
        (place / file).write_text(text)
    listed = [f"{place.name}/{file},," for file in ("METADATA", *texts)]
    (place / "RECORD").write_text("\n".join(listed))
    return next(iter(metadata.distributions(path=[str(folder)])))


def test_a_file_belongs_to_the_distribution_that_lists_it():
    (part,) = parts_of([Path(yaml.__file__)], ROOT)
    assert part.name == "PyYAML"
    assert part.version == metadata.version("PyYAML")
    assert "Permission is hereby granted" in part.texts[0]


def test_a_module_of_python_belongs_to_python():
    (part,) = parts_of([Path(os.__file__)], ROOT)
    assert part.name == "Python"
    assert part.version == ".".join(map(str, sys.version_info[:3]))
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in part.texts[0].upper()


def test_what_is_the_projects_own_is_left_out():
    assert parts_of([ROOT / "models.yaml"], ROOT) == set()


def test_a_file_of_nobody_stops_the_build(tmp_path):
    stranger = tmp_path / "libstranger.so.1"
    stranger.write_bytes(b"")
    with pytest.raises(Unlicensed, match=r"libstranger\.so\.1"):
        parts_of([stranger], ROOT)


@pytest.mark.skipif(not Path("/usr/bin/dpkg-query").exists(), reason="asks dpkg")
def test_a_library_of_the_system_belongs_to_its_package():
    library = next(Path("/usr/lib").glob("*/libz.so.1.*"), None)
    if library is None:
        pytest.skip("no zlib here")
    (part,) = parts_of([library], ROOT)
    assert part.name.startswith("zlib1g")
    assert "Jean-loup Gailly" in part.texts[0]


def test_the_licence_is_the_expression_else_the_old_field_else_the_classifier(tmp_path):
    text = {"LICENSE.txt": "Do as you like."}
    for name, head, word in [
        ("new", "License-Expression: MIT", "MIT"),
        ("old", "License: BSD", "BSD"),
        ("older", "Classifier: License :: OSI Approved :: Apache Software License", "Apache"),
        ("odd", "License: " + "a long text " * 20, "see its text"),
    ]:
        part = licences._distribution(made(tmp_path / name, name, head, text))
        assert part.licence.startswith(word)
        assert part.texts == ("Do as you like.",)


def test_a_known_licence_that_is_only_named_gets_its_text(tmp_path):
    part = licences._distribution(made(tmp_path, "qt", "License-Expression: LGPL-3.0-only", {}))
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in part.texts[0]
    assert "GNU GENERAL PUBLIC LICENSE" in part.texts[1]


@pytest.mark.parametrize("head", ["", "License-Expression: Beerware"])
def test_one_that_is_not_known_stops_the_build(tmp_path, head):
    with pytest.raises(Unlicensed, match=r"mine 1\.0"):
        licences._distribution(made(tmp_path, "mine", head, {}))


def test_every_library_of_this_environment_could_be_given_to_others():
    for distribution in metadata.distributions():
        if distribution.metadata["Name"] != "foretoken":
            assert licences._distribution(distribution).texts


def test_the_text_lists_all_parts_and_says_each_text_once():
    extra = [Part("One", "1", "MIT", ("The text.",)), Part("Two", "2", "MIT", ("The text.",))]
    text = notices([Path(msgspec.__file__)], ROOT, extra)
    assert text.count("The text.") == 1
    assert "The text stands at One." in text
    assert f"msgspec {metadata.version('msgspec')}: BSD-3-Clause" in text
