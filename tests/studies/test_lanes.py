"""What a lane is made of."""

from unittest.mock import MagicMock

import pytest
import talking
import torch

from app.decoding.clock import HostClock
from app.run.events import At
from app.run.settings import RunSettings
from app.studies.lanes import LaneMaker


@pytest.mark.parametrize(("ignore", "guesses"), [(False, [7, 2]), (True, [7, 2, 5, 7])])
def test_drafts_end_where_the_text_may_end(ignore, guesses):
    pair = MagicMock(end_ids=(2,), draft=None, widths=None)
    pair.refusal.return_value = ""
    pair.target.model.device = torch.device("cpu")
    settings = RunSettings(pair="any", prompt="any", ignore_end_of_text=ignore)
    maker = LaneMaker(pair, settings, (1, 5), 64)
    lane = maker._setup(At("run", "speculative"))
    asking = lane.proposer.propose([1, 5, 7, 2, 5, 7, 9, 1, 5], limit=4, round_=0)
    with pytest.raises(StopIteration) as done:
        next(asking)
    assert done.value.value.block.ids == guesses
    assert set(lane.text.end_ids) == (set() if ignore else {2})


def test_a_draft_model_on_another_device_drafts_and_is_timed_there():
    loaded, settings = talking.pair(), RunSettings(pair="any", prompt="any", method="draft-model")
    at, second = At("run", "speculative"), torch.device("cpu", 0)
    together = LaneMaker(loaded, settings, (1, 5), 64)._setup(at)
    assert together.draft_clock is None
    loaded.draft.model._device = second
    apart = LaneMaker(loaded, settings, (1, 5), 64)._setup(at)
    assert isinstance(apart.draft_clock, HostClock)
    assert apart.draft_clock is not apart.clock
    assert (apart.device, apart.proposer._device) == (torch.device("cpu"), second)
    settings = RunSettings(pair="any", prompt="any", method="ngram")
    assert LaneMaker(loaded, settings, (1, 5), 64)._setup(at).draft_clock is None
