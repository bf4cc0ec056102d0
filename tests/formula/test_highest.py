"""The keys that each query attends to most, against the whole map in float64."""

import numpy as np
import pytest

from regard.formula import masks, tiled
from regard.formula.highest import top
from regard.formula.problem import Problem
from tests import reference
from tests.formula.conftest import numbers

N_Q, N_K = 10, 15
MASKS = {
    "none": None,
    "causal": masks.causal(),
    "nothing allowed": masks.padding([0, 3]),
}


def drawn(rng):
    query, key = (rng.normal(size=size).astype(np.float32) * 2 for size in ((2, 4, N_Q, 8), (2, 2, N_K, 8)))
    return query, key, rng.normal(size=4).astype(np.float32)


@pytest.mark.parametrize(("name", "count"), [*((name, 4) for name in MASKS), *(("causal", n) for n in (1, N_K + 5))])
def test_the_highest_of_the_map(library, rng, small_tiles, name, count):
    query, key, sinks = drawn(rng)
    mask = MASKS[name]
    allowed = None if mask is None else mask.dense(N_Q, N_K).reshape(-1, 1, N_Q, N_K)
    expected = reference.weights(query, key, allowed=allowed, sinks=sinks)
    problem = Problem.of(library(query), library(key), mask, sinks=library(sinks))
    found, _ = top(problem, count, range(N_Q))
    keys, weights = numbers(found.keys), numbers(found.weights)
    count = min(count, N_K)
    assert keys.shape == weights.shape == (2, 4, N_Q, count)
    highest = -np.sort(-expected, axis=-1)[..., :count]
    np.testing.assert_allclose(weights, highest, atol=1e-5)
    seen = np.broadcast_to(np.ones_like(expected, bool) if allowed is None else allowed, expected.shape)
    there = keys >= 0
    assert np.array_equal(there.sum(-1), np.minimum(seen.sum(-1), count))  # as many as a row sees
    assert not weights[~there].any()
    np.testing.assert_allclose(
        np.take_along_axis(expected, np.where(there, keys, 0), -1)[there], weights[there], atol=1e-5
    )
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in keys.reshape(-1, count))  # no key twice


@pytest.mark.parametrize("rows", [range(2, 8), range(9, 10)])
def test_some_rows_and_their_log_sum_exp(library, rng, small_tiles, rows):
    query, key, _ = drawn(rng)
    problem = Problem.of(library(query), library(key), masks.causal())
    found, lse = top(problem, 4, rows)
    np.testing.assert_allclose(numbers(lse), numbers(tiled.log_sum_exp(problem, rows)), atol=1e-5)
    whole, _ = top(problem, 4, range(N_Q))
    np.testing.assert_array_equal(numbers(found.keys), numbers(whole.keys)[..., rows.start : rows.stop, :])
    again, same = top(problem, 4, rows, lse)  # known beforehand, it is not looked for
    np.testing.assert_allclose(numbers(again.weights), numbers(found.weights), atol=1e-6)
    np.testing.assert_array_equal(numbers(again.keys), numbers(found.keys))
    np.testing.assert_array_equal(numbers(same), numbers(lse))


def test_large_tiles_give_the_same(library, rng):
    query, key, _ = drawn(rng)
    found, _ = top(Problem.of(library(query), library(key)), 5, range(N_Q))
    expected = reference.weights(query, key)
    np.testing.assert_array_equal(numbers(found.keys), np.argsort(-expected, axis=-1)[..., :5])
