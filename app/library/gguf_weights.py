"""The weights of a llama GGUF, dequantised and written tensor by tensor as one safetensors file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, ReaderTensor
from gguf.quants import dequantize

from app.library.gguf_metadata import GgufFile
from app.library.whole_folder import Pause, require_space
from app.run.events import Progress
from app.run.problems import Problem

_TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_IN_LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER = re.compile(r"^blk\.(\d+)\.(\w+)\.(weight|bias)$")
_STEP = 4 << 20
"""Bytes of float32 that are made at a time, or one head's rows if those are more."""
Array = npt.NDArray[np.float32]


class Heads(msgspec.Struct, frozen=True):
    """How many heads the rows of the query and key projections belong to."""

    query: int
    key: int


def weight_name(name: str) -> str:
    """What transformers' Llama calls a GGUF tensor. Raises Problem for one that it lacks."""
    if name in _TOP:
        return _TOP[name]
    if (match := _LAYER.match(name)) and match[2] in _IN_LAYER:
        return f"model.layers.{match[1]}.{_IN_LAYER[match[2]]}.{match[3]}"
    raise Problem(
        f"The GGUF file holds the tensor {name!r}, which a plain Llama does not have.",
        "Use the model's safetensors folder instead.",
    )


def refuse_type(kind: GGMLQuantizationType) -> None:
    """Raises Problem for a quantisation that cannot be undone here; tried on one empty block."""
    try:
        dequantize(np.zeros((1, GGML_QUANT_SIZES[kind][1]), dtype=np.uint8), kind)
    except NotImplementedError as error:
        raise _unreadable(kind) from error


def _unreadable(kind: GGMLQuantizationType) -> Problem:
    return Problem(
        f"The GGUF file is quantised as {kind.name}, which cannot be read here.",
        "Use a file in a common format such as Q4_1, Q4_K or Q8_0, or the safetensors folder.",
    )


def write_weights(
    source: GgufFile,
    target: Path,
    *,
    heads: Heads,
    report: Callable[[Progress], None],
    pause: Pause,
) -> None:
    """Writes every tensor as float32, some rows at a time: no tensor is in memory as a whole.

    Raises Problem for tensors unknown to a Llama or too large for the disk.
    """
    header = _header(source.tensors)
    total = sum(4 * int(tensor.n_elements) for tensor in source.tensors)
    require_space(target.parent, total + len(header))
    done = 0
    with target.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for tensor in source.tensors:
            pause()
            report(Progress("Converting the model", done, total, "bytes"))
            for values in _rows(source.path, tensor, heads):
                pause()
                file.write(values.data)
                done += values.nbytes
        # The rename that follows must not reach the disk before the bytes do.
        file.flush()
        os.fsync(file.fileno())
    report(Progress("Converting the model", done, total, "bytes"))


def _header(tensors: list[ReaderTensor]) -> bytes:
    """The safetensors header: where each tensor will lie. Padded to 8 bytes."""
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    start = 0
    for tensor in tensors:
        end = start + 4 * int(tensor.n_elements)
        entries[weight_name(tensor.name)] = {
            "dtype": "F32",
            "shape": [int(size) for size in reversed(tensor.shape)],
            "data_offsets": [start, end],
        }
        start = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


def _rows(path: Path, tensor: ReaderTensor, heads: Heads) -> Iterator[Array]:
    """The tensor as float32, some rows after the other, in transformers' order.

    Its bytes are read from the file: what is read of a map would stay in memory.
    """
    order = {".attn_q.": heads.query, ".attn_k.": heads.key}
    count = next((number for part, number in order.items() if part in tensor.name), 0)
    stored = tensor.data
    rows, width = len(stored), stored[:1].size
    together = rows // count if count else 1  # rows that are reordered among themselves
    step = max(_STEP // max(4 * int(tensor.n_elements) // rows * together, 1), 1) * together
    for start in range(0, rows, step):
        size = min(step, rows - start)
        offset = int(tensor.data_offset) + start * width * stored.itemsize
        read = np.fromfile(path, dtype=stored.dtype, count=size * width, offset=offset)
        values = _values(read.reshape(size, *stored.shape[1:]), tensor)
        yield np.ascontiguousarray(_rows_apart(values, size // together) if count else values)


def _values(stored: npt.NDArray[np.generic], tensor: ReaderTensor) -> Array:
    try:
        return np.asarray(dequantize(stored, tensor.tensor_type), dtype=np.float32)
    except NotImplementedError as error:
        raise _unreadable(tensor.tensor_type) from error


def _rows_apart(values: Array, heads: int) -> Array:
    """Undoes llama.cpp's reordering: it interleaves the two halves that rotary embedding turns."""
    halves = values.shape[0] // heads // 2
    return values.reshape(heads, halves, 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)
