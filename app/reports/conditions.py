"""Under which conditions a run was made: limits of the machine, and what was not held equal."""

from __future__ import annotations

from app.run.events import Environment
from app.run.figures import NOTHING
from app.run.record import RunRecord
from app.run.tree_shape import pass_rows


def limits(around: Environment) -> list[tuple[str, str]]:
    """The device's driver, clock and power limit; "n/a" for what cannot be read."""
    clock, power = around.clock_mhz, around.power_limit_w
    return [
        ("Driver", around.driver or NOTHING),
        ("Highest clock", NOTHING if clock is None else f"{clock:.0f} MHz"),
        ("Power limit", NOTHING if power is None else f"{power:.0f} W"),
    ]


def not_held_equal(record: RunRecord) -> list[str]:
    """In which ways the lanes did not run under the same conditions, or may not have."""
    if not record.repetitions("baseline"):
        return ["There is no baseline: nothing was compared."]
    resident = "yes" if record.draft_resident else "no, the pair has no draft"
    width = pass_rows(record.settings, record.settings.draft_length)
    found = [
        f"Draft resident during baseline: {resident}.",
        f"Width of the target's passes: 1 row in the baseline, up to {width} in the speculative "
        "lane. Rounding may differ between them.",
        _order(record),
    ]
    if record.settings.repetitions == 1:
        found.append("One pair only: chance, heat and other load are not averaged out.")
    if record.settings.detail == "full":
        found.append("Detail was full: looking up the likeliest tokens takes time in each loop.")
    if len({one.finish for lane in record.lanes for one in lane.repetitions}) > 1:
        found.append("Not all repetitions ended for the same reason.")
    return found


def _order(record: RunRecord) -> str:
    if record.settings.order == "interleaved":
        return (
            "The lanes took turns, loop by loop, each on its own clock: for looking, not for "
            "measuring."
        )
    ran = ", ".join(f"{at.lane} {at.repetition + 1}" for at in record.order[:12])
    more = " …" if len(record.order) > 12 else ""
    return f"The lanes ran one after the other, not at the same time: {ran}{more}."
