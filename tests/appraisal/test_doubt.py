"""What a verdict says against itself: of one run, and of the runs of a bench."""

import msgspec
import pytest
from recorded import costed_record

from app.appraisal.appraise import appraise, tried
from app.appraisal.doubt import doubt
from app.run.flags import Flag


def run(*kinds):
    """A run during which this was seen."""
    made = costed_record()
    made.flags = tuple(Flag(kind, "seen") for kind in kinds)
    return made


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ((), ""),
        (("other load",), "(other load): measure again on a quiet machine"),
        (("throttled",), "(throttled): measure again once the device has cooled"),
        (
            ("other load", "battery"),
            "(other load, battery): measure again on a quiet machine and on mains power",
        ),
    ],
)
def test_a_run_that_was_disturbed_says_so_in_its_verdict(kinds, said):
    plain = appraise(run()).verdict.text
    tail = f", but the run was disturbed {said}" if said else ""
    assert appraise(run(*kinds)).verdict.text == plain + tail


def test_what_is_no_disturbance_is_named_and_needs_no_other_machine():
    found = doubt([run("repeated text")])
    assert found == "mind the caution: repeated text"
    assert doubt([run("other load", "repeated text")]).endswith(f"machine; {found}")


def test_runs_are_doubted_together_from_half_of_them_on():
    quiet, loud, slow = run(), run("other load"), run("throttled")
    assert doubt([quiet, quiet, quiet, loud, slow]) == ""
    assert doubt([quiet, quiet, loud, slow]) == (
        "2 of its 4 runs were disturbed (other load, throttled): measure again on a quiet machine "
        "and once the device has cooled"
    )
    assert doubt([quiet, quiet]) == doubt([]) == ""


def test_a_length_that_a_policy_chose_was_tried():
    record = costed_record()
    assert tried([record]) == {4}
    rounds = record.lanes[0].repetitions[0].rounds
    rounds[0] = msgspec.structs.replace(rounds[0], limit=2, limited_by="policy")
    rounds[1] = msgspec.structs.replace(rounds[1], limit=3, limited_by="tokens left")
    assert tried([record]) == {2, 4}
    assert appraise(record).verdict.text.endswith("predicted best draft length 2")
