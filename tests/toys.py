"""Toy models and tokenizers for tests: scripted targets, tiny random networks, byte tokenizers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from app.decoding.clock import HostClock
from app.decoding.commit import Text
from app.decoding.contracts import Read, Unread
from app.decoding.draft_length import Fixed
from app.decoding.drivers import Sessions, run_lane
from app.decoding.loop import LaneSetup, decode
from app.decoding.proposers.draft_model import DraftModel, DraftSetup
from app.decoding.proposers.nothing import Nothing
from app.decoding.verifiers import make_verifier
from app.library.head_folder import MadeFor, check_head
from app.models.detokenizer import Detokenizer
from app.models.head_file import save_head
from app.models.language_model import LanguageModel
from app.models.loaded_head import LoadedHead
from app.models.pair import DraftWidths
from app.models.session import Reading, Session
from app.run.events import At
from app.run.record import Repetition
from app.run.settings import Sampling
from app.selftest.tiny_models import last_layer_head

Law = Callable[[Sequence[int]], Sequence[float]]
"""Logits of the next token, as a function of all tokens before it."""


class ScriptedCache:
    """The ids that were fed, and nothing else."""

    def __init__(self, capacity: int) -> None:
        self.ids: list[int] = []
        self.capacity = capacity
        self.byte_count = 0

    @property
    def length(self) -> int:
        return len(self.ids)

    def crop(self, length: int) -> None:
        assert 0 <= length <= len(self.ids), f"crop to {length} of {len(self.ids)}"
        del self.ids[length:]

    def keep(self, start: int, places) -> None:
        self.ids[start:] = [self.ids[start + place] for place in places.tolist()]


class ScriptedLM:
    """F1: logits come from a function of the prefix; the cache is the list of ids fed.

    It keeps every prefix that a wanted row stood for, so that a test can see what was asked.
    """

    def __init__(self, law: Law) -> None:
        self.law = law
        self.device = torch.device("cpu")
        self.caches: list[ScriptedCache] = []
        self.widths: list[int] = []

    def new_cache(self, capacity: int) -> ScriptedCache:
        self.caches.append(ScriptedCache(capacity))
        return self.caches[-1]

    def forward(self, ids, cache: ScriptedCache, rows: int, tree=None):
        fed = ids.tolist()
        assert fed or not rows, "nothing was fed, but rows are wanted"
        cache.ids += fed
        self.widths.append(len(fed))
        ends = range(len(cache.ids) - rows, len(cache.ids))
        return torch.tensor([list(self.law(_prefix(cache.ids, end, tree))) for end in ends])


def _prefix(ids: list[int], end: int, tree) -> list[int]:
    """What the row at place `end` sees: all before it, or the text and its own branch."""
    text = len(ids) - (len(tree.parents) if tree else 0)
    if end < text:
        return ids[: end + 1]
    way, place = [], end - text
    while place >= 0:
        way.insert(0, ids[text + place])
        place = int(tree.parents[place])
    return ids[:text] + way


def next_is(token_after: Callable[[Sequence[int]], int], width: int = 64) -> Law:
    """A law that puts nearly all weight on one token."""

    def law(prefix: Sequence[int]) -> list[float]:
        logits = [0.0] * width
        logits[token_after(prefix)] = 12.0
        return logits

    return law


def decode_pieces(ids: Sequence[int]) -> str:
    """A text in which every id is a letter of its own."""
    return "".join(chr(0x100 + token) for token in ids)


def make_lane(
    prompt: Sequence[int],
    *,
    proposer=None,
    sampling: Sampling = Sampling(),
    draft_length: int = 4,
    max_new_tokens: int = 24,
    end_ids: Sequence[int] = (),
    stop_strings: tuple[str, ...] = (),
    context: int = 4096,
    detail="light",
    clock=None,
    device="cpu",
    draft_clock=None,
    verifier=None,
    decode_ids=decode_pieces,
) -> LaneSetup:
    """A lane over a prompt of ids, ready for `decode`."""
    return LaneSetup(
        at=At("test", "speculative"),
        text=Text(
            list(prompt),
            Detokenizer(decode_ids, silent=end_ids),
            max_new_tokens,
            frozenset(end_ids),
            stop_strings,
        ),
        proposer=proposer or Nothing(),
        verifier=verifier or make_verifier("exact", sampling),
        draft_length=Fixed(draft_length),
        sampling=sampling,
        clock=clock or HostClock(),
        device=torch.device(device),
        draft_clock=draft_clock,
        context=context,
        detail=detail,
    )


def run(lane: LaneSetup, reader, *, pause=lambda: None) -> Repetition:
    """Drives a lane to its end, and returns what was recorded."""
    repetition = Repetition(lane.at)
    for event in run_lane(decode(lane), reader, pause):
        if type(event).__name__ != "LaneStarted":
            repetition.apply(event)
    return repetition


def sessions(target, draft=None, capacity: int = 4096) -> Sessions:
    """Fresh sessions of one or two models."""
    roles = {"target": Session(target, capacity)}
    if draft is not None:
        roles["draft"] = Session(draft, capacity)
    return Sessions(roles)


class Script:
    """A reader without sessions: answers the target's reads from a function of the prefix."""

    def __init__(self, law: Law) -> None:
        self.law = law

    def answer(self, request):
        if isinstance(request, Unread):
            return len(request.text)
        assert isinstance(request, Read)
        whole = [*request.text[: request.upto], *(request.block.ids if request.block else [])]
        ends = range(len(whole) - request.rows, len(whole))
        return Reading(torch.tensor([list(self.law(whole[: end + 1])) for end in ends]))


