"""A head before its first lesson: the target's last layer, and a linear guess at its input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from app.models.draft_head import DraftHead, shape_for
from app.training.texts import Text

_TOKENS = 16_384
"""So many tokens are read again to guess by."""
_LONGEST = 512
"""Of each text only so many."""
_RIDGE = 1e-3
"""What is added to the squares of an input, as a share of their mean: what is rare weighs less."""


@torch.no_grad()
def begin_head(inner: Any, vocabulary: int, texts: Iterable[Text]) -> DraftHead:
    """A head in fp32 on the target's device.

    Its layer is the target's last; its first matrix is the best linear guess, over some `texts`, of
    what the target's last layer reads at token t + 1, from that token's embedding and the feature
    of t. So it starts below what counting tokens could reach, not with noise. Raises Problem for a
    target of another kind.
    """
    head = DraftHead(shape_for(inner, vocabulary))
    device = inner.get_input_embeddings().weight.device
    layer = inner.model.layers[-1]
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        _copy(getattr(layer.self_attn, name), getattr(head, name))
    for name in ("gate_proj", "up_proj", "down_proj"):
        _copy(getattr(layer.mlp, name), getattr(head, name))
    if head.q_norm is not None and head.k_norm is not None:
        _copy(layer.self_attn.q_norm, head.q_norm)
        _copy(layer.self_attn.k_norm, head.k_norm)
    _copy(layer.input_layernorm, head.input_norm)
    _copy(layer.post_attention_layernorm, head.between_norm)
    _copy(inner.model.norm, head.norm)
    head.fc.weight.copy_(_linear_guess(inner, texts))
    return head.to(device)


def _copy(source: Any, goal: Any) -> None:
    """Weights and biases of a layer or a norm, whatever they are packed as."""
    goal.weight.copy_(_plain(source.weight))
    if isinstance(goal, nn.Linear) and goal.bias is not None:
        goal.bias.copy_(_plain(source.bias))


def _plain(weight: Tensor) -> Tensor:
    """Weights as plain numbers; those of bitsandbytes' 4-bit layers are unpacked."""
    packing = getattr(weight, "quant_state", None)
    if packing is not None:
        from bitsandbytes.functional import dequantize_4bit

        weight = dequantize_4bit(weight.data, packing)
    return weight.detach().float()


def _linear_guess(inner: Any, texts: Iterable[Text]) -> Tensor:
    """The matrix [hidden, 2 x hidden] that best maps embedding and feature to the layer's input.

    Every token counts alike: what the residual stream holds at a text's first is far larger.
    """
    hidden = int(inner.config.hidden_size)
    device = inner.get_input_embeddings().weight.device
    squares = torch.zeros(2 * hidden, 2 * hidden, dtype=torch.float64, device=device)
    products = torch.zeros(2 * hidden, hidden, dtype=torch.float64, device=device)
    for given, wanted in _examples(inner, texts):
        size = wanted.square().mean(dim=-1, keepdim=True).sqrt().clamp_min(1e-6)
        given, wanted = given / size, wanted / size
        squares += (given.T @ given).double()
        products += (given.T @ wanted).double()
    # Embeddings are far smaller than features: each input is damped by its own size.
    squares.diagonal().mul_(1 + _RIDGE).add_(1e-9)
    solution: Tensor = torch.linalg.solve(squares, products)
    return solution.T.float()


def _examples(inner: Any, texts: Iterable[Text]) -> Iterator[tuple[Tensor, Tensor]]:
    """Of each text, embeddings of t + 1 beside features of t, and what the last layer then read."""
    read: list[Tensor] = []
    watching = inner.model.layers[-1].register_forward_pre_hook(
        lambda layer, given, named: read.append(given[0] if given else named["hidden_states"]),
        with_kwargs=True,
    )
    embeddings = inner.get_input_embeddings()
    tokens = 0
    try:
        for text in texts:
            ids = text.ids[:_LONGEST].long().to(embeddings.weight.device)
            read.clear()
            features = inner.model(input_ids=ids[None], use_cache=False).last_hidden_state[0]
            given = torch.cat([embeddings(ids[1:]), features[:-1]], dim=-1)
            yield given.float(), read[0][0, 1:].float()
            tokens += len(ids)
            if tokens >= _TOKENS:
                return
    finally:
        watching.remove()
