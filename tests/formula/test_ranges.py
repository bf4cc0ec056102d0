"""Masks whose rows have no holes, as a first and a last key for each query."""

import numpy as np
import pytest

from regard.errors import DtypeError, ShapeError
from regard.formula import attend, masks, weights
from tests import reference
from tests.formula.conftest import numbers

N_Q, N_K = 10, 24


def dense(first, last):
    places = np.arange(N_K)
    return (first[..., :, None] <= places) & (places <= last[..., :, None])


def drawn(rng, *lead):
    first = rng.integers(0, N_K, size=(*lead, N_Q))
    return first, np.minimum(first + rng.integers(-1, 9, size=(*lead, N_Q)), N_K - 1)  # some see nothing


@pytest.mark.parametrize("lead", [(), (2,)])
def test_against_the_same_mask_written_out(library, rng, small_tiles, lead):
    query, key, value = (
        rng.normal(size=size).astype(np.float32) for size in ((2, 4, N_Q, 8), (2, 2, N_K, 8), (2, 2, N_K, 6))
    )
    first, last = drawn(rng, *lead)
    allowed = dense(first, last)
    allowed = allowed[:, None] if lead else allowed
    mask = masks.ranges(library(first), library(last))
    expected = reference.attend(query, key, value, allowed=allowed)
    np.testing.assert_allclose(numbers(attend(*map(library, (query, key, value)), mask)), expected, atol=1e-5)
    expected = reference.weights(query, key, allowed=allowed)
    np.testing.assert_allclose(numbers(weights(library(query), library(key), mask)), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("mask", "first", "last"),
    [
        (masks.causal(), lambda i: 0 * i, lambda i: i + N_K - N_Q),
        (masks.window(4, 2), lambda i: i + N_K - N_Q - 4, lambda i: i + N_K - N_Q + 2),
        (masks.padding(17), lambda i: 0 * i, lambda i: 0 * i + 16),
    ],
)
def test_other_masks_are_of_this_kind(mask, first, last):
    places = np.arange(N_Q)
    same = masks.ranges(first(places), last(places))
    assert np.array_equal(same.dense(N_Q, N_K), np.broadcast_to(mask.dense(N_Q, N_K), (N_Q, N_K)))


def test_whole_tiles_are_known(library, rng):
    """What `sees` says of a tile is true of every weight in it, and it does say something."""
    first, last = drawn(rng)
    first, last = np.sort(first), np.sort(last)
    mask, whole = masks.ranges(library(first), library(last)), dense(first, last)
    said = set()
    for top in range(0, N_Q, 2):
        for left in range(0, N_K, 4):
            answer = mask.sees(range(top, top + 2), range(left, left + 4), (N_Q, N_K))
            tile = whole[top : top + 2, left : left + 4]
            assert answer is None or (tile.all() if answer else not tile.any())
            said.add(answer)
    assert False in said
    wide = masks.ranges(library(np.zeros(N_Q, int)), library(np.full(N_Q, N_K - 1)))
    assert wide.sees(range(N_Q), range(N_K), (N_Q, N_K)) is True


def test_one_text_of_a_batch(library, rng):
    first, last = drawn(rng, 3)
    mask = masks.ranges(library(first), library(last))
    assert mask.lead() == (3,)
    alone = mask.item((1, 0), (3, 4, N_Q, N_K))
    assert np.array_equal(numbers(alone.dense(N_Q, N_K, like=library(np.zeros(1, np.float32)))), dense(first, last)[1])


def test_what_does_not_fit():
    places = np.arange(N_Q)
    with pytest.raises(ShapeError, match=r"first \(10,\) and last \(9,\)"):
        masks.ranges(places, places[1:])
    with pytest.raises(ShapeError, match="10 queries and there are 7"):
        masks.ranges(places, places).dense(7, N_K)
    with pytest.raises(DtypeError, match="first"):
        masks.ranges(places / 2, places)
