"""A bias that depends on the distance alone, against the same numbers written out."""

import numpy as np
import pytest

from regard.errors import OptionError, ShapeError
from regard.formula import masks, positions, weights
from tests import reference
from tests.formula.conftest import numbers

N_Q, N_K = 25, 40


def written_out(table, first, offset=N_K - N_Q):
    """table[.., distance − first] for every query and key.   (.., N) -> (.., Q, K)"""
    distance = np.arange(N_K) - (np.arange(N_Q)[:, None] + offset)
    return table[..., distance - first]


@pytest.mark.parametrize("lead", [(4,), (1,), (2, 4), (2, 1)])
@pytest.mark.parametrize("offset", [None, 0, 3])
def test_against_the_bias_written_out(library, rng, small_tiles, lead, offset):
    query, key = (rng.normal(size=size).astype(np.float32) for size in ((2, 4, N_Q, 8), (2, 2, N_K, 8)))
    table = rng.normal(size=(*lead, 2 * N_K)).astype(np.float32)
    first = -N_K
    bias = positions.by_distance(library(table), first, offset)
    expected = written_out(table, first, N_K - N_Q if offset is None else offset)
    for mask, allowed in ((None, None), (masks.causal(), masks.causal().dense(N_Q, N_K))):
        answer = weights(library(query), library(key), mask, bias=bias)
        np.testing.assert_allclose(
            numbers(answer), reference.weights(query, key, bias=expected, allowed=allowed), atol=1e-6
        )


def test_alibi_is_of_this_kind(library):
    distances = np.arange(-N_K, N_K)
    table = -np.abs(distances) * np.asarray(positions.bias.alibi_slopes(3))[:, None]
    like, shape, whole = library(np.zeros(1)), (3, N_Q, N_K), (slice(None), slice(None))
    made = positions.by_distance(library(table), -N_K).tile(*whole, shape, like=like)
    np.testing.assert_allclose(numbers(made), numbers(positions.alibi(3).tile(*whole, shape, like=like)), atol=1e-12)


def test_t5_is_of_this_kind(library, rng):
    table = rng.normal(size=(8, 3)).astype(np.float32)
    buckets = positions.bias.t5_buckets(np.arange(-N_K, N_K), both_ways=True, buckets=8)
    like, shape, whole = library(np.zeros(1, np.float32)), (3, N_Q, N_K), (slice(None), slice(None))
    made = positions.by_distance(library(table[buckets].T.copy()), -N_K).tile(*whole, shape, like=like)
    same = positions.t5(library(table), both_ways=True).tile(*whole, shape, like=like)
    np.testing.assert_array_equal(numbers(made), numbers(same))


def test_one_map_of_many(library, rng):
    table = rng.normal(size=(2, 4, 2 * N_K)).astype(np.float32)
    bias = positions.by_distance(library(table), -N_K).item((1, 2), (2, 4, N_Q, N_K))
    tile = bias.tile(slice(3, 9), slice(5, 11), (N_Q, N_K), like=library(np.zeros(1, np.float32)))
    np.testing.assert_array_equal(numbers(tile), written_out(table, -N_K)[1, 2, 3:9, 5:11])


def test_what_does_not_fit(library, rng):
    bias = positions.by_distance(library(np.zeros((1, 20), np.float32)), -10)
    with pytest.raises(ShapeError, match=r"distances -10 to 9, and the map \(1, 25, 40\) has -39 to 24"):
        bias.tile(slice(None), slice(None), (1, N_Q, N_K), like=library(np.zeros(1, np.float32)))
    with pytest.raises(OptionError, match=r"offset is 1\.5"):
        positions.by_distance(library(np.zeros((1, 20), np.float32)), -10, 1.5)
