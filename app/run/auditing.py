"""An audit: is what speculation writes the target's own law? What is asked, and the answer."""

from __future__ import annotations

from typing import Literal

import msgspec

from app.run.events import Struct
from app.run.problems import Problem
from app.run.rules import is_lossy
from app.run.settings import RunSettings

LEVEL = 1e-4
"""How often, at most about, the χ² test of an audit cries out without cause."""

RUNS = 1000
"""How many texts an audit draws if nobody says otherwise."""

TOP_K = 4
"""How many tokens it leaves to each place, so that all texts can be counted."""

DRAFT_LENGTH = 2
"""How many tokens it lets be guessed at once."""

MOST_TEXTS = 1024
"""Most texts that an audit tells apart."""

MOST_RUNS = 1_000_000

Verdict = Literal["within chance", "NOT the target's law", "nothing was guessed"]


class Audit(Struct, frozen=True, tag=True):
    """Draw many texts with speculation, and compare them with the target. Answered by Audited."""

    settings: RunSettings
    runs: int = RUNS

    def check(self) -> None:
        """Raises Problem for what cannot be audited."""
        settings = self.settings
        settings.check()
        if not 1 <= self.runs <= MOST_RUNS:
            raise Problem(
                f"An audit of {self.runs} runs is not possible.", f"Choose from 1 to {MOST_RUNS}."
            )
        if settings.sampling.greedy:
            raise Problem(
                "At temperature 0 nothing is drawn, so there is no law to audit.",
                "Choose a temperature above 0; at 0, a run says whether both texts are the same.",
            )
        kept, length = settings.sampling.top_k, settings.max_new_tokens
        if not kept or kept**length > MOST_TEXTS:
            raise Problem(
                f"Texts of {length} tokens cannot be counted with a top-k of {kept or 'all'}.",
                f"Choose a smaller top-k or draft length: at most {MOST_TEXTS} texts are counted.",
            )


class Audited(Struct, frozen=True, tag=True):
    """What an audit has found."""

    settings: RunSettings
    asked: int
    runs: int
    """Texts that were drawn; fewer than asked after a stop."""
    lossless: bool
    """Whether rule and models promise the target's law."""
    drafted: int
    accepted: int
    texts: int
    """Texts that the target's law gives a chance."""
    tv: float
    """Total variation between the texts that were drawn and the law."""
    bound: float
    """What chance alone exceeds once in a million audits at most."""
    impossible: int
    """Texts that were drawn and that the target rules out in passes of every width."""
    edge: int
    """Texts that only passes of other widths allow, as they round another token into the top-k."""
    statistic: float
    """Pearson's χ² over the cells."""
    cells: int
    chance: float
    """How often the law itself gives a χ² this large or larger."""
    smallest_seen: float | None
    """The total variation over the cells that χ² sees with a chance of 99 %; null: none."""

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the target's law."""
        return not self.impossible and self.tv <= self.bound and self.chance >= LEVEL

    @property
    def verdict(self) -> Verdict:
        """What to call the outcome: an audit without a guess says nothing of speculation."""
        if not self.holds:
            return "NOT the target's law"
        return "within chance" if self.drafted else "nothing was guessed"

    @property
    def passed(self) -> bool:
        """Whether guesses were tested and the law was kept."""
        return self.verdict == "within chance"


def auditable(settings: RunSettings) -> RunSettings:
    """Settings as near to these as an audit can take: a draw, few tokens a place, a short text.

    The text is one longer than a whole draft and the token behind it, as the first token comes
    from the prompt pass.
    """
    sampling = settings.sampling
    top_k = min(sampling.top_k or TOP_K, TOP_K)
    temperature = 1.0 if sampling.greedy else sampling.temperature
    draft_length = min(settings.draft_length, DRAFT_LENGTH)
    return msgspec.structs.replace(
        settings,
        sampling=msgspec.structs.replace(sampling, top_k=top_k, temperature=temperature),
        draft_length=draft_length,
        max_new_tokens=draft_length + 2,
        rule="exact" if settings.rule == "greedy" else settings.rule,
        stop_strings=(),
        ignore_end_of_text=True,
        baseline=False,
        repetitions=1,
        detail="light",
        continues="",
        prompt_ids=(),
    )


def audit_words(found: Audited) -> str:
    """The verdict and the numbers behind it, in sentences."""
    told = [f"Audit: {found.verdict}."]
    drawn = f"{found.runs:,} texts"
    if found.runs < found.asked:
        drawn += f" of the {found.asked:,} asked for (it was stopped)"
    told.append(
        f"{drawn}, {found.accepted:,} of {found.drafted:,} guesses kept, over {found.texts} "
        f"possible texts: total variation {found.tv:.4f}, chance allows {found.bound:.4f}; "
        f"χ² {found.statistic:.1f} in {found.cells} cells, which the law itself exceeds with "
        f"chance {found.chance:.2g}."
    )
    if found.impossible:
        told.append(f"{found.impossible} of them the target's law rules out.")
    if found.edge:
        told.append(
            f"{found.edge} of them lie at the edge of the top-k, where passes of other widths "
            "round otherwise."
        )
    if found.smallest_seen is not None:
        told.append(
            f"A law that is off by {found.smallest_seen:.3f} or more over these cells would have "
            "been seen (99 %)."
        )
    if is_lossy(found.settings):
        told.append(f"The rule {found.settings.rule} is LOSSY: it promises another law.")
    elif not found.lossless:
        told.append("Rule and models do not promise the target's law.")
    return " ".join(told)
