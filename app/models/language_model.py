"""Weights at work: one loaded model, from which any number of sessions can be opened."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from app.models.asked_layers import asked_before_layers
from app.models.attention import Masks, Placed
from app.models.cache import STEP, SequenceCache, open_cache
from app.models.exhausted import memory_guard
from app.models.first_layers import LayerList
from app.models.fixed.passes import Passes
from app.models.fixed.shapes import LARGEST
from app.models.fused_linear import fuse
from app.models.layer_inputs import layer_inputs
from app.models.lean_decoder import LeanDecoder
from app.models.lean_layers import is_plain_throughout, known
from app.models.offload import share_elsewhere
from app.models.packed_linear import (
    Advance,
    computing,
    convert_tables,
    pack,
    unwatched,
    why_not_packed,
)
from app.models.same_answers import answers_alike, plain_lean_pass
from app.models.session import Session
from app.models.tree import Tree


class LanguageModel:
    """A causal language model of transformers, on one device, in one precision."""

    def __init__(
        self,
        inner: Any,
        *,
        name: str,
        folder: Path,
        precision: str,
        unused_weights: tuple[str, ...] = (),
        device: torch.device | None = None,
    ) -> None:
        """`device` is where it was loaded to; None for where it is."""
        self.name = name
        self.folder = folder
        self.precision = precision
        self.unused_weights = unused_weights
        self.parameters = int(inner.num_parameters())
        """Weights, as many as the model has (a shared matrix counts once)."""
        self.kernel = ""
        """What computes the linear layers and the pass, where it is not transformers alone."""
        self.passes = Passes()
        """How its sessions compute their passes."""
        self._inner = inner
        self._device = device
        self._lean: LeanDecoder | None = None
        self._lean_rows: int | None = None
        """Rows of a lean pass at most; None for any number."""
        self._text_config = inner.config.get_text_config(decoder=True)
        parameters = inspect.signature(inner.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._keeps_rows = "logits_to_keep" in parameters
        self._decoder: Any = getattr(inner, inner.base_model_prefix, None)

    @property
    def device(self) -> torch.device:
        """Where token ids have to lie."""
        return self._device or torch.device(self._inner.get_input_embeddings().weight.device)

    @property
    def width(self) -> int:
        """Logits a row, padding included."""
        return int(self._inner.get_output_embeddings().out_features)

    @property
    def rows(self) -> int:
        """Ids that the model can read."""
        return int(self._inner.get_input_embeddings().num_embeddings)

    @property
    def layers(self) -> int:
        """Decoder layers."""
        return int(self._text_config.num_hidden_layers)

    @property
    def context_length(self) -> int:
        """Most positions that the model was made for."""
        return int(getattr(self._text_config, "max_position_embeddings", 0) or 1 << 20)

    @property
    def sliding_window(self) -> int | None:
        """Tokens that a position of a sliding layer sees, if there is such a layer."""
        kinds = getattr(self._text_config, "layer_types", None)
        window = getattr(self._text_config, "sliding_window", None)
        slides = "sliding_attention" in kinds if kinds else bool(window)
        return int(window) if window and slides else None

    @property
    def mixes_experts(self) -> bool:
        """Whether each token is sent to some of several experts."""
        names = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
        return any((getattr(self._text_config, name, 0) or 0) > 1 for name in names)

    @property
    def attention(self) -> str:
        """Name of the attention implementation."""
        return str(self._inner.config._attn_implementation)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights and buffers, computed from the tensors."""
        return int(self._inner.get_memory_footprint())

    @property
    def offloaded(self) -> float:
        """The share of the weights' bytes that is not on the model's device, from 0 to 1."""
        return share_elsewhere(self._inner, self.device)

    @property
    def inner(self) -> Any:
        """The transformers model itself, for tests and benchmarks to compare with."""
        return self._inner

    def pack(self, held: torch.dtype, advance: Advance = unwatched) -> None:
        """Takes the quick way on a CPU: packed linear layers, and a lean pass where one is known.

        Linear layers come out in `held`, whatever they were loaded in, and all other weights in
        what that computes in. The lean pass is taken only if it answers as transformers' own does.
        `advance` is told how many layers are packed next, and 0 before any other step; it may
        raise, and the model is then of no use.
        """
        convert_tables(self._inner, computing(held), advance)
        kin = known(self._inner) and why_not_packed(held) is None
        if kin:
            fuse(self._inner, held, advance)
        self.kernel = pack(self._inner, held, advance)
        advance(0)
        if kin:
            with asked_before_layers(self._inner, lambda: advance(0)):
                self._take_lean_pass(held)

    def _take_lean_pass(self, held: torch.dtype) -> None:
        lean = LeanDecoder(self._inner)
        if answers_alike(self._inner, lean, held):
            self._lean = lean
            self.kernel += ", lean pass"
        else:
            self.kernel += "; the lean pass answers differently and is not used"

    def take_lean_pass(self) -> None:
        """Computes narrow passes by a lean pass over the layers as they were loaded, where one is
        known and answers as transformers' own does: on a card its kernels are half as many.

        Prompts stay with transformers, which has quicker attention for them. Raises Problem when
        the device's memory is exhausted.
        """
        if known(self._inner) and is_plain_throughout(self._inner):
            with memory_guard(self.name):
                self._lean, self.kernel = plain_lean_pass(self._inner, self.dtype)
            self._lean_rows = LARGEST

    def _lean_for(self, rows: int) -> LeanDecoder | None:
        """What computes a pass of so many rows, if that is a lean pass."""
        return self._lean if self._lean_rows is None or rows <= self._lean_rows else None

    @property
    def key_step(self) -> int:
        """Attention sums over a multiple of so many keys."""
        return STEP if self._lean is not None and self._lean.steady else 1

    @property
    def hidden(self) -> int:
        """Numbers in a feature: the state of a token behind the final norm."""
        return int(self._text_config.hidden_size)

    @property
    def dtype(self) -> torch.dtype:
        """What passes are computed in, and features come in."""
        found: torch.dtype = self._inner.get_input_embeddings().weight.dtype
        return found

    def open(
        self, capacity: int, *, features: bool = False, layers: tuple[int, ...] = ()
    ) -> Session:
        """An empty session with room for `capacity` tokens; keeps their features if asked to: the
        inputs of these layers, or the state behind the final norm.
        """
        reader = self.passes.reader(self, layers if features else None)
        return Session(reader, capacity, features=features, layers=layers)

    def new_cache(self, capacity: int) -> SequenceCache:
        """An empty cache with room for `capacity` tokens."""
        return open_cache(self._inner.config, capacity)

    def is_current(self, cache: SequenceCache) -> bool:
        """Whether a session opened now would read eagerly."""
        return self.passes.mode == "eager"

    @torch.inference_mode()
    def forward(
        self, ids: Tensor, cache: SequenceCache, rows: int, tree: Tree | None = None
    ) -> Tensor:
        """Feeds ids [n] behind the cache; logits of the last `rows` of them, [rows, width].

        The last ids may be a tree. Raises Problem when the device's memory is exhausted.
        """
        with memory_guard(self.name):
            logits = self.answer(ids, cache, rows, self._placed(tree, cache.length, len(ids)))
        cache.advance(len(ids))
        return logits

    def answer(
        self, ids: Tensor, cache: SequenceCache, rows: int, placed: Placed | None = None
    ) -> Tensor:
        """The logits of `forward`, of rows that may be placed otherwise than one behind the other;
        does not advance the cache.
        """
        if self._lean_for(len(ids)) is not None:
            return self.answer_with_features(ids, cache, rows, (), placed)[0]
        keep = {"logits_to_keep": max(rows, 1)} if self._keeps_rows else {}
        with self._as_deep_as(cache):
            output = self._inner(
                input_ids=ids[None],
                use_cache=True,
                **{self._cache_name: cache.inner},
                **keep,
                **self._told(placed),
            )
        logits: Tensor = output.logits[0]
        return logits[len(logits) - rows :]

    def _as_deep_as(self, cache: SequenceCache) -> AbstractContextManager[None]:
        """Passes of transformers' own go through as many layers as the cache has; a lean pass does
        so by itself.

        Raises RuntimeError where the model's layers are not to be found.
        """
        if cache.depth is None:
            return nullcontext()
        layers = LayerList.of(self._inner, self.layers)
        if layers is None:
            raise RuntimeError("its layers cannot be told apart")
        return layers.cut_to(cache.depth)

    @torch.inference_mode()
    def forward_with_features(
        self,
        ids: Tensor,
        cache: SequenceCache,
        rows: int,
        *,
        layers: tuple[int, ...] = (),
        tree: Tree | None = None,
    ) -> tuple[Tensor, Tensor]:
        """As `forward`, and the features of every token fed, [n, width].

        They are the inputs of these decoder layers (counted from 0), side by side; without any,
        the state behind the final norm. Only for models whose logits are their output layer's
        answer to that state. Raises Problem when the device's memory is exhausted.
        """
        with memory_guard(self.name):
            placed = self._placed(tree, cache.length, len(ids))
            found = self.answer_with_features(ids, cache, rows, layers, placed)
        cache.advance(len(ids))
        return found

    def answer_with_features(
        self,
        ids: Tensor,
        cache: SequenceCache,
        rows: int,
        layers: tuple[int, ...] = (),
        placed: Placed | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The logits and features of `forward_with_features`, as `answer` has its logits."""
        states, inputs = self._states(ids, cache, layers, placed)
        logits: Tensor = self._inner.get_output_embeddings()(states[len(ids) - rows :])
        if layers:
            return logits, torch.cat([inputs[layer] for layer in layers], dim=-1)
        return logits, states

    def _states(
        self,
        ids: Tensor,
        cache: SequenceCache,
        layers: tuple[int, ...],
        placed: Placed | None,
    ) -> tuple[Tensor, dict[int, Tensor]]:
        """The states behind the final norm, [n, hidden], and the inputs of these layers."""
        lean = self._lean_for(len(ids))
        if lean is not None:
            return lean.states_and_inputs(ids, cache, layers=layers, placed=placed)
        with self._as_deep_as(cache), layer_inputs(self._decoder, layers) as inputs:
            answer = self._decoder(
                input_ids=ids[None],
                use_cache=True,
                **{self._cache_name: cache.inner},
                **self._told(placed),
            )
        return answer.last_hidden_state[0], inputs

    def _placed(self, tree: Tree | None, start: int, fed: int) -> Placed | None:
        """Where rows stand of which the last are a tree."""
        if tree is None:
            return None
        end = start + fed
        like = torch.empty(0, dtype=self.dtype, device=self.device)
        keys = self._lean.keys(end) if self._lean is not None else None
        masks = Masks(start, end, like, keys=keys, tree=tree)
        return Placed(tree.places(start, end), end, masks)

    def _told(self, placed: Placed | None) -> dict[str, Any]:
        """What transformers has to be told of rows that are placed: their positions, and a mask
        that is added to scores, one for each kind of layer where there are several.
        """
        if placed is None:
            return {}
        kinds = set(getattr(self._text_config, "layer_types", None) or ())
        windows = {kind: self.sliding_window if "sliding" in kind else None for kind in kinds}
        made: Any = {
            kind: _for_a_batch(placed.masks.of(window)) for kind, window in windows.items()
        }
        if len(kinds) < 2:
            made = _for_a_batch(placed.masks.of(self.sliding_window))
        return {"attention_mask": made, "position_ids": placed.positions[None]}

    @torch.inference_mode()
    def forward_side_by_side(
        self, ids: Tensor, cache: Any, *, places: Tensor, seen: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Feeds one id to each of several sequences, [rows], at their `places`, [rows].

        `seen` [rows, longest] tells which keys of the cache each may see. Logits [rows, width] and
        features [rows, hidden]; only for models that `forward_with_features` is for.
        """
        states = self._decoder(
            input_ids=ids[:, None],
            position_ids=places[:, None],
            attention_mask=seen[:, None, None],
            use_cache=True,
            **{self._cache_name: cache},
        ).last_hidden_state[:, 0]
        logits: Tensor = self._inner.get_output_embeddings()(states)
        return logits, states


def _for_a_batch(mask: Tensor | None) -> Tensor | None:
    """A mask [rows, keys] as one of a batch and of all heads."""
    return None if mask is None else mask[None, None]
