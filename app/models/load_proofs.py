"""What loading finds of two models that no run is made of yet: for the report on them."""

from __future__ import annotations

import msgspec

from app.library.compatibility_report import CompatibilityReport
from app.library.preflight import check
from app.models.loading import load
from app.models.machine import choose_device
from app.models.precision import settle_precision
from app.models.stages import Pause, Report, Stages
from app.models.warm import collect
from app.run.problems import Problem, release_frames
from app.run.settings import Precision


def with_load_proofs(
    found: CompatibilityReport,
    *,
    precision: Precision | None,
    device: str | None,
    report: Report,
    pause: Pause,
) -> CompatibilityReport:
    """The report with what both proofs at load find of each model, or why they were not tried.

    A model that cannot be rewound is the verdict. One is loaded after the other, and let go.
    Raises Cancelled when `pause` does, Problem for a device that is not there.
    """
    place, stages = choose_device(device), Stages(report, pause)
    told, reason = [], ""
    for role, folder in (("target", found.target.folder), ("draft", found.draft.folder)):
        try:
            facts = check(folder, needs_tokenizer=role == "target")
            chosen, _ = settle_precision(facts, precision, place)
            loaded = load(facts, name=folder.name, precision=chosen, device=place, stages=stages)
            said = f"{loaded.rewinding.note}; {loaded.rows.note}"
            if not loaded.rewinding.holds:
                reason = reason or f"of the {role}: {loaded.rewinding.note}."
            del loaded
        except Problem as problem:
            release_frames(problem)
            said, chosen = f"not tried, as it could not be loaded: {problem.message}", ""
        collect()
        where = f", {chosen} on {place}" if chosen else ""
        told.append(f"{role}{where}: {said}")
    if reason and found.fits:
        found = found.without_speculation(reason)
    return msgspec.structs.replace(found, proofs=tuple(told))
