"""What is said of the engine: how it stands, and what it has let go of."""

from __future__ import annotations

from app.gui.engine_link import EngineLink, Job
from app.run.events import ModelFacts
from app.run.preparation import Released
from app.run.sizes import bytes_in_words

_DOING: dict[Job, str] = {
    "": "Engine ready",
    "prepare": "Making ready",
    "run": "Running",
    "audit": "Auditing",
    "teach": "Training",
    "release": "Releasing models",
}


def state_words(link: EngineLink) -> str:
    """The state of the engine in one line."""
    if link.phase == "starting":
        seconds = int(link.seconds_since_start)
        return "Engine is starting" + (f" ({seconds} s)" if seconds > 2 else "")
    if link.phase == "trouble":
        return "Engine has ended; Run starts a new one"
    if link.phase == "off":
        return "Engine is off"
    doing = "Stopping" if link.stopping else _DOING[link.job]
    loaded = _named(link.target) if link.target else ""
    return " · ".join(filter(None, (doing, link.device, loaded)))


def _named(facts: ModelFacts) -> str:
    """A loaded model in short: its name and how its weights are held."""
    note = f" ({facts.precision_note})" if facts.precision_note else ""
    return f"{facts.name} {facts.precision}{note}"


def released_words(message: Released) -> str:
    """What to say once models have been let go."""
    if not message.models:
        return "No model was loaded."
    names = " and ".join(message.models)
    size = f"{bytes_in_words(message.weight_bytes)} of weights"
    return f"Released: {names}, {size}. The next run loads what it needs."
