"""Small tokenizers, examples and draws for the tests of tasks."""

import numpy as np
import torch

from regard.text.bpe import Tokenizer

TEXTS = [
    "The cat sat on the mat, and the dog sat on the cat.",
    "Nobody knows where the cat went after that; the dog does.",
    "A cat is not a dog, and the mat is not a bed.",
]


def tokenizer(size=300):
    return Tokenizer.train(TEXTS, size)


def draws(count, epoch=0):
    """A generator for each example, as the loop makes them."""
    return [np.random.default_rng((epoch, number)) for number in range(count)]


def rows(generator, count, low, high, vocabulary):
    """Ids of unequal length, of no special piece."""
    return [generator.integers(4, vocabulary, generator.integers(low, high)) for _ in range(count)]


def total_of_shares(task, model, examples, shares, step):
    """Sums, counts and gradients of a batch gone through in shares: every so-many-th example, some shares empty."""
    sums, counts = {}, {}
    made = draws(len(examples))
    model.zero_grad()
    for share in range(shares):
        batch = task.collate(examples[share::shares], made[share::shares])
        found = getattr(task, step)(model, batch.tensors)
        sum(found.values()).backward()
        for name, value in found.items():
            sums[name] = sums.get(name, 0) + value.detach()
        for name, count in batch.counts.items():
            counts[name] = counts.get(name, 0) + count
    return sums, counts, {name: weight.grad for name, weight in model.named_parameters()}


def assert_shares_are_the_whole(task, model, examples):
    """However a batch is divided, its sums, its counts and its gradients are the same."""
    for step in ("losses", "measures"):
        whole = total_of_shares(task, model, examples, 1, step)
        for shares in (2, 3, len(examples) + 2):
            torch.testing.assert_close(total_of_shares(task, model, examples, shares, step), whole)


def assert_nothing_is_learned_from_nothing(task, model):
    """An empty share has losses of exactly 0, and gradients of 0 for whatever has any."""
    batch = task.collate([], [])
    assert set(batch.counts.values()) == {0}
    model.zero_grad()
    losses = task.losses(model, batch.tensors)
    assert losses.keys() == batch.counts.keys()
    assert all(float(loss.detach()) == 0 for loss in losses.values())
    sum(losses.values()).backward()
    assert any(weight.grad is not None for weight in model.parameters())
    for name, weight in model.named_parameters():
        assert weight.grad is None or not weight.grad.any(), name
    assert all(float(sums.detach()) == 0 for sums in task.measures(model, batch.tensors).values())
