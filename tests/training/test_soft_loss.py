"""The loss beside torch's own cross-entropy with soft labels, value and gradient."""

import torch
from torch.nn.functional import cross_entropy

from app.training.soft_loss import soft_loss


def numbers(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_value_and_gradient_are_torchs_own():
    features, rows = numbers(600, 8, seed=0), numbers(40, 8, seed=1)
    predicted = [numbers(600, 8, seed=2 + depth).requires_grad_() for depth in range(3)]
    weights = torch.tensor([1.0, 0.8, 0.64])
    (soft_loss(predicted, features, rows) * weights).sum().backward()
    law = (features @ rows.T).softmax(-1)
    for depth, mine in enumerate(predicted):
        other = mine.detach().requires_grad_()
        due = cross_entropy(other @ rows.T, law)
        mine_alone = soft_loss([other], features, rows)
        assert abs(float((mine_alone - due).detach())) < 1e-5
        (due * weights[depth]).backward()
        assert (mine.grad - other.grad).abs().max() < 1e-7


def test_the_targets_own_features_leave_nothing_to_learn():
    features, rows = numbers(10, 8, seed=0), numbers(40, 8, seed=1)
    mine = features.clone().requires_grad_()
    loss = soft_loss([mine], features, rows)
    loss.sum().backward()
    law = (features @ rows.T).softmax(-1)
    assert abs(float(loss.detach()) - float(-(law * law.log()).sum(-1).mean())) < 1e-5
    assert mine.grad.abs().max() < 1e-7


def test_of_no_places_at_all_it_is_nothing():
    mine = torch.zeros(0, 8, requires_grad=True)
    loss = soft_loss([mine], torch.zeros(0, 8), numbers(40, 8, seed=1))
    loss.sum().backward()
    assert loss.tolist() == [0.0]
