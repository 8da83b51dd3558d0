"""A pass that can be stopped between two layers: for passes that no one waits for a token of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn


@contextmanager
def asked_before_layers(model: nn.Module, ask: Callable[[], None]) -> Iterator[None]:
    """While it lasts, `ask` is called before every layer that has weights; it may raise.

    Whatever it raises ends the pass. Runs pay nothing for it: the layers are as before, after it.
    """

    def before(layer: nn.Module, given: Any) -> None:
        ask()

    hooks = [
        layer.register_forward_pre_hook(before) for layer in model.modules() if _has_weights(layer)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _has_weights(layer: nn.Module) -> bool:
    """Whether weights are its own; packed ones are buffers."""
    own = (*layer.parameters(recurse=False), *layer.buffers(recurse=False))
    return any(weight.dim() > 0 for weight in own)
