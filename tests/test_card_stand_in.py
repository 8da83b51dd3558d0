"""The stand-in for a card sees what would wait for a real one, and nothing else."""

import pytest
import torch
from card_stand_in import CARD, Card, CardEvent, OnCard

WAITING = {
    "item": lambda x: x[0].item(),
    "float": lambda x: float(x.sum()),
    "truth": lambda x: bool((x > 0).all()),
    "list": lambda x: x.tolist(),
    "home": lambda x: x.cpu(),
    "home without blocking": lambda x: x.to("cpu", non_blocking=True),
    "into memory of the host": lambda x: torch.empty(3).copy_(x),
    "truths as an index": lambda x: x[x > 1],
    "truths set": lambda x: x.index_put_((x > 1,), x.new_zeros(1)),
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: torch.where(x > 1),
    "masked_select": lambda x: x.masked_select(x > 1),
    "unique": lambda x: x.unique(),
    "isin": lambda x: torch.isin(x, x),
    "equal": lambda x: torch.equal(x, x + 1),
    "a list as an index": lambda x: x[[0, 2]],
    "an index of the host": lambda x: x[torch.tensor([0, 2])],
    "a number set by index": lambda x: x.__setitem__(x.long() - 1, 1.0),
    "counts to repeat by": lambda x: x.repeat_interleave(x.long()),
    "a copy that blocks": lambda x: torch.ones(3).to(CARD),
    "a number made a tensor there": lambda x: torch.tensor(5, device=CARD),
    "a number's tensor": lambda x: torch.tensor(5.0).to(CARD),
    "a number's tensor copied": lambda x: x[0].copy_(torch.tensor(5.0)),
    "tensors set where it is true": lambda x: x.__setitem__(x > 1, x[1:].clone()),
    "a tensor there set where it is true": lambda x: x.__setitem__(x > 1, x[1].clone()),
    "a number added where it is true": lambda x: x.index_put_(
        (x > 1,), torch.tensor(1.0), accumulate=True
    ),
    "a tensor made there": lambda x: torch.tensor([1, 2], device=CARD),
    "a copy that is long": lambda x: torch.ones(16385).to(CARD, non_blocking=True),
}
FREE = {
    "numbers of the host": lambda x: torch.tensor([1, 2]).to(CARD, non_blocking=True),
    "64 KB": lambda x: torch.ones(16384).to(CARD, non_blocking=True),
    "nothing to copy": lambda x: torch.empty(0).to(CARD),
    "made there": lambda x: torch.arange(3, device=CARD) + torch.zeros(3, device=CARD),
    "where it is": lambda x: x.to(CARD),
    "another type": lambda x: x.double(),
    "index": lambda x: x[x.long() - 1],
    "a tensor set by index": lambda x: x.__setitem__(x.long() - 1, x + 1),
    "index_fill": lambda x: x.index_fill_(0, x.long() - 1, 1.0),
    "a number set in a slice": lambda x: x.__setitem__(slice(1, 3), 1.0),
    "a number set where it is true": lambda x: x.__setitem__(x > 1, 1.0),
    "a number filled in": lambda x: x.fill_(2.0) + 3.0,
    "a tensor there set by index": lambda x: x.__setitem__(x.long() - 1, x[0].clone()),
    "where of three": lambda x: torch.where(x > 1, x, 0.0),
    "sort": lambda x: torch.sort(x).values.cumsum(0),
    "repeated": lambda x: x.repeat_interleave(2),
    "pick": lambda x: torch.searchsorted(x, x[:1]),
    "of the host alone": lambda x: bool(torch.ones(3).nonzero().sum() > 0),
}


@pytest.fixture
def card():
    with Card() as card:
        yield card


@pytest.mark.parametrize("name", WAITING)
def test_what_waits_is_seen(card, name):
    WAITING[name](OnCard(torch.tensor([1.0, 2.0, 3.0])))
    assert card.waits


@pytest.mark.parametrize("name", FREE)
def test_what_does_not_wait_is_not(card, name):
    FREE[name](OnCard(torch.tensor([1.0, 2.0, 3.0])))
    assert card.waits == []


@pytest.mark.parametrize("name", ["numbers of the host", "64 KB"])
def test_what_comes_from_the_host_cannot_be_recorded(card, name):
    x = OnCard(torch.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(RuntimeError, match="while it is recorded"), card.recording():
        FREE[name](x)
    FREE[name](x)
    assert card.waits == []


@pytest.mark.parametrize("name", WAITING)
def test_what_waits_cannot_be_recorded(card, name):
    with pytest.raises(RuntimeError, match="while it is recorded"), card.recording():
        WAITING[name](OnCard(torch.tensor([1.0, 2.0, 3.0])))


def test_whatever_else_does_not_wait_can_be_recorded(card):
    for name in FREE.keys() - {"numbers of the host", "64 KB"}:
        with card.recording():
            FREE[name](OnCard(torch.tensor([1.0, 2.0, 3.0])))


def test_answers_are_those_of_the_numbers(card):
    x = OnCard(torch.tensor([1.0, 2.0, 3.0]))
    x[1:] += 1.0
    assert x.device == CARD
    assert (x * 2).device == CARD
    assert (x * 2).tolist() == [2.0, 6.0, 8.0]
    assert x.cpu().device.type == "cpu"


def test_it_is_left_as_it_was_entered(card):
    with torch.inference_mode():  # there what is made of other operations enters it anew
        torch.ones(3, device=CARD).to(torch.float64)
    assert torch.tensor([1, 2], device=CARD).device == CARD


def test_operations_are_counted_and_views_are_not(card):
    x = OnCard(torch.ones(2, 3))
    (x[0, None].expand(4, 3) + 1.0).t()
    torch.ones(3) + 1.0
    assert card.kernels == {"add": 1}


def test_an_event_is_waited_for_unless_a_copy_came_home_behind_it(card):
    x, early, late = OnCard(torch.ones(3)), CardEvent(card), CardEvent(card)
    early.record()
    x = x + 1.0
    late.record()
    early.synchronize()
    assert card.waits == []
    x.cpu()
    late.synchronize()
    assert card.waits == ["_to_copy: numbers come home"]
    x = x + 1.0
    late.record()
    late.synchronize()
    assert card.waits[1:] == ["an event is waited for"]
