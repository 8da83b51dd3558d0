"""By what a draft draws its guesses: the run's own sampling settings, or others.

Any law is exact, as long as it is the one that is handed on (Leviathan et al. 2023, section 2.2):
the target's settings decide the text, these only how many guesses are kept.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from app.run.settings import OptionValue, Sampling


def drawn_by(sampling: Sampling, options: Mapping[str, OptionValue]) -> Sampling:
    """The settings that a draft draws by: the run's, or with a temperature of its own and no token
    cut, or with none, which takes the likeliest. Penalties and seed stay as they are. A method
    without these options draws by the run's.
    """
    chosen = options.get("draft_sampling", "target")
    if chosen == "target":
        return sampling
    temperature = 0.0 if chosen == "argmax" else float(options["draft_temperature"])
    return msgspec.structs.replace(sampling, temperature=temperature, top_k=0, top_p=1.0, min_p=0.0)
