"""The compiled engine: what the plain one gives, losses and gradients, by one graph for batches of any shape."""

import shutil

import numpy as np
import pytest
import torch
from torch._dynamo.utils import counters

from regard.training import tasks
from regard.training.engine import Engine

from .small import ALONE, VOCABULARY, model

TASK = tasks.LanguageModelling(pad=0)
SHAPES = ((3, 9), (5, 20), (4, 33))  # texts, and tokens of the longest


def batch(texts, longest):
    """Texts of unequal length, so that there is padding."""
    draw = np.random.default_rng(longest)
    return TASK.collate([{"text": draw.integers(4, VOCABULARY, longest - number)} for number in range(texts)], [])


def learned(engine, batch):
    """The loss of a batch, and all gradients of its mean."""
    engine.model.zero_grad()
    sums = engine.backward(batch.tensors, {"tokens": float(batch.counts["tokens"])}, last=True)
    return {**sums, **{name: weight.grad.clone() for name, weight in engine.model.named_parameters()}}


@pytest.mark.skipif(shutil.which("c++") is None, reason="the compiled engine is C++ on a CPU; there is no compiler")
# Older versions of PyTorch import deprecated parts of their own when they compile,
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
# and its compiler makes an instance of the function that the loss is, of which PyTorch then warns.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_losses_and_gradients_are_those_of_the_plain_engine():
    torch._dynamo.reset()
    counters.clear()
    plain, compiled = Engine(model(), TASK, ALONE), Engine(model(), TASK, ALONE, compiled=True, varied=True)
    for shape in SHAPES:
        expected = learned(plain, batch(*shape))
        torch.testing.assert_close(learned(compiled, batch(*shape)), expected, rtol=1e-5, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1
