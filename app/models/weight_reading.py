"""Weights read from their files tensor by tensor: no file is ever in memory as a whole.

transformers maps a file, and what was read of a map stays resident until all of it is let go: a
model that comes out smaller than its file would take the file's size beside its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor

from app.library.preflight import FolderFacts
from app.models.hugging_face import FROM_FOLDERS_ONLY, transformers
from app.models.mapped_memory import return_free_memory

_GIVEN_BACK = 32 << 20
"""Bytes of weights after which the allocator gives back what it keeps of those before."""


def read_model(
    folder: FolderFacts, *, mapped: bool, device_map: dict[str, Any], **arguments: Any
) -> tuple[Any, dict[str, Any]]:
    """A model of transformers, and what its loader tells.

    `mapped` leaves its weights in their files where the system can, so that nothing of them is in
    memory yet; else at most one tensor is, and what it is made into, beside the model. The rest are
    arguments of `from_pretrained`. Raises whatever the libraries raise.
    """
    shared = {"device_map": device_map, "output_loading_info": True, **arguments}
    config = transformers.AutoConfig.from_pretrained(folder.folder, **FROM_FOLDERS_ONLY)
    kind = transformers.MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    spread = set(device_map) != {""}
    if mapped or spread or folder.quantised or not _takes(kind, config):
        return _from_folder(folder.folder, **shared)
    state = _slices(folder.weight_files)
    found: tuple[Any, dict[str, Any]] = kind.from_pretrained(
        None, config=config, state_dict=state, **shared
    )
    return found


def _from_folder(folder: Path, **arguments: Any) -> tuple[Any, dict[str, Any]]:
    found: tuple[Any, dict[str, Any]] = transformers.AutoModelForCausalLM.from_pretrained(
        folder, use_safetensors=True, **FROM_FOLDERS_ONLY, **arguments
    )
    return found


def _takes(kind: Any, config: Any) -> bool:
    """Whether a class takes this configuration as it is, and not only a part of it."""
    return isinstance(kind, type) and getattr(kind, "config_class", None) is type(config)


def read_tensors(weight_files: Sequence[Path], names: Collection[str]) -> dict[str, Tensor]:
    """The tensors of these names, as they are stored. Raises KeyError for one that is not there."""
    stored = _slices(weight_files)
    return {name: stored[name][...] for name in names}


class _Stored:
    """A tensor in its file, read when a part of it is asked for, as `from_pretrained` does."""

    _read = 0
    """Bytes read since free memory was given back last."""

    def __init__(self, place: Any) -> None:
        self._place = place

    def __getitem__(self, part: Any) -> Tensor:
        if _Stored._read >= _GIVEN_BACK:
            _Stored._read = 0
            return_free_memory()
        found: Tensor = self._place[part]
        _Stored._read += found.nbytes
        return found

    def get_shape(self) -> list[int]:
        """Its sizes."""
        return list(self._place.get_shape())

    def get_dtype(self) -> str:
        """The type of its numbers."""
        return str(self._place.get_dtype())


def _slices(weight_files: Sequence[Path]) -> dict[str, _Stored]:
    """Every tensor by name."""
    found: dict[str, _Stored] = {}
    for file in weight_files:
        opened: Any = safe_open(file, framework="pt", device="cpu", backend="pread")
        found.update((name, _Stored(opened.get_slice(name))) for name in opened.keys())  # noqa: SIM118
    return found
