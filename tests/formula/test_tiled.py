"""Tiles against the whole map: the same answer in O(n) memory, faster where it counts."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from threadpoolctl import ThreadpoolController

from regard.formula import attend, fused, masks, positions, statistics, threads, tiled, weights
from regard.formula.problem import Problem
from regard.formula.threads import in_parallel
from tests import reference
from tests.formula.conftest import numbers

MASKS = {
    "none": None,
    "causal": masks.causal(),
    "top-left": masks.causal(0),
    "padding": masks.padding([17, 40]),
    "window": masks.window(5, 3),
    "nothing allowed": masks.padding([0, 3]),
    "mixed": masks.causal() & masks.padding([30, 40]) | masks.global_tokens([2]),
    "turned round": ~masks.causal(),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("n_q", [40, 25])
def test_tiles_give_the_formula(library, rng, small_tiles, name, n_q):
    query, key, value = (
        rng.normal(size=size).astype(np.float32) * 3 for size in ((2, 4, n_q, 8), (2, 2, 40, 8), (2, 2, 40, 6))
    )
    sinks = rng.normal(size=4).astype(np.float32)
    mask = MASKS[name]
    allowed = None if mask is None else mask.dense(n_q, 40).reshape(-1, 1, n_q, 40)
    for terms in ({}, {"sinks": sinks, "softcap": 4.0, "scale": 0.5}):
        expected = reference.attend(query, key, value, allowed=allowed, **terms)
        given = {term: library(part) if isinstance(part, np.ndarray) else part for term, part in terms.items()}
        answer = attend(library(query), library(key), library(value), mask, **given)
        np.testing.assert_allclose(numbers(answer), expected, atol=1e-5)


def test_the_whole_map_made_in_blocks(library, rng, small_tiles):
    query, key = (rng.normal(size=size).astype(np.float32) for size in ((2, 4, 25, 8), (2, 2, 40, 8)))
    sinks = rng.normal(size=4).astype(np.float32)
    for mask in (None, MASKS["mixed"]):
        allowed = None if mask is None else mask.dense(25, 40)[:, None]
        expected = reference.weights(query, key, allowed=allowed, sinks=sinks)
        answer = weights(library(query), library(key), mask, sinks=library(sinks))
        np.testing.assert_allclose(numbers(answer), expected, atol=1e-6)


@pytest.mark.parametrize("name", MASKS)
def test_statistics_are_those_of_the_map(library, rng, small_tiles, name):
    query, key = (rng.normal(size=size).astype(np.float32) * 2 for size in ((2, 4, 25, 8), (2, 2, 40, 8)))
    sinks = rng.normal(size=4).astype(np.float32)
    mask = MASKS[name]
    allowed = None if mask is None else mask.dense(25, 40).reshape(-1, 1, 25, 40)
    for terms in ({}, {"sinks": sinks}):
        exact = reference.weights(query, key, allowed=allowed, **terms)
        given = {term: library(part) for term, part in terms.items()}
        found = statistics(library(query), library(key), mask, **given)
        logs = np.log(np.where(exact > 0, exact, 1))
        far = np.abs(np.arange(25)[:, None] + 15 - np.arange(40))
        np.testing.assert_allclose(numbers(found.entropy), -(exact * logs).sum(-1), atol=1e-5)
        np.testing.assert_allclose(numbers(found.received), exact.sum(-2), atol=1e-5)
        np.testing.assert_allclose(numbers(found.distance), (exact * far).sum(-1), atol=1e-4)
        table = reference.scores(query, key, allowed=allowed)
        lse = np.logaddexp.reduce(table, axis=-1)
        if terms:
            lse = np.logaddexp(lse, sinks[:, None].astype(np.float64))
        np.testing.assert_allclose(numbers(found.log_sum_exp), lse, atol=1e-5)


def test_distance_is_from_where_the_query_stands():
    """A query at place 2 of a cache with room for 10 keys: keys 0, 1 and 2 are 2, 1 and 0 away."""
    query, key = np.zeros((1, 4)), np.zeros((10, 4))
    found = statistics(query, key, masks.causal(offset=2), offset=2)
    np.testing.assert_allclose(found.distance, [1.0])
    np.testing.assert_allclose(statistics(query, key).distance, [4.5])


@pytest.mark.parametrize("sharpness", [1, 100, 1000])
def test_entropy_keeps_its_digits_when_scores_are_large(library, rng, small_tiles, sharpness):
    query, key = (rng.normal(size=(2, n, 16)).astype(np.float32) for n in (40, 50))
    query = query * np.float32(sharpness)
    exact = reference.weights(query, key)
    entropy = -(exact * np.log(np.where(exact > 0, exact, 1))).sum(-1)
    found = numbers(statistics(library(query), library(key)).entropy)
    np.testing.assert_allclose(found, entropy, atol=1e-4)
    assert np.all(found >= 0)


def test_without_keys_the_sink_is_all_there_is(library):
    query, key = library(np.zeros((1, 2, 4), np.float32)), library(np.zeros((1, 0, 4), np.float32))
    found = statistics(query, key, sinks=library(np.asarray([1.5], np.float32)))
    np.testing.assert_allclose(numbers(found.log_sum_exp), [[1.5, 1.5]])


def test_statistics_of_nothing(library):
    empty = statistics(library(np.zeros((2, 3, 4), np.float32)), library(np.zeros((2, 0, 4), np.float32)))
    assert np.all(numbers(empty.log_sum_exp) == -np.inf)
    assert empty.received.shape == (2, 0)


def test_a_large_map_is_not_held(rng, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 2)  # each core has a few tiles of its own
    query, key, value = (rng.normal(size=(1, 8192, 16)).astype(np.float32) for _ in range(3))
    whole = 8192**2 * 4  # bytes of the scores alone
    for call in (
        lambda: attend(query, key, value),
        lambda: attend(query, key, value, masks.causal()),
        lambda: statistics(query, key, masks.causal()),
        lambda: weights(query, key, masks.causal(), rows=slice(8000, 8100), cols=slice(0, 100)),
    ):
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < whole / 8
    rows = slice(1000, 1010)
    expected = reference.attend(query[:, rows], key, value, allowed=masks.causal().dense(8192)[rows])
    np.testing.assert_allclose(attend(query, key, value, masks.causal())[:, rows], expected, atol=1e-5)


def test_blas_gets_its_threads_back_also_when_callers_overlap(rng):
    blas = ThreadpoolController().select(user_api="blas")
    before = [part["num_threads"] for part in blas.info()]
    query = rng.normal(size=(2, 2100, 8)).astype(np.float32)
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: attend(query, query, query), range(6)))
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])
    assert [part["num_threads"] for part in blas.info()] == before


def test_an_error_in_one_task_comes_out_and_blas_is_restored():
    blas = ThreadpoolController().select(user_api="blas")
    before = [part["num_threads"] for part in blas.info()]
    with pytest.raises(ZeroDivisionError):
        in_parallel(lambda number: 1 / number, [2, 1, 0, 3])
    assert [part["num_threads"] for part in blas.info()] == before


class TestFused:
    """PyTorch's kernel is used where it gives our answer, and only there."""

    @pytest.mark.parametrize("shape", [((9, 8), (9, 8)), ((3, 9, 8), (3, 9, 8)), ((2, 4, 9, 8), (2, 2, 9, 8)),
                                       ((2, 3, 4, 9, 8), (3, 1, 9, 8)), ((2, 4, 9, 8), (1, 4, 9, 8))])  # fmt: skip
    @pytest.mark.parametrize("terms", [{}, {"mask": masks.causal()}, {"mask": masks.window(2, 2)}, {"scale": 0.2}])
    def test_it_is_taken_and_right(self, rng, shape, terms):
        query, key = (torch.tensor(rng.normal(size=size), dtype=torch.float32) for size in shape)
        problem = Problem.of(query, key, **terms)
        mixed = fused.attend(problem, key)
        assert mixed is not None
        expected = tiled.attend(problem, key)
        torch.testing.assert_close(mixed, expected, atol=1e-5, rtol=1e-5)

    def test_it_is_left_where_it_would_be_wrong_or_hold_the_map(self, rng):
        query = torch.tensor(rng.normal(size=(2, 9, 8)), dtype=torch.float32)
        poisoned = query.clone()
        poisoned[:, 5] = float("nan")
        sinks = torch.zeros(2)
        for problem, value in (
            (Problem.of(query, query, softcap=1.0), query),
            (Problem.of(query, query, sinks=sinks), query),
            (Problem.of(query, query), query[..., :5]),
            (Problem.of(query, poisoned, masks.causal()), query),
            (Problem.of(query, query[:, :0]), query[:, :0]),
        ):
            assert fused.attend(problem, value) is None
        long = torch.zeros(1, 1, 8192, 8)
        assert fused.attend(Problem.of(long, long, masks.window(10, 0)), long) is None
        given = torch.ones(8192, 8192, dtype=torch.bool)  # it stands there already
        assert fused.attend(Problem.of(long, long, given), long) is not None
        assert fused.attend(Problem.of(long[..., :16, :], long, bias=positions.alibi(1)), long) is not None

    def test_weights_and_the_kernel_tell_the_same(self, rng):
        query, key, value = (torch.tensor(rng.normal(size=(2, 4, 9, 8))) for _ in range(3))
        mask = masks.causal() & masks.padding([9, 4])
        torch.testing.assert_close(weights(query, key, mask) @ value, attend(query, key, value, mask))
