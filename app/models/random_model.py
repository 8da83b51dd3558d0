"""Models of random weights in a known shape, made on their device: nothing is fetched.

They come in by transformers' own loader, which asks for one weight after the other, puts it on its
device and quantises it there. So a model is what a loaded one of this shape is, but for its
numbers, and little more than its finished weights is ever in memory.
"""

from __future__ import annotations

import zlib
from typing import Any

import torch
from torch import Tensor

from app.library.random_shapes import RandomShape
from app.models.hugging_face import transformers

KINDS = {"llama": ("LlamaConfig", "LlamaForCausalLM"), "qwen2": ("Qwen2Config", "Qwen2ForCausalLM")}
"""transformers' classes of a kind: its configuration, its model."""
_STORED = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}


def random_inner(shape: RandomShape, device: torch.device, **arguments: Any) -> Any:
    """A model of transformers in this shape; the rest are arguments of `from_pretrained`. The same
    shape, type of numbers and kind of device give the same weights. Raises whatever it raises.
    """
    config, kind = _config(shape), getattr(transformers, KINDS[shape.kind][1])
    dtype: torch.dtype = arguments["dtype"]
    state = {
        name: _Random(name, tuple(weight.shape), dtype, device)
        for name, weight in _on_meta(shape).named_parameters()
    }
    inner, told = kind.from_pretrained(
        None,
        config=config,
        state_dict=state,
        device_map={"": device},
        output_loading_info=True,
        **arguments,
    )
    missing = [*told["missing_keys"], *told["unexpected_keys"]]
    if missing:
        raise RuntimeError(f"the loader and the model name weights otherwise: {missing[:3]}")
    return inner.eval()


def parameters_on_meta(shape: RandomShape) -> int:
    """How many weights transformers gives a model of this shape; none of them is made."""
    return sum(weight.numel() for weight in _on_meta(shape).parameters())


def _on_meta(shape: RandomShape) -> Any:
    """The model without weights."""
    with torch.device("meta"):
        return getattr(transformers, KINDS[shape.kind][1])(_config(shape))


def _config(shape: RandomShape) -> Any:
    """The configuration, with no id that begins, ends or pads a text."""
    return getattr(transformers, KINDS[shape.kind][0])(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        max_position_embeddings=shape.context_length,
        rope_parameters=dict(shape.rope),
        tie_word_embeddings=shape.tied,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )


class _Random:
    """A weight that is drawn when the loader asks for it, as it would read one from a file.

    Matrices have a spread of 1 / sqrt(columns), so that what they answer is as large as what they
    are given; norms are 1, and biases small.
    """

    def __init__(
        self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
    ) -> None:
        self._name = name
        self._shape = shape
        self._dtype = dtype
        self._device = device

    def __getitem__(self, part: Any) -> Tensor:
        found: Tensor = self._made()[part]
        return found

    def _made(self) -> Tensor:
        where: dict[str, Any] = {"dtype": self._dtype, "device": self._device}
        if len(self._shape) == 1 and not self._name.endswith("bias"):
            return torch.ones(self._shape, **where)
        numbers = torch.Generator(self._device).manual_seed(zlib.crc32(self._name.encode()))
        spread = self._shape[1] ** -0.5 if len(self._shape) > 1 else 0.02
        return torch.randn(self._shape, generator=numbers, **where).mul_(spread)

    def get_shape(self) -> list[int]:
        """Its sizes."""
        return list(self._shape)

    def get_dtype(self) -> str:
        """The type of its numbers."""
        return _STORED[self._dtype]
