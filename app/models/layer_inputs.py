"""What goes into a decoder's layers, seen while a model of transformers computes a pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor


@contextmanager
def layer_inputs(decoder: Any, layers: tuple[int, ...]) -> Iterator[dict[int, Tensor]]:
    """Within it, a pass of one sequence leaves the input [n, hidden] of each of these layers here.

    Layers count from 0; an input is the sum that the layers before have made, not normed.
    """
    found: dict[int, Tensor] = {}
    with ExitStack() as hooks:
        for layer in set(layers):
            hook = decoder.layers[layer].register_forward_pre_hook(partial(_keep, found, layer))
            hooks.callback(hook.remove)
        yield found


def _keep(found: dict[int, Tensor], layer: int, module: Any, fed: tuple[Tensor, ...]) -> None:
    found[layer] = fed[0][0]
