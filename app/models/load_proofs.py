"""What loading finds of two models that no run is made of yet: for the report on them."""

from __future__ import annotations

from pathlib import Path

from app.library.preflight import check
from app.models.loading import load
from app.models.machine import choose_device
from app.models.precision import settle_precision
from app.models.stages import Pause, Report, Stages
from app.models.warm import collect
from app.run.problems import Problem, release_frames
from app.run.settings import Precision


def load_proofs(
    target: Path,
    draft: Path,
    *,
    precision: Precision | None,
    device: str | None,
    report: Report,
    pause: Pause,
) -> tuple[str, ...]:
    """A sentence on each of two folders: what both proofs at load found, or why it was not tried.

    One model is loaded after the other, and let go. Raises Cancelled when `pause` does, Problem
    for a device that is not there.
    """
    place, stages = choose_device(device), Stages(report, pause)
    found = []
    for role, folder in (("target", target), ("draft", draft)):
        try:
            facts = check(folder, needs_tokenizer=role == "target")
            chosen, _ = settle_precision(facts, precision, place)
            loaded = load(facts, name=folder.name, precision=chosen, device=place, stages=stages)
            said = f"{loaded.rewinding.note}; {loaded.rows.note}"
            del loaded
        except Problem as problem:
            release_frames(problem)
            said, chosen = f"not tried, as it could not be loaded: {problem.message}", ""
        collect()
        where = f", {chosen} on {place}" if chosen else ""
        found.append(f"{role}{where}: {said}")
    return tuple(found)
