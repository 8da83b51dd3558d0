"""Whether a lean pass answers as transformers' own pass over the same weights does."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from app.models.cache import open_cache
from app.models.exhausted import is_out_of_memory
from app.models.lean_decoder import LeanDecoder
from app.run.problems import Cancelled

_LONGEST_WINDOW = 256
"""Windows up to so many tokens are tried past their end."""

_ROUNDING = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 5e-2, torch.int8: 0.2}
"""The length of the difference that rounding may make, as a share of the answer's own.

Where activations are rounded to 8 bits, a last bit that differs becomes a step that differs, and
over many layers as much as the rounding itself does.
"""


@torch.inference_mode()
def answers_alike(inner: Any, lean: LeanDecoder, held: torch.dtype) -> bool:
    """Whether both give the same logits but for rounding: a text, then rows behind it.

    The linear layers are held in `held`, or multiplied in it. The rows come as one, as a few and as
    many, for each goes another way through the attention.
    """
    window = getattr(inner.config, "sliding_window", None) or 0
    first = window + 2 if window <= _LONGEST_WINDOW else 2
    widths = [first, 1, 4, 40]
    vocabulary = inner.get_input_embeddings().num_embeddings
    ids = torch.tensor([(17 + 31 * place) % vocabulary for place in range(sum(widths))])
    ids = ids.to(inner.get_input_embeddings().weight.device)
    cache = open_cache(inner.config, len(ids))
    mine = []
    for fed in torch.split(ids, widths):
        states = lean.states(fed, cache)
        cache.advance(len(fed))
        mine.append(lean.logits(states))
    theirs = inner(input_ids=ids[None], use_cache=False).logits[0]
    return _apart(torch.cat(mine), theirs) <= _ROUNDING[held]


def plain_lean_pass(inner: Any, dtype: torch.dtype) -> tuple[LeanDecoder | None, str]:
    """A lean pass over a model's layers as they were loaded, if it answers as the model does; and
    what the pass is called in reports, or why there is none.
    """
    try:
        lean = LeanDecoder(inner)
        alike = answers_alike(inner, lean, dtype)
    except Exception as error:  # layers of another release may do anything
        if isinstance(error, Cancelled) or is_out_of_memory(error):
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return None, f"the lean pass cannot be computed ({reason})"
    if alike:
        return lean, "lean pass"
    return None, "the lean pass answers differently and is not used"


def _apart(mine: Tensor, theirs: Tensor) -> float:
    return float((mine.float() - theirs.float()).norm() / theirs.float().norm())
