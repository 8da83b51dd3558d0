"""How large the trees of a run are: what a pass over one has to hold, and costs."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from app.run.methods import METHODS
from app.run.settings import OptionValue, RunSettings


class TreeShape(msgspec.Struct, frozen=True):
    """The bounds of a tree that is grown level by level, from the `breadth` best of each."""

    nodes: int
    """Most guesses in all."""
    breadth: int
    """Guesses of a level that grow on, and children that each is given."""

    def nodes_at(self, levels: int) -> int:
        """The guesses of a tree of so many levels: the first has `breadth`, others its square."""
        if levels < 1:
            return 0
        return min(self.nodes, self.breadth + (levels - 1) * self.breadth**2)

    def room(self, levels: int) -> int:
        """Tokens that a session has to hold beside the text while such a tree is made and read."""
        return max(self.nodes_at(levels), self.breadth * max(levels - 1, 0))


def tree_shape(settings: RunSettings) -> TreeShape | None:
    """The shape of a run's trees; None as for `shape_of`."""
    return shape_of(settings.method, settings.method_options)


def shape_of(name: str, options: Mapping[str, OptionValue]) -> TreeShape | None:
    """The shape of a method's trees; None for a method whose guesses follow each other, or that
    this version does not know.
    """
    method = METHODS.get(name)
    if method is None or not method.branches:
        return None
    options = {option.name: option.default for option in method.options} | dict(options)
    return TreeShape(nodes=int(options["nodes"]), breadth=int(options["breadth"]))


def pass_rows(settings: RunSettings, levels: int) -> int:
    """Rows of the target's pass over a whole draft of so many levels, and the text's last token."""
    shape = tree_shape(settings)
    return 1 + (levels if shape is None else shape.nodes_at(levels))
