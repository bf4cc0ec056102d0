"""AdamW with plain tensors for its state, and the mean of the weights."""

import pytest
import torch
from torch import nn

from regard.training.optimiser import Optimiser, put

from .small import same

OPTIONS = {"betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.1}


def made(ema=0.0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.Linear(4, 1))
    return model, Optimiser(model, **OPTIONS, ema=ema)


def stepped(model, optimiser, steps, begin=0, clip=0.0):
    """Gradients that differ from step to step, and are the same for whoever takes it."""
    norms = []
    for step in range(begin, begin + steps):
        torch.manual_seed(step)
        model(torch.randn(5, 6)).square().sum().backward()
        norms.append(float(optimiser.step(step, 0.01 * (step + 1), clip)))
    return norms


def test_it_is_adamw_with_decay_for_matrices_alone():
    model, optimiser = made()
    other, _ = made()
    groups = [
        {"params": [weight for weight in other.parameters() if (weight.ndim > 1) is matrix], "weight_decay": decay}
        for matrix, decay in ((True, 0.1), (False, 0.0))
    ]
    adam = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-9)
    stepped(model, optimiser, 3)
    for step in range(3):
        torch.manual_seed(step)
        adam.zero_grad()
        other(torch.randn(5, 6)).square().sum().backward()
        for group in adam.param_groups:
            group["lr"] = 0.01 * (step + 1)
        adam.step()
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_gradients_are_clipped_and_their_norm_is_told_as_it_was():
    model, optimiser = made()
    torch.manual_seed(1)
    (100 * model(torch.randn(5, 6))).square().sum().backward()
    expected = torch.stack([weight.grad.norm() for weight in model.parameters()]).norm()
    seen = {}
    optimiser.adam.register_step_pre_hook(
        lambda *_: seen.update(norm=torch.stack([weight.grad.norm() for weight in model.parameters()]).norm())
    )
    torch.testing.assert_close(optimiser.step(0, 0.1, 0.5), expected)
    torch.testing.assert_close(seen["norm"], torch.tensor(0.5))


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_its_state_put_into_another_goes_on_to_the_bit(ema):
    model, optimiser = made(ema)
    stepped(model, optimiser, 3)
    kept = {name: tensor.clone() for name, tensor in optimiser.tensors().items()}
    stepped(model, optimiser, 3, 3)
    again, other = made(ema)
    for name, tensor in other.tensors().items():
        tensor.copy_(kept[name])
    other.restored(3)
    stepped(again, other, 3, 3)
    assert same(optimiser.tensors(), other.tensors())
    assert bool(ema) == any(name.startswith("mean.") for name in kept)


def test_the_mean_is_that_of_the_weights_over_time():
    model, optimiser = made(0.5)
    mean = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for step in range(12):
        stepped(model, optimiser, 1, step)
        kept = min(0.5, (1 + step) / (10 + step))
        mean = {name: kept * mean[name] + (1 - kept) * weight for name, weight in model.named_parameters()}
    for name, found in optimiser.averaged().items():
        torch.testing.assert_close(found, mean[name].detach())
        assert not torch.equal(found, dict(model.named_parameters())[name])


def test_without_a_mean_the_weights_are_what_is_used():
    model, optimiser = made()
    assert same(dict(optimiser.averaged()), {name: weight.detach() for name, weight in model.named_parameters()})


def test_put():
    model, _ = made()
    weights = dict(model.named_parameters())
    put(weights, [torch.full_like(weight, 3.0) for weight in weights.values()])
    assert all((weight == 3).all() for weight in model.parameters())
