"""The target's own first layers guess, token by token.

Source: LayerSkip, Elhoushi et al. 2024 (arXiv 2404.16710), section 4. To draw from them is as with
any draft model: theirs is the session of the role `draft`.
"""

from __future__ import annotations

from app.decoding.proposers.draft_model import DraftModel


class EarlyExitDraft(DraftModel):
    """Drafts with the first layers of the target."""

    source = "early-exit"
    reads_prompt = False
