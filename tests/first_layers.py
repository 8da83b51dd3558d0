"""A target whose first layers guess, with sessions of both whose chains are of fixed shape."""

from __future__ import annotations

import torch
from kept_drafts import quiet

from app.decoding.drivers import Sessions
from app.decoding.proposers import Surroundings, make_proposer
from app.models.block import Block
from app.models.early_exit import EarlyExit
from app.models.fixed.passes import Passes
from app.models.pair import DraftWidths
from app.run.settings import Sampling
from tapes import Tape, taped
from toys import tiny_llama

CPU = torch.device("cpu")
PROMPT = [3, 1, 4, 1, 5]
CAPACITY = 90
LAYERS = 3


def exiting_target():
    """A target whose second layers change little of what the first one says."""
    model = tiny_llama(4, num_hidden_layers=LAYERS)
    with torch.no_grad():
        for layer in model.inner.model.layers[1:]:
            layer.self_attn.o_proj.weight.mul_(0.2)
            layer.mlp.down_proj.weight.mul_(0.2)
    return model


def passes_of(mode, tape=Tape):
    """Passes of a mode, and what was recorded of them."""
    if mode == "taped":
        return taped(tape)
    return Passes("eager" if mode == "eager" else "fixed"), None


def proposer_of(target, sampling=Sampling(), *, chained=True, end_ids=()):
    """What asks the first layers for guesses, made as a run makes it."""
    around = Surroundings(
        sampling=sampling,
        end_ids=end_ids,
        prompt_length=len(PROMPT),
        device=CPU,
        draft_device=CPU,
        widths=DraftWidths(target.width, target.width, target.width),
        draft_context=512,
        chained=chained,
    )
    return make_proposer("early-exit", {}, around)


def beside(mode, target, *, layers=1, capacity=CAPACITY, tape=Tape):
    """Sessions of a target and its first layers, ready for any round, and what was recorded."""
    target.passes, tapes = passes_of(mode, tape)
    session = target.open(capacity)
    both = Sessions({"target": session, "draft": EarlyExit(target, layers).open(session, capacity)})
    both.prepare("target", 6, behind=len(PROMPT) - 1, advance=quiet)
    return both, tapes


def greedily(exits, text, count):
    """Guesses asked for one by one."""
    block = Block()
    for _ in range(count):
        block.append(exits.read(text, block, rows=1).logits[-1].argmax())
    return block.ids
