"""A graphics card where there is none: tensors that say they are on one, and what waits for it.

The numbers are a CPU's, in tensors that name another device. While a `Card` is entered it sees
every operation, and notes each that would make the host wait for a real card, by what torch's CUDA
code does: numbers asked for, sizes that depend on values, copies that block. Copies to the card
that need not be waited for are free up to 64 KB, as CUDA's programming guide says of memory that is
not pinned; while something is recorded they are an error, as is whatever waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

CARD = torch.device("cuda", 0)
_CPU = torch.device("cpu")
_STAGED = 64 * 1024
"""Bytes that CUDA takes along at once from memory that is not pinned."""

aten = torch.ops.aten

_ASKING = {
    "_local_scalar_dense": "a number is asked for",
    "equal": "a number is asked for",
    "nonzero": "as many rows as there are",
    "masked_select": "as many numbers as there are",
    "unique": "as many as there are",
    "_unique": "as many as there are",
    "_unique2": "as many as there are",
    "unique_dim": "as many as there are",
    "unique_consecutive": "as many as there are",
    "isin": "of a longer list, unique is asked first",
    "bincount": "as many bins as the largest says",
    "histc": "the bounds are asked for",
    "multinomial": "the weights are checked",
}
"""Operations whose answer, or the size of it, the host has to know."""

_NO_KERNEL = {
    "_reshape_alias",
    "_unsafe_view",
    "alias",
    "as_strided",
    "detach",
    "diagonal",
    "empty",
    "empty_like",
    "empty_strided",
    "expand",
    "lift_fresh",
    "new_empty",
    "permute",
    "scalar_tensor",  # a number beside a tensor goes along with the kernel
    "select",
    "slice",
    "split",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unfold",
    "unsqueeze",
    "view",
    "_fused_sdp_choice",
}
"""Operations that only look at memory in another way, or take it."""


class OnCard(Tensor):
    """A tensor that says that it is on the card; `held` has its numbers."""

    held: Tensor
    is_number = False
    """Whether it stands for a number of the host, which goes along with a kernel."""

    @staticmethod
    def __new__(cls, held: Tensor) -> OnCard:
        made: OnCard = Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device="meta",  # to torch's own code, which else would ask for a build with CUDA
        )
        made.held = held
        return made

    @property
    def device(self) -> torch.device:
        return CARD

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} on a card that no one stands in for")

    def tolist(self) -> Any:
        """The numbers, for which torch copies a tensor to the host."""
        return self.cpu().tolist()


class Card(TorchDispatchMode):
    """Stands in for the card: computes what is asked of it, and notes what would wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []
        """Why the host would have waited, in order."""
        self.drawn: list[str] = []
        """What has drawn from the card's own generator of random numbers."""
        self.kernels: Counter[str] = Counter()
        """Operations on the card by name; one may be several kernels, a view is none."""
        self.given = 0
        self.done = 0
        """Operations given to the card, and how many of them are known to be done."""
        self._entered = 0
        self._records = False

    def __enter__(self) -> Card:
        if not self._entered:
            self._lazy_init, torch.cuda._lazy_init = torch.cuda._lazy_init, lambda: None
            # So torch.tensor(..., device=...) copies as it does with a card, where it can be seen.
            torch._C._set_only_lift_cpu_tensors(True)
        self._entered += 1
        super().__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        super().__exit__(*problem)
        self._entered -= 1
        if not self._entered:
            torch._C._set_only_lift_cpu_tensors(False)
            torch.cuda._lazy_init = self._lazy_init

    @contextmanager
    def recording(self) -> Iterator[None]:
        """While it lasts, what no graph can hold raises RuntimeError."""
        self._records = True
        try:
            yield
        finally:
            self._records = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            with self:
                return func.decompose(*args, **kwargs)
        mine = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, OnCard)]
        asked = kwargs.get("device")
        here = bool(mine) if asked is None else torch.device(asked).type in (CARD.type, "meta")
        name = func.overloadpacket.__name__
        if here and torch.Tag.nondeterministic_seeded in func.tags and not kwargs.get("generator"):
            self.drawn.append(name)
        self._note(name, args, kwargs, mine=bool(mine), here=here)
        if name == "_fused_sdp_choice":
            return 0  # the way that is made of single operations
        if asked is not None:
            kwargs["device"] = _CPU
        answer = func(*pytree.tree_map(_held, args), **pytree.tree_map(_held, kwargs))
        known = {id(one.held): one for one in mine}

        def shown(value: Any) -> Any:
            if not isinstance(value, Tensor) or not here:
                return value
            if id(value) in known:
                return known[id(value)]
            made = OnCard(value)
            made.is_number = name == "scalar_tensor"
            return made

        with torch.inference_mode(False):  # else torch counts versions of what has none
            return pytree.tree_map(shown, answer)

    def _note(self, name: str, args: Any, kwargs: Any, *, mine: bool, here: bool) -> None:
        if not (mine or here):
            return
        if name not in _NO_KERNEL:
            self.kernels[name] += 1
            self.given += 1
        why = _why_waited(name, args, kwargs, mine=mine, here=here)
        if self._records and (why or _comes_from_host(name, args, here=here)):
            raise RuntimeError(f"{name}: {why or 'a copy from the host'}, while it is recorded")
        if why:
            self.waits.append(f"{name}: {why}")
            self.done = self.given


