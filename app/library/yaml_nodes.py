"""YAML as nodes that know their line and column, and everything that can be wrong with the text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from app.library.entries import Fault

_MOST_NODES = 20_000
"""Aliases can make a small file stand for a huge one; past this it is refused."""
_ESCAPE_ADVICE = (
    "Write paths with forward slashes or in single quotes: in double quotes a backslash means more."
)


def compose(file: Path) -> tuple[yaml.MappingNode | None, list[Fault]]:
    """The mapping at the top of the file, None if it is empty or unusable, and what is wrong."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return None, []
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8")
        return None, [
            _at_end(file, before, message="The file is not UTF-8 text.", remedy="Save it as UTF-8.")
        ]
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        return None, [Fault(file, 1, 1, message, "Check that it is a file you may read.")]
    return compose_text(file, text)


def compose_text(file: Path, text: str) -> tuple[yaml.MappingNode | None, list[Fault]]:
    """As `compose`, for a text that stands in the file, or is to."""
    node, fault = _compose_text(file, text)
    if fault is None and node is not None:
        fault = _loop_or_flood(file, node)
    if fault is None and node is not None and not isinstance(node, yaml.MappingNode):
        remedy = "Begin the file with `models:` or `pairs:`, and indent the entries below."
        fault = fault_at(
            file, node, message="The file does not hold named sections.", remedy=remedy
        )
    top = node if isinstance(node, yaml.MappingNode) and fault is None else None
    return top, [fault] if fault else []


def keys(node: yaml.MappingNode) -> list[tuple[str, yaml.Node, yaml.Node]]:
    """The keys of a mapping as they are written, with the nodes of key and value."""
    return [
        (key.value, key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)
    ]


def repeated_key(node: yaml.Node) -> yaml.Node | None:
    """The first key, here or below, that stands twice in its mapping."""
    if not isinstance(node, yaml.MappingNode | yaml.SequenceNode):
        return None
    if isinstance(node, yaml.SequenceNode):
        return next((found for part in node.value if (found := repeated_key(part))), None)
    seen: set[str] = set()
    for name, key, _ in keys(node):
        if name in seen:
            return key
        seen.add(name)
    return next((found for _, part in node.value if (found := repeated_key(part))), None)


def node_at(node: yaml.Node, path: Sequence[str]) -> yaml.Node:
    """The node that these keys lead to, as far as they are written."""
    for name in path:
        if not isinstance(node, yaml.MappingNode):
            break
        below = next((value for key, _, value in keys(node) if key == name), None)
        if below is None:
            break
        node = below
    return node


def value_of(node: yaml.Node) -> object:
    """The plain value of a node. Raises ValueError or yaml.YAMLError for one that has none."""
    return _loader().construct_object(node, deep=True)


def fault_at(file: Path, node: yaml.Node, *, message: str, remedy: str) -> Fault:
    """A fault at the place where this node begins."""
    mark = node.start_mark
    return Fault(file, mark.line + 1, mark.column + 1, message, remedy)


def yaml_fault(file: Path, error: Exception, *, near: yaml.Node | None) -> Fault:
    """What a parser's error means, at its place or else at that of the node near it."""
    mark = getattr(error, "problem_mark", None) or (near.start_mark if near else None)
    said = getattr(error, "problem", None) or str(error)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return Fault(file, line, column, f"This is not valid here: {said}.", _remedy(said))


def _compose_text(file: Path, text: str) -> tuple[yaml.Node | None, Fault | None]:
    """The node at the top of a text, None for an empty one, or the fault that prevents it."""
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader), None
    except yaml.reader.ReaderError as error:
        message = f"There is an invisible control character (code {error.character})."
        return None, _at_end(file, text[: error.position], message=message, remedy="Delete it.")
    except yaml.YAMLError as error:
        return None, yaml_fault(file, error, near=None)
    except RecursionError:
        return None, Fault(file, 1, 1, "The file is nested too deeply.", "Write it flatter.")


def _loop_or_flood(file: Path, top: yaml.Node) -> Fault | None:
    """A fault if an alias stands inside itself, or if aliases multiply without end."""
    seen = 0
    stack: list[tuple[yaml.Node, frozenset[int]]] = [(top, frozenset())]
    while stack:
        node, above = stack.pop()
        seen += 1
        if id(node) in above:
            return fault_at(
                file, node, message="An alias (*) stands inside its own anchor.", remedy="Drop it."
            )
        if seen > _MOST_NODES:
            return fault_at(
                file, node, message="Aliases (*) make the file too large.", remedy="Use fewer."
            )
        if isinstance(node, yaml.MappingNode):
            below = [part for pair in node.value for part in pair]
        else:
            below = node.value if isinstance(node, yaml.SequenceNode) else []
        stack += [(part, above | {id(node)}) for part in reversed(below)]
    return None


def _remedy(said: str) -> str:
    """What to do about a parser's complaint."""
    advice = {
        "escape": _ESCAPE_ADVICE,
        "hexadecimal": _ESCAPE_ADVICE,
        "'\\t'": "Indent with spaces, never with tabs.",
        "mapping values are not allowed": "Put text that contains a colon in quotes.",
        "another document": "Remove the line `---`: the file holds one document.",
        "could not determine a constructor": "Remove the word that begins with `!`.",
        "alias": "Write the value out instead of `*`, or put text with a star in quotes.",
    }
    default = "Check quotes, colons and indentation on this line and the one above."
    return next((remedy for key, remedy in advice.items() if key in said), default)


def _at_end(file: Path, before: str, *, message: str, remedy: str) -> Fault:
    """A fault at the place where this much of the text ends."""
    lines = before.split("\n")
    return Fault(file, len(lines), len(lines[-1]) + 1, message, remedy)


def _loader() -> yaml.SafeLoader:
    """A loader without a text, for its rules alone: it builds plain values and nothing else."""
    return yaml.SafeLoader("")
