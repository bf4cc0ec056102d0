"""NaN, infinity and divergence are told, and nothing else is."""

import math

import numpy as np
import pytest

from regard.errors import NotANumber
from regard.training.progress import Progress
from regard.training.watchfulness import EARLY, Diverged, Watch, told

FEW = np.arange(3)


def gone_through(losses, watch=None, first=1):
    watch = watch or Watch()
    for step, loss in enumerate(losses, first):
        watch = watch.after(step, loss, 1.0, FEW)
    return watch


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_told_at_once(loss):
    with pytest.raises(NotANumber, match=rf"^step 1: the loss is {loss}, in the batch of 3 examples \(0, 1, 2\)\."):
        Watch().after(1, loss, 1.0, FEW)
    with pytest.raises(NotANumber, match=r"^step 4: the gradients have a norm of "):
        Watch().after(4, 1.0, loss, FEW)


def test_a_loss_that_falls_is_well():
    watch = gone_through(5 * 0.99**step for step in range(300))
    assert watch.mean == watch.lowest


def test_the_beginning_may_do_as_it_likes():
    gone_through([1.0, *[30.0] * (3 * EARLY)])


@pytest.mark.parametrize("mean", [0.7, 1.5, 2.5])
def test_the_noise_of_small_batches_is_no_divergence(mean):
    """Losses of batches of a few examples, which differ by as much as they are, over many steps."""
    for seed in range(4):
        gone_through(np.abs(np.random.default_rng(seed).normal(mean, 1.0, 20_000)).tolist())


def test_a_single_bad_batch_is_no_divergence():
    gone_through([*[2.0] * 100, 10.0, *[2.0] * 100])


def test_divergence_is_told():
    with pytest.raises(Diverged, match=r"^step \d+: the loss diverges\. Its running mean is [34].* and was 2\.000"):
        gone_through([*[2.0] * 100, *[8.0] * 60])


def test_a_small_loss_may_rise_a_little():
    gone_through([*[0.01] * 100, *[0.5] * 100])


def test_a_run_that_goes_on_knows_what_it_was():
    watch = gone_through([2.0] * 100)
    kept = Progress.of(Progress(step=100, watch=watch).as_json()).watch
    assert kept == watch
    with pytest.raises(Diverged):
        gone_through([8.0] * 30, kept, first=101)
    assert Progress.of(Progress().as_json()) == Progress()  # whose lowest is infinity, which JSON has not


def test_few_examples_are_named():
    assert told(np.arange(2000)) == "2,000 examples (0, 1, 2, 3, 4, 5, 6, 7, …)"
