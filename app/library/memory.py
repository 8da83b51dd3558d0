"""What a run holds in memory, computed before anything is loaded.

Weights and caches follow from a model's sizes. The working space is fitted to what was measured on
a CPU (tests/benchmarks/notes.md); on a graphics card nothing has been measured yet.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from app.library.fixed_memory import captured, placed_room
from app.library.head_size import HeadSize
from app.library.model_size import ModelSize
from app.library.precision_bytes import KINDS, number_bytes
from app.run.methods import Drafter
from app.run.settings import PassKind, Precision
from app.run.tree_shape import TreeShape

_CHUNK = 512
"""Most tokens of a prompt that one pass feeds."""
_COMPUTED = 4
"""Bytes that are computed beside each number of a pass's activations: what its steps leave free
and is not given back at once."""
_ROWS_AT_ONCE = 6
"""Copies of a round's logits in fp32: as they come, penalised, and the laws of target and draft."""
_OF_LIBRARIES = {"cpu": 16 << 20, "mps": 256 << 20, "cuda": 512 << 20}
"""Kernels, their own memory, and on a card its context."""
DEVICE_KINDS = tuple(_OF_LIBRARIES)
"""The kinds of devices that a plan can be made for."""
CACHE_STEP = 16
"""A cache has room for a multiple of so many tokens."""
_TOKENIZER = 13
"""A tokenizer in the machine's memory, as a multiple of its file."""
_OTHER_TOKENS = 2
"""Tokens of a draft of another vocabulary that a session has room for, for each of the target's."""


class Part(NamedTuple):
    """A part of what is held, for whoever shows it."""

    name: str
    """The field of `Held`."""
    title: str
    meaning: str


PARTS = (
    Part("target", "Target", "Its weights, in the precision that they are held in."),
    Part(
        "draft",
        "Draft",
        "The weights of what guesses ahead: a draft model, a draft head with its copy of the "
        "target's output rows, or modules of the target itself.",
    ),
    Part(
        "caches",
        "Caches",
        "The keys and values of every session, taken for the longest text that there may be.",
    ),
    Part(
        "working",
        "Working space",
        "What a pass over the prompt needs for a moment, and what libraries take for themselves.",
    ),
)
"""The parts in the order in which they are shown."""


class Held(msgspec.Struct, frozen=True):
    """What a run holds on one device, in bytes."""

    device: str
    target: int = 0
    """Weights of the target."""
    draft: int = 0
    """Weights of the draft model, the draft head or the target's own modules."""
    caches: int = 0
    """Keys and values of every session, at the longest text."""
    working: int = 0
    """What loading or a pass needs for a moment, and what libraries keep."""

    @property
    def total(self) -> int:
        """All of it, at its peak."""
        return self.target + self.draft + self.caches + self.working


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A run, as far as its memory depends on it."""

    target: ModelSize
    precision: Precision
    device: str = "cpu"
    """Its kind and number: "cuda:1"."""
    draft: ModelSize | None = None
    draft_precision: Precision = "bf16"
    draft_device: str = ""
    """Empty: the target's."""
    same_weights: bool = False
    """Whether the draft model is the target's own files."""
    head: HeadSize | None = None
    drafter: Drafter = "nothing"
    """What the method asks for guesses; whatever the pair has besides is loaded all the same, but
    for a target's own modules.
    """
    any_vocabulary: bool = False
    """Whether the method's draft model may read other tokens, and so more of them."""
    tree: TreeShape | None = None
    """Of guesses that branch."""
    tokens: int
    """Of prompt and text: the room that each session is opened with."""
    draft_length: int = 4
    passes: PassKind = "auto"
    """How passes are computed."""
    baseline: bool = True
    at_once: bool = True
    """Whether both lanes keep their sessions: in turns, and from turn to turn of a conversation."""

    @property
    def drafts_on(self) -> str:
        """The device of the draft model."""
        return self.draft_device or self.device

    @property
    def text(self) -> int:
        """Tokens of the longest text that there may be."""
        return min(self.tokens, self.target.shape.context_length or self.tokens)

    @property
    def held(self) -> int:
        """Tokens that the target's session has room for where guesses are read, those of a tree
        beside the text too.
        """
        return self.text + (self.tree.room(self.draft_length) if self.tree else 0)

    @property
    def rows(self) -> int:
        """Rows of the target's pass over a whole draft, and the text's last token."""
        guesses = self.tree.nodes_at(self.draft_length) if self.tree else self.draft_length
        return guesses + 1

    def captures(self, device: str) -> bool:
        """Whether passes on this device are captured as graphs, if they can be."""
        return self.passes == "auto" and device.startswith("cuda")

    def is_placed(self, device: str) -> bool:
        """Whether sessions on this device have memory for passes of fixed shape."""
        return self.passes == "fixed" or self.captures(device)

    def drafted(self, draft: ModelSize) -> int:
        """Tokens that the draft model's session has room for."""
        tokens = self.text * (_OTHER_TOKENS if self.any_vocabulary else 1)
        return min(tokens, draft.shape.context_length or tokens)