class CardEvent:
    """An event in the card's stream; to wait for it is to wait for what was given before it."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self._place = 0

    def record(self) -> None:
        self._place = self._card.given

    def synchronize(self) -> None:
        if self._place > self._card.done:
            self._card.waits.append("an event is waited for")
            self._card.done = self._place

    def elapsed_time(self, end: CardEvent) -> float:
        assert max(self._place, end._place) <= self._card.done, "an event that is not over yet"
        return 1.0


def put_on_card(module: nn.Module) -> None:
    """Takes all weights and buffers of a module to the card."""
    held: dict[int, Tensor] = {}

    def moved(tensor: Tensor) -> Tensor:
        return held.setdefault(id(tensor), OnCard(tensor.detach()))

    for part in module.modules():
        for named in (part._parameters, part._buffers):
            for name, tensor in named.items():
                if tensor is not None and not isinstance(tensor, OnCard):
                    named[name] = moved(tensor)


def _held(value: Any) -> Any:
    return value.held if isinstance(value, OnCard) else value


def _why_waited(name: str, args: Any, kwargs: Any, *, mine: bool, here: bool) -> str:
    """Why the host would wait in this operation; empty if it would not."""
    if name in _ASKING:
        return _ASKING[name] if mine else ""
    if name == "repeat_interleave" and kwargs.get("output_size") is None:
        return "as many as the counts say"
    if name == "_to_copy":
        return _why_copy_waits(args[0], there=not here, free=kwargs.get("non_blocking", False))
    if name == "copy_":
        there, source = not isinstance(args[0], OnCard), args[1]
        return _why_copy_waits(source, there=there, free=args[2] if len(args) > 2 else False)
    if name in ("index", "index_put", "index_put_", "_index_put_impl_"):
        return _why_index_waits(name, args)
    return ""


def _why_copy_waits(source: Tensor, *, there: bool, free: bool) -> str:
    """A copy of `source` to the host (`there`) or to the card, `free` to come when it may."""
    leaves = isinstance(source, OnCard)
    if leaves != there or not source.numel():
        return ""
    if there:
        return "numbers come home"
    if not free:
        return "a copy from the host that blocks"
    staged = source.numel() * source.element_size() <= _STAGED
    return "" if staged else "a copy from the host, too long to be taken along"


def _comes_from_host(name: str, args: Any, *, here: bool) -> bool:
    """Whether it copies numbers of the host to the card."""
    if name not in ("_to_copy", "copy_") or not here:
        return False
    source = args[0] if name == "_to_copy" else args[1]
    return not isinstance(source, OnCard) and source.numel() > 0


def _why_index_waits(name: str, args: Any) -> str:
    """Truths as an index are counted first, but where one number is set by them; what lies on the
    host is copied, and waited for.
    """
    places = [place for place in args[1] if place is not None]
    given = None if name == "index" else args[2]
    number = given is not None and not given.dim() and _is_of_host(given)
    adds = len(args) > 3 and args[3]
    if number and not adds and len(places) == 1 and _is_truths_there(places[0]):
        return ""  # torch fills by a mask
    if any(place.dtype in (torch.bool, torch.uint8) for place in places):
        return "truths as an index"
    if any(not isinstance(place, OnCard) for place in places):
        return "an index from the host"
    return "a value from the host" if number else ""


def _is_of_host(value: Tensor) -> bool:
    return not isinstance(value, OnCard) or value.is_number


def _is_truths_there(place: Tensor) -> bool:
    return isinstance(place, OnCard) and place.dtype in (torch.bool, torch.uint8)
