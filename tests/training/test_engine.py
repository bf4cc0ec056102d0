"""The engine: gradients of what belongs to each target, in float32 and in half precision."""

import pytest
import torch

from regard.text.batches import Place
from regard.training import tasks
from regard.training.engine import Engine

from .small import ALONE, model, source

TASK = tasks.LanguageModelling(pad=0)


@pytest.fixture
def batch(tmp_path):
    text = source(tmp_path / "store")
    _, numbers = next(text.after(Place()))
    return TASK.collate(text.read(numbers), [])


def gradients(engine):
    return {name: weight.grad for name, weight in engine.model.named_parameters()}


def test_the_gradient_is_that_of_the_mean_over_all_targets(batch):
    engine = Engine(model(), TASK, ALONE)
    sums = engine.backward(batch.tensors, {"tokens": 1000.0}, last=True)
    other = model().train()
    expected = TASK.losses(other, batch.tensors)["tokens"]
    (expected / 1000).backward()
    assert sums["tokens"] == expected.detach()
    assert not sums["tokens"].requires_grad
    for weight, name in zip(other.parameters(), gradients(engine), strict=True):
        torch.testing.assert_close(gradients(engine)[name], weight.grad)


def test_kinds_of_targets_are_counted_each_by_itself(batch):
    class Two:
        def losses(self, model, tensors):
            loss = TASK.losses(model, tensors)["tokens"]
            return {"some": loss, "none": 0 * loss}

    engine, alone = Engine(model(), Two(), ALONE), Engine(model(), TASK, ALONE)
    engine.backward(batch.tensors, {"some": 10.0, "none": 0.0}, last=True)  # a count of 0 divides nothing
    alone.backward(batch.tensors, {"tokens": 10.0}, last=True)
    for name, gradient in gradients(engine).items():
        torch.testing.assert_close(gradient, gradients(alone)[name])


def test_a_share_without_examples_adds_nothing(batch):
    engine = Engine(model(), TASK, ALONE)
    engine.backward(batch.tensors, {"tokens": 10.0}, last=False)
    before = {name: gradient.clone() for name, gradient in gradients(engine).items()}
    sums = engine.backward(TASK.collate([], []).tensors, {"tokens": 10.0}, last=True)
    assert sums["tokens"] == 0
    assert all(torch.equal(gradient, before[name]) for name, gradient in gradients(engine).items())


def test_measuring_draws_nothing_and_learns_nothing(batch):
    engine = Engine(model(dropout=0.5), TASK, ALONE)
    first, second = engine.measure(batch.tensors), engine.measure(batch.tensors)
    assert first.keys() == {"tokens/loss", "tokens/right"}
    assert first == second
    assert all(gradient is None for gradient in gradients(engine).values())
    losses = [float(engine.backward(batch.tensors, {"tokens": 1.0}, last=True)["tokens"]) for _ in range(2)]
    assert losses[0] != losses[1]  # in training, dropout draws


def test_half_precision_is_near_and_its_weights_are_whole(batch):
    whole, half = Engine(model(), TASK, ALONE), Engine(model(), TASK, ALONE, precision="bfloat16")
    exact, near = (
        float(engine.backward(batch.tensors, {"tokens": 10.0}, last=True)["tokens"]) for engine in (whole, half)
    )
    assert near == pytest.approx(exact, rel=0.01)
    assert near != exact
    assert {weight.dtype for weight in half.model.parameters()} == {torch.float32}
    assert {gradient.dtype for gradient in gradients(half).values()} == {torch.float32}


def test_one_process_needs_no_shards(batch):
    engine = Engine(model(), TASK, ALONE, shard="fsdp")
    assert engine.shard == "none"
    assert engine.backward(batch.tensors, {"tokens": 10.0}, last=True)["tokens"] > 0
