"""What a person asks for: one frozen object that every lane of a run is given."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from app.run.limits import Limit
from app.run.problems import Problem

GREEDY_TEMPERATURE = 1e-5
"""At or below this temperature target and draft are both greedy: the one cut-off for all code."""

LONGEST_DRAFT = 64
"""Most tokens that a round may be asked to guess."""

Precision = Literal["fp32", "bf16", "fp16", "int8", "llm-int8", "nf4", "fp4"]
"""How weights are held: the names are those on screen and in reports."""

Detail = Literal["light", "full"]
"""`light` keeps what was decided; `full` also the best tokens of target, draft and residual."""

PassKind = Literal["auto", "eager", "fixed"]
"""How passes are computed. `auto`: as captured graphs on a card where they answer as eager passes
do, else eagerly. `eager`: as the library does. `fixed`: in the shapes of graphs, without any."""

Order = Literal["interleaved", "alternated"]
"""`interleaved` for looking: lanes take turns. `alternated` for measuring: whole lanes, A B B A."""

OptionValue = bool | int | float | str


SAMPLING_LIMITS: dict[str, Limit] = {
    "temperature": Limit("temperature", 0.0, math.inf, "0 means greedy"),
    "top_k": Limit("top-k", 0, 2**31 - 1, "0 keeps all tokens"),
    "top_p": Limit("top-p", 0.0, 1.0, "1 keeps all tokens", low_open=True),
    "min_p": Limit("min-p", 0.0, 1.0, "0 keeps all tokens"),
    "repetition_penalty": Limit("repetition penalty", 0.001, 1_000.0, "1 is off"),
    "presence_penalty": Limit("presence penalty", -1_000.0, 1_000.0, "0 is off"),
    "seed": Limit("seed", -(2**63), 2**63 - 1, "any whole number of 64 bits"),
}
"""What the numbers of a sampling may be, by their names."""

RUN_LIMITS: dict[str, Limit] = {
    "draft_length": Limit("draft length", 0, LONGEST_DRAFT, "0 means no speculation"),
    "max_new_tokens": Limit("max new tokens", 0, 1_000_000, "0 gives an empty text"),
    "repetitions": Limit("repeats", 1, 1_000, "1 is a single pair of lanes"),
    "context_length": Limit("context length", 1, 10_000_000, "in tokens"),
}
"""What the numbers of a run may be, by their names; one that is None is left open."""


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one side of a conversation has said."""

    role: Literal["user", "assistant"]
    text: str


class Sampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the next token is drawn from a model's logits; the same object serves both lanes."""

    temperature: float = 0.0
    top_k: int = 0
    """Keep the k likeliest tokens; 0 keeps all."""
    top_p: float = 1.0
    """Keep the fewest tokens whose probability reaches p; 1 keeps all."""
    min_p: float = 0.0
    """Keep tokens at least this share as likely as the likeliest; 0 keeps all."""
    repetition_penalty: float = 1.0
    """Divides (below zero: multiplies) the logits of tokens seen in prompt or text; 1 is off."""
    presence_penalty: float = 0.0
    """Subtracted from the logits of tokens seen in the text written so far; 0 is off."""
    seed: int = 0

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken without a draw."""
        return self.temperature <= GREEDY_TEMPERATURE

    @property
    def penalised(self) -> bool:
        """Whether logits depend on the tokens before them."""
        return self.repetition_penalty != 1.0 or self.presence_penalty != 0.0

    def check(self) -> None:
        """Raises Problem for a value outside its range."""
        for name, limit in SAMPLING_LIMITS.items():
            limit.check(getattr(self, name))


class RunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that defines a run, but for the machine it runs on."""

    pair: str
    prompt: str
    system: str = ""
    raw: bool = False
    """Give the prompt to the model as it is, without its chat template."""
    earlier: tuple[Message, ...] = ()
    """What was said before the prompt: the turns of a conversation, user and assistant in turn."""
    continues: str = ""
    """The run that this one goes on from."""
    prompt_ids: tuple[int, ...] = ()
    """With `continues`: prompt and text of that run, to be read instead of the prompt."""
    method: str = "ngram"
    method_options: dict[str, OptionValue] = {}
    draft_length: int = 4
    draft_length_policy: str = "fixed"
    draft_length_options: dict[str, OptionValue] = {}
    rule: str = "exact"
    rule_options: dict[str, OptionValue] = {}
    sampling: Sampling = Sampling()
    max_new_tokens: int = 256
    stop_strings: tuple[str, ...] = ()
    ignore_end_of_text: bool = False
    precision: Precision | None = None
    """The target's; None leaves the choice to this machine."""
    draft_precision: Precision | None = None
    """The draft model's; None takes the pair's own."""
    device: str | None = None
    """The target's; None leaves the choice to this machine."""
    draft_device: str | None = None
    """The draft model's; None takes the pair's own, or else the target's."""
    allow_offload: bool = False
    """Whether weights that a card has no room for may stay in the machine's own memory."""
    passes: PassKind = "auto"
    """How passes are computed."""
    context_length: int | None = None
    """Most tokens that prompt and text may be together; None takes the target's own limit."""
    baseline: bool = True
    repetitions: int = 1
    order: Order = "alternated"
    detail: Detail = "light"

    @property
    def turn(self) -> int:
        """Which turn of a conversation the prompt is, from 0."""
        return sum(message.role == "user" for message in self.earlier)

    def check(self) -> None:
        """Raises Problem for a value outside its range."""
        self.sampling.check()
        for name, limit in RUN_LIMITS.items():
            value = getattr(self, name)
            if value is not None:
                limit.check(value)
        if bool(self.continues) != bool(self.prompt_ids):
            raise Problem(
                "A run that goes on needs both the run it continues and its ids.",
                "Continue a run from the window, or start a new one.",
            )
        if "" in self.stop_strings:
            raise Problem(
                "A stop string is empty.", "Leave it out, or write what should end the text."
            )
