"""The decoder layers of a transformers model, and passes through the first of them only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn


class LayerList:
    """Where a model keeps its decoder layers, in the order in which a pass goes through them."""

    def __init__(self, owner: nn.Module, name: str, layers: nn.ModuleList) -> None:
        self._owner = owner
        self._name = name
        self._layers = layers

    @staticmethod
    def of(inner: Any, count: int) -> LayerList | None:
        """The outermost list of `count` modules in the model's decoder; None if there is none."""
        for module in inner.get_decoder().modules():
            for name, child in module.named_children():
                if isinstance(child, nn.ModuleList) and len(child) == count:
                    return LayerList(module, name, child)
        return None

    @contextmanager
    def cut_to(self, depth: int) -> Iterator[None]:
        """While it lasts, passes of the model go through the first `depth` layers, then through
        all that stands behind the last one.
        """
        setattr(self._owner, self._name, self._layers[:depth])
        try:
            yield
        finally:
            setattr(self._owner, self._name, self._layers)
