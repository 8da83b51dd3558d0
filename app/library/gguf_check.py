"""Whether a GGUF file can be converted, and what it holds, told by its header alone."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.library.gguf_folder import config_of, refuse_architecture
from app.library.gguf_header import GgufHeader, Listed
from app.library.gguf_tokenizer import refuse_tokenizer, special_ids
from app.library.gguf_weights import refuse_type, weight_name
from app.library.local_folder import refuse_part
from app.run.problems import Problem


class GgufFacts(msgspec.Struct, frozen=True):
    """What the header of a GGUF file says; None or empty: it does not say."""

    file: Path
    architecture: str
    parameters: int
    quantisation: str
    context_length: int | None
    vocabulary: int | None
    title: str


def gguf_facts(header: GgufHeader) -> GgufFacts:
    """What a header says of a model, convertible or not. Raises Problem for a wrong type."""
    architecture = header.find("general.architecture", str) or ""
    tokens = header.content("tokenizer.ggml.tokens")
    return GgufFacts(
        file=header.path,
        architecture=architecture,
        parameters=sum(tensor.n_elements for tensor in header.tensors),
        quantisation=header.quantisation,
        context_length=header.find(f"{architecture}.context_length", int),
        vocabulary=tokens.length if isinstance(tokens, Listed) else None,
        title=header.find("general.name", str) or "",
    )


def check_gguf(file: Path) -> GgufFacts:
    """The facts of a file that can be converted. Raises Problem for one that cannot."""
    header = GgufHeader(file)
    refuse_gguf(header)
    return gguf_facts(header)


def refuse_gguf(header: GgufHeader) -> None:
    """Raises Problem for whatever a conversion of this file would stumble on."""
    name = header.path.name
    refuse_part(header.path)
    kind = header.find("general.type", str) or "model"
    if kind != "model":
        raise Problem(f"{name} holds no model but a part for one ({kind}).", "Choose the model.")
    refuse_architecture(header)
    if not header.tensors:
        raise Problem(f"{name} holds a vocabulary without weights.", "Choose the model.")
    config_of(header)
    refuse_tokenizer(header)
    special_ids(header)
    if not isinstance(header.content("tokenizer.ggml.tokens"), Listed):
        raise Problem(f"{name} does not say its tokenizer.ggml.tokens.", "Get the file again.")
    for tensor in header.tensors:
        weight_name(tensor.name)
    for quantisation in {tensor.tensor_type for tensor in header.tensors}:
        refuse_type(quantisation)