def estimate(plan: Plan) -> tuple[Held, ...]:
    """What the run holds on each device that it uses, the target's first."""
    ahead = _draft_weights(plan)
    apart = plan.draft is not None and plan.drafts_on != plan.device
    head = _head_weights(plan)
    target_caches, draft_caches = _caches(plan)
    mine = Held(
        plan.device,
        target=weights(plan.target, plan.precision, plan.device),
        draft=head + _mtp_weights(plan) + (0 if apart else ahead),
        caches=target_caches + (0 if apart else draft_caches),
    )
    working = _working(plan.target, plan.precision, plan.device, tokens=plan.text, rows=plan.rows)
    graphs, graphs_ahead = captured(plan)
    if plan.draft is None:
        return (_with(mine, working + graphs),)
    beside = _working(
        plan.draft,
        plan.draft_precision,
        plan.drafts_on,
        tokens=plan.drafted(plan.draft),
        rows=plan.rows,
    )
    if not apart:
        return (_with(mine, max(working, beside) + graphs + graphs_ahead),)
    other = Held(plan.drafts_on, draft=ahead, caches=draft_caches)
    return (_with(mine, working + graphs), _with(other, beside + graphs_ahead))


def weights(size: ModelSize, precision: Precision, device: str) -> int:
    """Bytes of a model's weights in a precision; in their own, where they stay in that."""
    if size.held is not None:
        return size.file_bytes
    kind = KINDS[precision]
    rest = size.shape.parameters - size.linear
    own = kind.output * size.table if size.shape.tied and _is_cpu(device) else 0
    if not size.shape.tied and kind.output and kind.output < kind.rest and _is_cpu(device):
        own = (kind.output - kind.rest) * size.table  # the output layer is packed as well
    return int(kind.linear * size.linear + kind.rest * rest + own)


def cache_bytes(size: ModelSize, precision: Precision, tokens: int, *, placed: bool = False) -> int:
    """Bytes of the keys and values of one session with room for so many tokens; `placed` where
    passes of fixed shape write to it.
    """
    room = placed_room(tokens) if placed else _room(tokens)
    return size.shape.layers * size.kept * room * number_bytes(precision)


def _room(tokens: int) -> int:
    """The tokens that a cache has room for."""
    return -(-tokens // CACHE_STEP) * CACHE_STEP


def _draft_weights(plan: Plan) -> int:
    if plan.draft is None:
        return 0
    shared = plan.same_weights and plan.drafts_on == plan.device
    if shared and plan.draft_precision == plan.precision:
        return 0
    return weights(plan.draft, plan.draft_precision, plan.drafts_on)


def _head_weights(plan: Plan) -> int:
    return plan.head.weights * number_bytes(plan.precision) if plan.head else 0


def _mtp_weights(plan: Plan) -> int:
    """The modules of the target, where the method asks for them."""
    return plan.target.mtp * number_bytes(plan.precision) if plan.drafter == "mtp" else 0


def _caches(plan: Plan) -> tuple[int, int]:
    """Bytes of every session of the target, with a head's beside it, and of the draft model's."""
    tokens, placed = plan.held, plan.is_placed(plan.device)
    plain = cache_bytes(plan.target, plan.precision, tokens, placed=placed)
    ahead = 0
    fast = plain
    if plan.drafter == "model" and plan.draft is not None:
        ahead = cache_bytes(
            plan.draft,
            plan.draft_precision,
            plan.drafted(plan.draft),
            placed=plan.is_placed(plan.drafts_on),
        )
    if plan.drafter == "head" and plan.head is not None:
        held = plan.head.kept * (placed_room(tokens) if placed else _room(tokens))
        features = plan.head.features * tokens
        fast += (held + features) * number_bytes(plan.precision)
    if plan.drafter == "mtp":
        # A layer each; beside the target's features, the answers of all modules but the last.
        modules, kept = plan.target.mtp_modules, plan.target.shape.hidden * tokens
        fast += plain // plan.target.shape.layers * modules
        fast += max(modules, 1) * kept * number_bytes(plan.precision)
    if not plan.baseline:
        return fast, ahead
    alone = cache_bytes(plan.target, plan.precision, plan.text, placed=placed)
    return (fast + alone, ahead) if plan.at_once else (max(fast, alone), ahead)


def _working(size: ModelSize, precision: Precision, device: str, *, tokens: int, rows: int) -> int:
    """The widest moment of a prompt's pass or of a round of so many rows, and what libraries
    take.
    """
    shape = size.shape
    fed, number = min(_CHUNK, tokens), number_bytes(precision)
    vectors = (shape.heads + 2 * shape.key_value_heads) * shape.head_size
    inside = 2 * (size.feed_forward - 1) * shape.intermediate
    numbers = 4 * shape.hidden + inside + 3 * vectors
    passed = fed * numbers * (number + _COMPUTED)
    masks = 2 * fed * tokens * number
    made = 2 * tokens * shape.heads * shape.head_size * number if size.latent else 0
    rounds = _ROWS_AT_ONCE * rows * shape.vocabulary * 4
    libraries = _OF_LIBRARIES[device.partition(":")[0]]
    tokenizer = _TOKENIZER * size.tokenizer if _is_cpu(device) else 0
    return max(passed + masks + made, rounds + made) + libraries + tokenizer


def _with(held: Held, working: int) -> Held:
    return msgspec.structs.replace(held, working=working)


def _is_cpu(device: str) -> bool:
    return device.startswith("cpu")
