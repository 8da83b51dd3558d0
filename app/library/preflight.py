"""What a model folder holds and whether it can be loaded, found out in milliseconds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.library.model_files import (
    Config,
    GenerationConfig,
    Ids,
    TokenizerConfig,
    TokenizerFile,
    read_json,
    read_json_if_there,
)
from app.library.packed_weights import weights_in
from app.library.quantised import Quantised, read_quantisation
from app.library.weight_files import WeightFile, refuse_dangling, unfinished_files, weight_files
from app.run.problems import Problem
from app.run.settings import Sampling

_TOKENIZERS = ("tokenizer.json", "tokenizer.model")
_FEW_LAYERS = 1000
"""Up to so many layers are left to the loader, which knows what each of them has to have."""
_LAYER = re.compile(r"(?P<stack>(?:\w+\.)*?(?:layers?|h|blocks?))\.(?P<number>\d{1,6})\.")
"""A tensor of a numbered layer: "model.layers.12.mlp.up_proj.weight"."""
_DTYPES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}


_EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "embed_in.weight")
_OTHER_KINDS = (
    "Model",
    "ForMaskedLM",
    "ForCTC",
    "ForPreTraining",
    "ForMultipleChoice",
    "Classification",
    "Detection",
    "Segmentation",
    "QuestionAnswering",
)
"""Ends of the names of transformers' classes that write no text."""


_STATES = ("linear_attention", "conv", "mamba", "recurrent")
"""Parts of the names of layers that keep a state instead of keys and values."""
_OF_STATES = ("mamba", "rwkv", "jamba", "bamba", "zamba", "recurrent_gemma", "nemotron_h")
"""Parts of the names of kinds of models that have such layers, and don't list them."""


class FolderFacts(msgspec.Struct, frozen=True):
    """A model folder that has passed every check made before loading; None: it does not say."""

    folder: Path
    architecture: str
    model_type: str
    vocabulary: int
    """Rows of the output layer, padding included."""
    context_length: int | None
    dtype: str
    """As the weights are stored."""
    layers: int | None
    hidden: int | None
    heads: int | None
    key_value_heads: int | None
    parameters: int
    weight_bytes: int
    weight_files: tuple[Path, ...]
    tokenizer: Path | None
    quantised: Quantised | None
    """How the folder's own weights are quantised."""
    requantised_from: str | None
    """The quantised format that the weights were converted from."""
    suggested_sampling: Sampling | None
    """What generation_config.json asks for; to be shown, never applied unasked."""
    end_ids: tuple[int, ...]
    notes: tuple[str, ...]
    stateful: str = ""
    """The kind of its layers that keep a state, which cannot be taken back by a token."""


def check(folder: Path, *, needs_tokenizer: bool = True) -> FolderFacts:
    """Reads a folder's JSON files and weight headers. Raises Problem for what cannot be loaded."""
    refuse_dangling(folder / "config.json")
    config = read_json(folder / "config.json", Config)
    _refuse_foreign(folder, config)
    generation = read_json_if_there(folder / "generation_config.json", GenerationConfig)
    try:
        files = weight_files(folder)
    except OSError as error:
        remedy = "Check that the drive is connected and that you may read the folder."
        raise Problem(f"The weights in {folder} cannot be read: {error}.", remedy) from error
    tokenizer = _tokenizer(folder, needed=needs_tokenizer)
    text, declared, origin = config.text, config.quantised, config.foretoken
    _refuse_layers(folder, text.num_hidden_layers, files=files)
    own = read_quantisation(folder, declared) if declared else None
    return FolderFacts(
        folder=folder,
        architecture=(config.architectures or ["unknown"])[0],
        model_type=config.model_type,
        vocabulary=_vocabulary(folder, text.vocab_size, files=files),
        context_length=text.max_position_embeddings,
        dtype=_dtype(files),
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        heads=text.num_attention_heads,
        key_value_heads=text.num_key_value_heads or text.num_attention_heads,
        parameters=sum(
            weights_in(name, place, own) for file in files for name, place in file.tensors.items()
        ),
        weight_bytes=sum(file.weight_bytes for file in files),
        weight_files=tuple(file.path for file in files),
        tokenizer=tokenizer,
        quantised=own,
        requantised_from=origin.requantised_from if origin else None,
        suggested_sampling=_suggested(generation),
        end_ids=_end_ids(folder, config, generation=generation),
        notes=_notes(folder, config, files=files),
        stateful=_stateful(config),
    )


