"""Every mask against a loop over single cells, on every library, whole and in rectangles."""

import itertools
import tracemalloc

import numpy as np
import pytest
import torch

from regard.errors import DtypeError, OptionError, RegardError, ShapeError
from regard.formula import attend, masks
from tests.formula.conftest import numbers

IDS = np.asarray([[5, 6, 0, 7, 0], [1, 0, 0, 0, 0]])
SEGMENTS = np.asarray([[0, 0, 1, 1, 2], [0, 1, 1, 1, 1]])

# name: (mask, may query i of item b of n_q see key j of n_k?)
CASES = {
    "causal": (lambda array: masks.causal(), lambda b, i, j, n_q, n_k: j <= i + n_k - n_q),
    "causal top-left": (lambda array: masks.causal(0), lambda b, i, j, n_q, n_k: j <= i),
    "causal with a cache": (lambda array: masks.causal(offset=2), lambda b, i, j, n_q, n_k: j <= i + 2),
    "causal per item": (
        lambda array: masks.causal(array(np.asarray([0, -2]))),
        lambda b, i, j, n_q, n_k: j <= i + [0, -2][b],
    ),
    "window": (lambda array: masks.window(2, 1), lambda b, i, j, n_q, n_k: -2 <= j - (i + n_k - n_q) <= 1),
    "window to the left": (lambda array: masks.window(1), lambda b, i, j, n_q, n_k: j - (i + n_k - n_q) >= -1),
    "window to the right": (lambda array: masks.window(right=0), lambda b, i, j, n_q, n_k: j <= i + n_k - n_q),
    "window open on both sides": (lambda array: masks.window(), lambda b, i, j, n_q, n_k: True),
    "window far along": (lambda array: masks.window(None, 0, offset=1000), lambda b, i, j, n_q, n_k: j <= i + 1000),
    "window of NumPy's numbers": (
        lambda array: masks.window(np.int64(1), np.int64(0)),
        lambda b, i, j, n_q, n_k: 0 <= i + n_k - n_q - j <= 1,
    ),
    "window, offset": (lambda array: masks.window(1, 1, offset=1), lambda b, i, j, n_q, n_k: abs(j - i - 1) <= 1),
    "lengths": (lambda array: masks.padding(array(np.asarray([3, 0]))), lambda b, i, j, n_q, n_k: j < [3, 0][b]),
    "lengths as a list": (lambda array: masks.padding([3, 5]), lambda b, i, j, n_q, n_k: j < [3, 5][b]),
    "ids": (lambda array: masks.padding_of_ids(array(IDS)), lambda b, i, j, n_q, n_k: IDS[b, j] != 0),
    "pad token": (lambda array: masks.padding_of_ids(array(IDS), 7), lambda b, i, j, n_q, n_k: IDS[b, j] != 7),
    "keys": (lambda array: masks.keys(array(IDS > 4)), lambda b, i, j, n_q, n_k: IDS[b, j] > 4),
    "blocks": (lambda array: masks.blocks(2), lambda b, i, j, n_q, n_k: (i + n_k - n_q) // 2 == j // 2),
    "global": (lambda array: masks.global_tokens([0, 3]), lambda b, i, j, n_q, n_k: {i + n_k - n_q, j} & {0, 3}),
    "no global": (lambda array: masks.global_tokens([]), lambda b, i, j, n_q, n_k: False),
    "turned round": (lambda array: ~masks.causal(), lambda b, i, j, n_q, n_k: j > i + n_k - n_q),
    "both": (
        lambda array: masks.causal() & masks.padding([4, 2]),
        lambda b, i, j, n_q, n_k: j <= i + n_k - n_q and j < [4, 2][b],
    ),
    "either": (
        lambda array: masks.window(0, 0) | masks.padding([1, 2]),
        lambda b, i, j, n_q, n_k: j == i + n_k - n_q or j < [1, 2][b],
    ),
    "three": (
        lambda array: (masks.causal() & ~masks.window(1, 1)) | masks.global_tokens([1]),
        lambda b, i, j, n_q, n_k: (i + n_k - n_q - j > 1) or 1 in (i + n_k - n_q, j),
    ),
}
SQUARE_ONLY = {
    "segments": (
        lambda array: masks.segments(array(SEGMENTS)),
        lambda b, i, j, n_q, n_k: SEGMENTS[b, i] == SEGMENTS[b, j],
    ),
    "packed": (
        lambda array: masks.segments(array(SEGMENTS)) & masks.causal(),
        lambda b, i, j, n_q, n_k: SEGMENTS[b, i] == SEGMENTS[b, j] and j <= i,
    ),
    "given": (
        lambda array: masks.given(array(SEGMENTS[0, None, :] > SEGMENTS[1, :, None])),
        lambda b, i, j, n_q, n_k: SEGMENTS[0, j] > SEGMENTS[1, i],
    ),
    "a row given": (lambda array: masks.given(array(SEGMENTS[0] > 0)), lambda b, i, j, n_q, n_k: SEGMENTS[0, j] > 0),
}


def cell_by_cell(allow, n_q, n_k):
    cells = itertools.product(range(2), range(n_q), range(n_k))
    return np.asarray([bool(allow(b, i, j, n_q, n_k)) for b, i, j in cells]).reshape(2, n_q, n_k)


@pytest.mark.parametrize(
    ("name", "n_q"), [*itertools.product(CASES, (5, 3, 1, 7)), *itertools.product(SQUARE_ONLY, (5,))]
)
def test_each_cell(library, name, n_q):
    make, allow = {**CASES, **SQUARE_ONLY}[name]
    expected, mask, like = cell_by_cell(allow, n_q, 5), make(library), library(np.zeros(1))
    shape = (2, 4, n_q, 5)  # two items, four heads
    whole = numbers(mask.tile(slice(None), slice(None), shape, like=like))
    whole = whole.reshape(*(1,) * (3 - whole.ndim), *whole.shape) if whole.ndim < 4 else whole[:, 0]
    np.testing.assert_array_equal(np.broadcast_to(whole, expected.shape), expected)
    np.testing.assert_array_equal(np.broadcast_to(numbers(mask.dense(n_q, 5, like=like)), expected.shape), expected)


@pytest.mark.parametrize(("name", "n_q"), [*itertools.product(CASES, (5, 3, 7)), *itertools.product(SQUARE_ONLY, (5,))])
def test_rectangles_and_items_agree_with_the_whole(name, n_q):
    make, allow = {**CASES, **SQUARE_ONLY}[name]
    expected, mask, shape = cell_by_cell(allow, n_q, 5), make(np.asarray), (2, n_q, 5)
    for item in range(2):
        one = mask.item((item,), shape)
        for start, stop in itertools.combinations(range(n_q + 1), 2):
            rows, alone = range(start, stop), expected[item, start:stop]
            tile = one.tile(slice(start, stop), slice(1, 4), shape[1:])
            np.testing.assert_array_equal(np.broadcast_to(tile, (stop - start, 3)), alone[:, 1:4])
            for left, right in itertools.combinations(range(6), 2):
                cols = range(left, right)
                for seen, cells in (
                    (one.sees(rows, cols, shape[1:]), alone[:, left:right]),
                    (mask.sees(rows, cols, shape), expected[:, start:stop, left:right]),
                ):
                    assert seen is None or (cells.all() if seen else not cells.any())


def test_an_array_for_each_item_and_head_is_picked_apart():
    allowed = np.random.default_rng(0).random((2, 4, 3, 5)) < 0.5
    for given in (allowed, allowed[:, :1], allowed[:1]):
        one = masks.given(given).item((1, 3), allowed.shape)
        np.testing.assert_array_equal(one.dense(3, 5), np.broadcast_to(given, allowed.shape)[1, 3])


def test_whole_tiles_are_known_where_they_can_be():
    shape, rows = (10000, 10000), range(5000, 5100)
    for mask, left, right, seen in (
        (masks.causal(), 0, 5001, True),
        (masks.causal(), 4000, 5002, None),
        (masks.causal(), 5100, 5200, False),
        (masks.causal(10), 0, 5011, True),
        (masks.window(500, 0), 4599, 5001, True),
        (masks.window(500, 0), 4598, 5001, None),
        (masks.window(50, 10), 0, 4950, False),
        (masks.window(50, 10), 5110, 6000, False),
        (masks.window(right=3), 0, 5004, True),
        (masks.blocks(5000), 5000, 10000, True),
        (masks.blocks(5000), 0, 5000, False),
        (masks.padding(100), 0, 100, True),
        (masks.padding(100), 100, 101, False),
        (masks.global_tokens([0, 5050]), 1, 100, None),
        (masks.global_tokens([0, 6000]), 1, 100, False),
        (masks.window(50, 10) | masks.global_tokens([0]), 1, 4950, False),
        (masks.window(50, 10) | masks.global_tokens([0]), 0, 4950, None),
        (masks.causal() & masks.padding(100), 100, 200, False),
        (masks.causal() & masks.padding(100), 0, 100, True),
        (masks.causal() & np.ones(10000, bool), 5100, 5200, False),
        (~masks.causal(), 0, 5001, False),
        (~masks.causal(), 5100, 5200, True),
    ):
        assert mask.sees(rows, range(left, right), shape) is seen


def test_what_is_dense_goes_in_again(library, rng):
    """With as many items as heads, where a plain (batch, queries, keys) would be read as (heads, queries, keys)."""
    query, key, value = (library(rng.normal(size=(2, 2, 3, 4)).astype(np.float32)) for _ in range(3))
    mask = masks.padding([1, 3]) & masks.causal()
    expected = numbers(attend(query, key, value, mask))
    for again in (mask.dense(2, 2, 3, 3, like=query), masks.from_binary(mask.binary(2, 2, 3, 3, like=query))):
        np.testing.assert_array_equal(numbers(attend(query, key, value, again)), expected)
    assert mask.dense(2, 1, 3, 3, like=query).shape == (2, 1, 3, 3)
    assert mask.dense(3, like=query).shape == (2, 3, 3)


def test_a_structured_mask_never_becomes_the_map():
    mask = masks.causal() & masks.window(100, 0) | masks.global_tokens([0])
    tracemalloc.start()
    tile = mask.tile(slice(500_000, 500_010), slice(499_995, 500_005), (10**6, 10**6))
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()
    assert tile.shape == (10, 10)
    assert tile[0, 5]
    assert not tile[0, 6]


def test_additive_and_binary_forms_go_out_and_in(library):
    like = library(np.zeros(1, np.float32))
    mask = masks.causal()
    additive = mask.additive(3, like=like)
    np.testing.assert_array_equal(numbers(additive), [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]])
    binary = mask.binary(3, like=like)
    np.testing.assert_array_equal(numbers(binary), np.tril(np.ones((3, 3))))
    for again in (masks.from_additive(additive), masks.from_binary(binary)):
        np.testing.assert_array_equal(numbers(again.dense(3)), np.tril(np.ones((3, 3), bool)))


