"""Every flag of a run, seen or derived, and the figures that each one touches."""

from __future__ import annotations

from app.run.figures import FIGURES, NOTHING, Figure
from app.run.flags import Flag, Reach, spread_flag
from app.run.metrics import decode_speedup
from app.run.record import RunRecord


def flags_of(record: RunRecord) -> tuple[Flag, ...]:
    """The flags of a run: of its pairs, of its target, then what was seen while it went on."""
    spread = decode_speedup(record)
    pairs = spread_flag(spread.values) if spread else None
    speculates = record.settings.method != "nothing"
    coupled = None
    if speculates and not record.target.rows_independent:
        coupled = Flag("coupled rows", record.target.rows_note)
    return (*filter(None, (pairs, coupled)), *record.flags)


def figures_of(flag: Flag) -> tuple[str, ...]:
    """The names (in `app.run.figures`) of the figures that a flag touches."""
    units = _UNITS[flag.reach]
    spared = _WITHOUT_GUESSES if flag.reach == "guesses" else ()
    return tuple(
        name
        for name, figure in FIGURES.items()
        if figure.unit in units and not any(part in name for part in spared)
    )


def cautions(record: RunRecord) -> tuple[Flag, ...]:
    """The flags that no figure tells of itself: all but that of a single pair."""
    return tuple(flag for flag in flags_of(record) if flag.kind != "one pair")


def cautions_on(record: RunRecord, figure: str) -> tuple[Flag, ...]:
    """The cautions that touch this figure."""
    return tuple(flag for flag in cautions(record) if figure in figures_of(flag))


def marked(record: RunRecord, figure: Figure) -> str:
    """A figure's value, with the cautions that touch it in a word each."""
    kinds = [flag.kind for flag in cautions_on(record, figure.name)]
    value = figure.text(record)
    return value if value == NOTHING or not kinds else f"{value}; caution: {', '.join(kinds)}"


_WITHOUT_GUESSES = ("baseline_", "time_to_first_token")
"""Parts of the names of figures that no guess has a share in."""

_UNITS: dict[Reach, tuple[str, ...]] = {
    "ratios": ("×",),
    "times": ("×", "s", "tokens/s"),
    "text": ("×", "%", "tokens"),
    "guesses": ("×", "%", "tokens", "guesses", "s", "tokens/s"),
}
"""Units of the figures within each reach."""
