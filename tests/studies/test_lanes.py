"""What a lane is made of."""

from unittest.mock import MagicMock

import pytest
import torch

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
