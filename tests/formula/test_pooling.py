"""The map made small: groups of rows and columns, against the whole map in float64."""

from itertools import pairwise

import numpy as np
import pytest

from regard.formula import masks, positions, tiled
from regard.formula.pooling import even_edges, pooled
from regard.formula.problem import Problem
from tests import reference
from tests.formula.conftest import numbers

N_Q, N_K = 10, 15
MASKS = {
    "none": None,
    "nothing allowed": masks.padding([0, 3]),
    "mixed": masks.causal() & masks.padding([12, 15]) | masks.global_tokens([2]),
}
EDGES = {
    "even": (even_edges(range(N_Q), 5), even_edges(range(N_K), 5)),
    "uneven": ([0, 1, 8, 10], [0, 3, 4, 12, 15]),
    "one group": ([0, N_Q], [0, N_K]),
    "every weight": (list(range(N_Q + 1)), list(range(N_K + 1))),
    "a part": ([2, 4, 9], [3, 4, 11, 14]),
}


def drawn(rng):
    query, key = (rng.normal(size=size).astype(np.float32) * 2 for size in ((2, 4, N_Q, 8), (2, 2, N_K, 8)))
    return query, key, rng.normal(size=4).astype(np.float32)


def in_groups(weights, rows, cols):
    """The mean over groups of rows of the sum over groups of columns, the plain way."""
    wide = np.stack([weights[..., left:right].sum(-1) for left, right in pairwise(cols)], axis=-1)
    return np.stack([wide[..., top:low, :].mean(-2) for top, low in pairwise(rows)], axis=-2)


@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("none", "even"),
        ("none", "one group"),
        ("nothing allowed", "uneven"),
        ("mixed", "uneven"),
        ("mixed", "every weight"),
        ("mixed", "a part"),
    ],
)
def test_groups_of_the_map(library, rng, small_tiles, name, edges):
    query, key, sinks = drawn(rng)
    mask, (rows, cols) = MASKS[name], EDGES[edges]
    allowed = None if mask is None else mask.dense(N_Q, N_K).reshape(-1, 1, N_Q, N_K)
    expected = reference.weights(query, key, allowed=allowed, sinks=sinks)
    problem = Problem.of(library(query), library(key), mask, sinks=library(sinks))
    small, lse = pooled(problem, rows, cols)
    np.testing.assert_allclose(numbers(small), in_groups(expected, rows, cols), atol=1e-5)
    again, same = pooled(problem, rows, cols, lse)  # known beforehand, it is not looked for
    assert same.shape == (2, 4, rows[-1] - rows[0], 1)
    np.testing.assert_allclose(numbers(again), numbers(small), atol=1e-6)
    np.testing.assert_allclose(numbers(same), numbers(lse))


def test_the_log_sum_exp_is_that_of_the_rows(library, rng, small_tiles):
    query, key, _ = drawn(rng)
    problem = Problem.of(library(query), library(key), masks.causal(), softcap=4.0, bias=positions.alibi(4))
    rows, cols = EDGES["even"]
    expected = tiled.log_sum_exp(problem, range(rows[0], rows[-1]))
    np.testing.assert_allclose(numbers(pooled(problem, rows, cols)[1]), numbers(expected), atol=1e-5)


def test_a_peak_in_a_later_tile(library, small_tiles):
    """Each tile is summed under a peak of its own; scores that would overflow without it come late."""
    query, key = np.full((1, 3, 1), 100.0, np.float32), np.linspace(-50, 50, 30, dtype=np.float32)[None, :, None]
    small, _ = pooled(Problem.of(library(query), library(key), scale=1.0), [0, 3], [0, 10, 29, 30])
    np.testing.assert_allclose(numbers(small)[0], [[0, 0, 1]], atol=1e-6)


def test_large_tiles_give_the_same(library, rng):
    query, key, _ = drawn(rng)
    rows, cols = EDGES["uneven"]
    small, _ = pooled(Problem.of(library(query), library(key)), rows, cols)
    np.testing.assert_allclose(numbers(small), in_groups(reference.weights(query, key), rows, cols), atol=1e-5)


@pytest.mark.parametrize(
    ("span", "groups", "edges"),
    [
        (range(10), 5, [0, 2, 4, 6, 8, 10]),
        (range(10), 4, [0, 2, 5, 7, 10]),
        (range(3), 8, [0, 1, 2, 3]),
        (range(4, 10), 2, [4, 7, 10]),
        (range(5, 5), 3, [5]),
    ],
)
def test_even_edges(span, groups, edges):
    assert even_edges(span, groups) == edges


def test_a_row_that_is_not_numbers_spoils_its_own_group_only(library, rng, small_tiles):
    query, key, _ = drawn(rng)
    query[1, 2, 4] = np.nan
    rows, cols = EDGES["uneven"]
    small, _ = pooled(Problem.of(library(query), library(key)), rows, cols)
    spoilt = np.isnan(numbers(small))
    assert spoilt[1, 2, 1].all()
    assert spoilt.sum() == len(cols) - 1
    query[1, 2, 4] = 0
    expected = in_groups(reference.weights(query, key), rows, cols)
    np.testing.assert_allclose(numbers(small)[~spoilt], expected[~spoilt], atol=1e-5)