def _stateful(config: Config) -> str:
    """The kind of layers that keep a state, as config.json names them; empty without such."""
    kinds = config.text.layer_types
    named = [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []
    found = next((kind for kind in named if any(part in kind for part in _STATES)), "")
    kind = config.text.model_type or config.model_type
    return found or (kind if any(part in kind for part in _OF_STATES) else "")


def _refuse_foreign(folder: Path, config: Config) -> None:
    """Raises Problem for a model that writes no text, or whose weights another library packed."""
    kinds = config.architectures or []
    if config.is_encoder_decoder or (kinds and all(map(_writes_nothing, kinds))):
        raise Problem(
            f"{folder} holds a model of the kind {', '.join(kinds) or config.model_type}, which "
            "does not continue a text token by token.",
            "Choose a causal language model (…ForCausalLM).",
        )
    named = config.quantised and config.quantised.get("quant_method")
    if config.quantization is not None and not named:
        raise Problem(
            f"The weights in {folder} are packed for MLX, which only Apple's library reads.",
            "Choose the model's own repository, or a GGUF file of it.",
        )


def _writes_nothing(kind: str) -> bool:
    """Whether a class of transformers is known to be no causal language model, by its name."""
    return kind.endswith(_OTHER_KINDS) and not kind.endswith("LMHeadModel")


def _tokenizer(folder: Path, *, needed: bool) -> Path | None:
    """The tokenizer's file. Raises Problem if it is needed and missing."""
    for name in _TOKENIZERS:
        if (folder / name).is_file():
            return folder / name
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return folder / "vocab.json"
    if needed:
        for name in _TOKENIZERS:
            refuse_dangling(folder / name)
        there = ", ".join(sorted(path.name for path in folder.iterdir()))
        raise Problem(
            f"Tokenizer files are missing in {folder}: tokenizer.json or tokenizer.model is "
            f"needed; there is {there}.",
            "Copy the tokenizer files of the model into the folder.",
        )
    return None


def _vocabulary(folder: Path, said: int | None, *, files: Iterable[WeightFile]) -> int:
    """The size that config.json says, which the embedding has to bear out."""
    for file in files:
        for name, place in file.tensors.items():
            # Packed weights have other shapes: only plain numbers are compared.
            table = name.endswith(_EMBEDDINGS) and len(place.shape) == 2
            if table and place.dtype in _DTYPES:
                if said not in (None, place.shape[0]):
                    raise Problem(
                        f"{folder / 'config.json'} says a vocabulary of {said}, but the weights "
                        f"hold {place.shape[0]} rows.",
                        "Restore config.json as it came: sizes cannot be changed by editing it.",
                    )
                return place.shape[0]
    if said is None:
        raise Problem(f"{folder / 'config.json'} does not say its vocab_size.", "Get it again.")
    return said


def _refuse_layers(folder: Path, said: int | None, *, files: Iterable[WeightFile]) -> None:
    """Raises Problem for more layers than the weights can hold: making them would never end; and
    for the first layer that they do not hold, where their names tell of layers at all.
    """
    held = sum(len(file.tensors) for file in files)
    if said is not None and not 0 <= said <= max(held, _FEW_LAYERS):
        raise Problem(
            f"{folder / 'config.json'} says {said} layers, but the weights hold {held} tensors.",
            "Restore config.json as it came: sizes cannot be changed by editing it.",
        )
    stacks = _stacks(name for file in files for name in file.tensors)
    if said is None or len(stacks) != 1:  # several: a tower for pictures, say, has its own count
        return
    (there,) = stacks.values()
    missing = next((layer for layer in range(said) if layer not in there), None)
    if missing is not None:
        raise Problem(
            f"{folder / 'config.json'} says {said} layers, but the weights hold nothing of layer "
            f"{missing} (counted from 0).",
            "Fetch the model again; its weights and its config.json do not belong together.",
        )


def _stacks(names: Iterable[str]) -> dict[str, set[int]]:
    """The numbers of the layers that tensors belong to, by what stands before the number."""
    found: dict[str, set[int]] = {}
    for name in names:
        layer = _LAYER.match(name)
        if layer:
            found.setdefault(layer["stack"], set()).add(int(layer["number"]))
    return found


def _dtype(files: Iterable[WeightFile]) -> str:
    """The type in which most numbers are stored."""
    elements: dict[str, int] = {}
    for file in files:
        for place in file.tensors.values():
            elements[place.dtype] = elements.get(place.dtype, 0) + place.elements
    most = max(elements, key=elements.__getitem__, default="F32")
    return _DTYPES.get(most, most.lower())


def _suggested(generation: GenerationConfig) -> Sampling | None:
    """The sampling that a generation_config.json asks for, if it says anything about it."""
    said = {
        name: value
        for name in ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
        if (value := getattr(generation, name)) is not None
    }
    if generation.do_sample is None and not said:
        return None
    if generation.do_sample:
        return Sampling(**{"temperature": 1.0, **said})
    # Without sampling, generate() uses nothing of these but the penalty.
    return Sampling(repetition_penalty=said.get("repetition_penalty", 1.0))


def _end_ids(folder: Path, config: Config, *, generation: GenerationConfig) -> tuple[int, ...]:
    """Every id that any of the folder's files says ends a text."""
    end = read_json_if_there(folder / "tokenizer_config.json", TokenizerConfig).end
    tokens = read_json_if_there(folder / "tokenizer.json", TokenizerFile).added_tokens
    named = [token.id for token in tokens if token.content == end]
    ids = [config.eos_token_id, config.text.eos_token_id, generation.eos_token_id, named]
    return tuple(sorted({id_ for some in ids for id_ in _listed(some)}))


def _listed(ids: Ids) -> list[int]:
    if ids is None:
        return []
    return ids if isinstance(ids, list) else [ids]


def _notes(folder: Path, config: Config, *, files: tuple[WeightFile, ...]) -> tuple[str, ...]:
    """What a person should know of a folder that can be loaded all the same."""
    notes = []
    if state := _stateful(config):
        notes.append(
            f"Its layers keep a state ({state}), from which a rejected guess cannot be taken back: "
            "it writes without speculation."
        )
    if config.auto_map:
        notes.append("config.json names code of the model's own; it is never run.")
    used = {file.path.name for file in files}
    if "model.safetensors" in used and (folder / "model.safetensors.index.json").exists():
        notes.append("There is an index of shards beside model.safetensors; it is not used.")
    other = [path.name for path in folder.glob("*.bin") if path.name.startswith("pytorch_model")]
    if other:
        notes.append("There are pickled weights beside the safetensors; they are not used.")
    if unfinished := unfinished_files(folder):
        notes.append(f"Unfinished downloads: {', '.join(path.name for path in unfinished)}.")
    return tuple(notes)