def test_minus_1e9_is_a_mask_when_one_says_so():
    additive = np.where(np.tril(np.ones((3, 3))) > 0, 0.0, -1e9)
    with pytest.raises(DtypeError, match=r"never=-1e4"):
        masks.from_additive(additive)
    np.testing.assert_array_equal(masks.from_additive(additive, never=-1e4).dense(3), np.tril(np.ones((3, 3), bool)))


def test_arrays_join_with_masks_on_either_side():
    array = np.asarray([True, False, True])
    expected = np.tril(np.ones((3, 3), bool)) & array
    for mask in (masks.causal() & array, array & masks.causal()):
        np.testing.assert_array_equal(mask.dense(3), expected)
    tensor = torch.tensor(array)
    for mask in (masks.causal() | tensor, tensor | masks.causal()):
        np.testing.assert_array_equal(mask.dense(3), np.tril(np.ones((3, 3), bool)) | array)


class TestBadInput:
    def attend(self, mask, shape=(2, 4, 5, 8)):
        query = np.zeros(shape, np.float32)
        return attend(query, query, query, mask)

    @pytest.mark.parametrize(
        ("mask", "words"),
        [
            (np.ones((5, 5)), r"mask has dtype float64.*from_binary.*from_additive.*bias="),
            (np.ones((5, 5), int), r"mask has dtype int64.*from_binary"),
            ([[True]], r"mask is a list.*numpy\.asarray\(mask\)"),
            (torch.ones(5, 5, dtype=torch.bool), r"query from numpy, mask from torch"),
            (masks.padding(torch.tensor([3, 3])), r"query from numpy, mask from torch"),
        ],
    )
    def test_wrong_kind(self, mask, words):
        with pytest.raises(DtypeError, match=words):
            self.attend(mask)

    @pytest.mark.parametrize(
        ("mask", "words"),
        [
            (np.ones((2, 5), bool), r"\(2, 5\).*\(2, 4, 5, 5\).*masks\.keys\(mask\)"),
            (np.ones((2, 5, 5), bool), r"\(2, 5, 5\).*\(2, 4, 5, 5\).*mask\[:, None\]"),
            (np.ones((3, 1, 5, 5), bool), r"\(3, 1, 5, 5\).*\(2, 4, 5, 5\)"),
            (np.ones((1, 2, 4, 5, 5), bool), r"\(1, 2, 4, 5, 5\).*\(2, 4, 5, 5\)"),
            (masks.padding([1, 2, 3]), r"\(3,\).*\(2, 4, 5, 5\)"),
            (masks.keys(np.ones((2, 6), bool)), "6 keys and there are 5"),
            (masks.segments(np.zeros((2, 4), int)), r"\(4, 4\) queries and keys and there are \(5, 5\)"),
            (masks.global_tokens([0, 5]), r"\[5\], and there are 5 keys"),
            (masks.causal(np.zeros(3, int)), r"offset has batch axes \(3,\).*\(2, 4, 5, 5\)"),
        ],
    )
    def test_wrong_shape(self, mask, words):
        with pytest.raises(ShapeError, match=words):
            self.attend(mask)

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: masks.window(-1), "left=-1"),
            (lambda: masks.window(1.5), r"left=1\.5"),
            (lambda: masks.blocks(0), "size 0"),
            (lambda: masks.padding(np.asarray([1.5])), "float64"),
            (lambda: masks.padding([1.5]), r"\[1\.5\]"),
            (lambda: masks.keys(np.asarray([1, 0])), "int64"),
            (lambda: masks.from_binary(np.asarray([0.5])), "only 0 and 1"),
            (lambda: masks.causal(0.5), r"0\.5"),
            (lambda: masks.global_tokens([0.7]), r"0\.7"),
            (lambda: masks.global_tokens("12"), "'1'"),
            (lambda: masks.padding_of_ids(np.asarray([[1]]), None), r"pad_token is None.*masks\.padding"),
            (lambda: masks.padding_of_ids(np.asarray([[1.0]])), "float64"),
        ],
    )
    def test_wrong_options(self, make, words):
        with pytest.raises(RegardError, match=words) as caught:
            make()
        assert isinstance(caught.value, OptionError | DtypeError)