def draft_model(
    *,
    width: int,
    sampling: Sampling = Sampling(),
    context: int = 4096,
    prompt_length: int = 1,
    end_ids: Sequence[int] = (),
    shared: int | None = None,
    rows: int | None = None,
    shared_noise: bool = False,
    stop=None,
    chained: bool = False,
) -> DraftModel:
    """The draft-model proposer on a CPU, for a target of this width."""
    setup = DraftSetup(
        sampling=sampling,
        widths=DraftWidths(width, shared or width, rows or width),
        context=context,
        device=torch.device("cpu"),
        prompt_length=prompt_length,
        end_ids=end_ids,
        shared_noise=shared_noise,
        stop=stop,
        chained=chained,
    )
    return DraftModel(setup)


class Guesses:
    """A proposer that guesses what a function says, and claims to be certain."""

    def __init__(self, guess: Callable[[Sequence[int], int], Sequence[int]]) -> None:
        self.guess = guess

    def propose(self, text, *, limit, round_):
        from app.decoding.contracts import Draft
        from app.models.block import Block

        return Draft(Block(list(self.guess(text, round_))[:limit]), source="guesses")
        yield


def tiny_llama(seed: int = 0, *, noise: float = 0.0, vocabulary: int = 64, **changes):
    """F2: a random Llama in fp32; with `noise`, the same weights disturbed."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        **{
            "vocab_size": vocabulary,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            **changes,
        }
    )
    torch.manual_seed(seed)
    model = LlamaForCausalLM(config).eval()
    # Larger weights than the default: a random model should have opinions.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4.0 if parameter.dim() > 1 else 1.0)
            if noise:
                parameter.add_(noise * torch.randn_like(parameter))
    return wrapped(model)


def wrapped(model) -> LanguageModel:
    """A transformers model as the engine sees it."""
    return LanguageModel(model, name="tiny", folder=Path("tiny"), precision="fp32")


def tiny_head(target: LanguageModel, *, hears: float = 0.0) -> LoadedHead:
    """A head for a target of the llama kind, which guesses right now and then; it `hears` so much
    of the target's features.
    """
    ids = torch.tensor([token for token in range(target.width) if token % 3])
    made_for = MadeFor("tiny", "unknown", target.width)
    head = last_layer_head(target.inner, ids)
    with torch.no_grad():
        head.fc.weight[:, target.hidden :] = hears * torch.eye(target.hidden)
    with tempfile.TemporaryDirectory() as folder:
        save_head(Path(folder), head, ids, made_for, "Not at all.")
        return LoadedHead(check_head(Path(folder)), target)


class FakeClock:
    """F7: time that a test moves, and a device that is done only when waited for."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def mark(self) -> float:
        return self.time

    def seconds(self, start: float, end: float) -> float:
        return end - start

    def wait(self) -> None:
        pass

    def skip(self, seconds: float) -> None:
        self.time -= seconds

    def spend(self, seconds: float) -> None:
        self.time += seconds
