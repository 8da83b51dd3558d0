"""Every colour of the window, for both schemes, as data; the tests compute contrast from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.run.events import Status


@dataclass(frozen=True)
class Tint:
    """A text colour and the ground it stands on."""

    text: str
    ground: str


@dataclass(frozen=True)
class Cue:
    """What tells a status apart without colour."""

    underline: bool = False
    overline: bool = False
    strike: bool = False


@dataclass(frozen=True)
class Colours:
    """One colour scheme."""

    window: str
    panel: str
    field: str
    border: str
    text: str
    muted: str
    accent: str
    on_accent: str
    selection: Tint
    good: str
    trouble: Tint
    speculative: str
    baseline: str
    accepted: Tint
    corrected: Tint
    bonus: Tint
    rejected: Tint
    card: str

    def tint(self, status: Status) -> Tint:
        """The colours of a token of this status."""
        tints: dict[Status, Tint] = {
            "accepted": self.accepted,
            "corrected": self.corrected,
            "bonus": self.bonus,
            "rejected": self.rejected,
        }
        quiet = Tint(self.muted, self.panel)
        plain = Tint(self.text, self.panel)
        return tints.get(status, quiet if status in ("ignored", "discarded") else plain)

    def readable(self) -> Iterator[Tint]:
        """Every text and ground that meet on the page."""
        for ground in (self.window, self.panel, self.field, self.card):
            yield from (Tint(text, ground) for text in (self.text, self.muted, self.accent))
        yield Tint(self.on_accent, self.accent)
        lane_colours = (self.good, self.speculative, self.baseline)
        yield from (
            Tint(text, ground) for text in lane_colours for ground in (self.panel, self.card)
        )
        yield from (self.selection, self.trouble, Tint(self.corrected.text, self.panel))
        yield from (self.accepted, self.corrected, self.bonus, self.rejected)


CUES: dict[Status, Cue] = {
    "first": Cue(),
    "accepted": Cue(),
    "corrected": Cue(underline=True),
    "bonus": Cue(overline=True),
    "plain": Cue(),
    "rejected": Cue(strike=True),
    "ignored": Cue(strike=True),
    "discarded": Cue(strike=True),
}
"""The second cue of each status."""

DARK = Colours(
    window="#15171b",
    panel="#1c1f25",
    field="#13151a",
    border="#30353e",
    text="#e7e9ec",
    muted="#9aa4b4",
    accent="#62adff",
    on_accent="#0b1420",
    selection=Tint("#ffffff", "#2f5f9e"),
    good="#86ddb0",
    trouble=Tint("#ffb3ad", "#3a1c1e"),
    speculative="#7fe0b0",
    baseline="#b9a3f5",
    accepted=Tint("#96e8bd", "#193c31"),
    corrected=Tint("#ffcb94", "#5a3511"),
    bonus=Tint("#b3d1ff", "#1d3e74"),
    rejected=Tint("#ffa8a2", "#3e1c1a"),
    card="#262a32",
)
"""The dark scheme."""

LIGHT = Colours(
    window="#f2f4f6",
    panel="#ffffff",
    field="#f7f8fa",
    border="#d3d8df",
    text="#1a1d23",
    muted="#596270",
    accent="#0a5fc4",
    on_accent="#ffffff",
    selection=Tint("#0b1420", "#b5d4fb"),
    good="#0b5a36",
    trouble=Tint("#8f1414", "#fde6e4"),
    speculative="#0b6b40",
    baseline="#5b3fc4",
    accepted=Tint("#0a4a2e", "#ddf3da"),
    corrected=Tint("#6b3500", "#ffdab2"),
    bonus=Tint("#12397a", "#c7e1ff"),
    rejected=Tint("#9b1515", "#eadae0"),
    card="#ffffff",
)
"""The light scheme."""
