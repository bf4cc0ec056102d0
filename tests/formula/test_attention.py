"""attend and weights against the reference, on every library, with everything that shapes a weight."""

import tracemalloc
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.formula import attend, attended, masks, positions, scores, threads, weights
from tests import reference
from tests.formula.conftest import LIBRARIES, numbers

sizes = st.integers(1, 6)


@st.composite
def problems(draw):
    """Arrays and shaping of a random problem: batch, grouped heads, unequal lengths and widths, any mix of terms."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    batch, groups, per_group, n_q, n_k, width, value_width = (draw(sizes) for _ in range(7))
    heads = groups * per_group
    arrays = [
        rng.normal(size=shape).astype(np.float32)
        for shape in ((batch, heads, n_q, width), (batch, groups, n_k, width), (batch, groups, n_k, value_width))
    ]
    shaping = {}
    if draw(st.booleans()):
        shaping["scale"] = draw(st.floats(0.01, 2))
    if draw(st.booleans()):
        shaping["softcap"] = draw(st.floats(0.5, 5))
    if draw(st.booleans()):
        shaping["bias"] = rng.normal(size=(heads, n_q, n_k)).astype(np.float32)
    if draw(st.booleans()):
        shaping["sinks"] = rng.normal(size=heads).astype(np.float32)
    if draw(st.booleans()):
        shaping["mask"] = rng.random((batch, 1, n_q, n_k)) < 0.6
    return arrays, shaping


@pytest.mark.parametrize("name", [name for name in LIBRARIES if name != "jax"])
@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_everything_together_is_the_formula(name, problem):
    check_against_the_reference(name, problem)


@settings(max_examples=5, deadline=None)  # JAX compiles anew for every shape
@given(problem=problems())
def test_everything_together_is_the_formula_on_jax(problem):
    check_against_the_reference("jax", problem)


def check_against_the_reference(name, problem):
    (query, key, value), shaping = problem
    library = LIBRARIES[name]
    given_shaping = {term: library(part) if isinstance(part, np.ndarray) else part for term, part in shaping.items()}
    expected = {("allowed" if term == "mask" else term): part for term, part in shaping.items()}
    arrays = [library(array) for array in (query, key, value)]
    np.testing.assert_allclose(
        numbers(attend(*arrays, **given_shaping)), reference.attend(query, key, value, **expected), atol=2e-5
    )
    np.testing.assert_allclose(
        numbers(weights(*arrays[:2], **given_shaping)), reference.weights(query, key, **expected), atol=1e-5
    )


def test_leading_axes_broadcast(library, rng):
    shapes = [((5, 8), (7, 8), (7, 3)), ((2, 5, 8), (7, 8), (7, 3)), ((3, 2, 5, 8), (2, 7, 8), (7, 3)),
              ((5, 8), (7, 8), (4, 7, 3)), ((2, 3, 4, 5, 8), (2, 1, 2, 7, 8), (4, 7, 3))]  # fmt: skip
    for shape in shapes:
        query, key, value = (rng.normal(size=size).astype(np.float32) for size in shape)
        answer = numbers(attend(*map(library, (query, key, value))))
        np.testing.assert_allclose(answer, reference.attend(query, key, value), atol=1e-5)


def test_an_offset_for_each_item(library, rng):
    query, key, value = (rng.normal(size=(2, 3, 5, 4)).astype(np.float32) for _ in range(3))
    mask = masks.causal(library(np.asarray([0, -1]))) & masks.window(2, offset=library(np.asarray([0, -1])))
    allowed = np.stack([masks.causal(offset).dense(5) & masks.window(2, offset=offset).dense(5) for offset in (0, -1)])
    expected = reference.attend(query, key, value, allowed=allowed[:, None])
    np.testing.assert_allclose(numbers(attend(*map(library, (query, key, value)), mask)), expected, atol=1e-5)
    causal = masks.causal(library(np.asarray([0, -1])))
    expected = reference.attend(query, key, value, allowed=numbers(causal.dense(5))[:, None])
    np.testing.assert_allclose(numbers(attend(*map(library, (query, key, value)), causal)), expected, atol=1e-5)


def test_scores_are_what_softmax_is_taken_of(library, rng):
    query, key = (rng.normal(size=size).astype(np.float32) for size in ((2, 4, 5, 8), (2, 2, 6, 8)))
    mask = masks.causal()
    expected = reference.scores(query, key, allowed=mask.dense(5, 6), scale=0.7, softcap=3.0)
    table = numbers(scores(library(query), library(key), mask, scale=0.7, softcap=3.0))
    np.testing.assert_allclose(table, expected, atol=1e-5)


def test_a_rectangle_of_the_weights_is_cut_from_the_map(library, rng):
    query, key = (library(rng.normal(size=size).astype(np.float32)) for size in ((2, 40, 8), (2, 50, 8)))
    terms = {"mask": masks.causal() & masks.padding([45, 50]), "sinks": library(np.zeros(2, np.float32))}
    whole = numbers(weights(query, key, **terms))
    tile = numbers(weights(query, key, **terms, rows=slice(10, 30), cols=slice(5, 25)))
    np.testing.assert_allclose(tile, whole[:, 10:30, 5:25], atol=1e-7)
    np.testing.assert_allclose(numbers(weights(query, key, **terms, rows=slice(3, 4))), whole[:, 3:4], atol=1e-7)
    np.testing.assert_allclose(numbers(weights(query, key, **terms, cols=slice(-9, None))), whole[:, :, -9:], atol=1e-7)
    for rows, cols in ((slice(3, 3), slice(2, 5)), (slice(3, 5), slice(60, 70)), (slice(0, 0), slice(None))):
        empty = numbers(weights(query, key, **terms, rows=rows, cols=cols))
        assert empty.shape == whole[:, rows, cols].shape


def test_a_rectangle_of_a_long_text_costs_no_more_than_its_rows(rng, monkeypatch):
    """Half-precision keys of 100,000 tokens are widened tile by tile, and queries that nobody asks for not at all."""
    monkeypatch.setattr(threads, "cores", lambda: 2)  # each core has a buffer of its own
    query, key = (rng.normal(size=(4, 100_000, 16)).astype(np.float16) for _ in range(2))
    tracemalloc.start()
    tile = weights(query, key, masks.causal(), rows=slice(90_000, 90_004), cols=slice(10, 14))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < key.nbytes / 2
    scores = reference.scores(
        query[:, 90_000:90_004], key, allowed=np.arange(100_000) <= np.arange(90_000, 90_004)[:, None]
    )
    exact = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))[..., 10:14]
    np.testing.assert_allclose(tile, exact, rtol=1e-2, atol=1e-6)


def test_attended_is_attend_and_weights(library, rng):
    query, key, value = (
        library(rng.normal(size=size).astype(np.float32)) for size in ((2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 3))
    )
    for terms in ({}, {"mask": masks.causal(), "softcap": 2.0}, {"sinks": library(np.ones(4, np.float32))}):
        output, found = attended(query, key, value, **terms)
        np.testing.assert_allclose(numbers(output), numbers(attend(query, key, value, **terms)), atol=1e-6)
        np.testing.assert_array_equal(numbers(found), numbers(weights(query, key, **terms)))
    spoilt = library(np.where(np.arange(6)[:, None] == 5, np.nan, numbers(value)).astype(np.float32))
    output = numbers(attended(query, key, spoilt, masks.causal()).output)
    assert np.all(np.isfinite(output[..., :4, :]))
    assert np.all(np.isnan(output[..., 4, :]))


def test_integers_are_numbers_too():
    query, key, value = np.array([[1, 0]]), np.array([[1, 0], [0, 1], [1, 0]]), np.array([[10, 0], [0, 20], [30, 0]])
    np.testing.assert_allclose(attend(query, key, value), [[16.0445, 3.9555]], atol=5e-5)


class TestEdges:
    def test_a_row_that_sees_nothing_is_zero(self, library, rng):
        query, key, value = (library(rng.normal(size=(2, 3, 4)).astype(np.float32)) for _ in range(3))
        allowed = np.ones((3, 3), bool)
        allowed[1] = False
        for term in ({"mask": library(allowed)}, {"bias": library(np.where(allowed, 0, -np.inf).astype(np.float32))}):
            answer = numbers(attend(query, key, value, **term))
            assert np.all(answer[:, 1] == 0)
            assert np.all(np.isfinite(answer))
            assert np.all(numbers(weights(query, key, **term))[:, 1] == 0)

    @pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("where", ["key", "value"])
    @pytest.mark.parametrize("by", ["mask", "bias", "causal"])
    @pytest.mark.parametrize("value_width", [4, 3])
    def test_what_is_masked_never_reaches_the_answer(self, library, rng, poison, where, by, value_width):
        query, key = (rng.normal(size=(2, 5, 4)).astype(np.float32) for _ in range(2))
        value = rng.normal(size=(2, 5, value_width)).astype(np.float32)
        allowed = np.tril(np.ones((5, 5), bool))
        expected = reference.attend(query, key, value, allowed=allowed)
        (key if where == "key" else value)[:, 3] = poison
        bias = np.where(allowed, 0, -np.inf).astype(np.float32)
        terms = {
            "mask": {"mask": library(allowed)},
            "bias": {"bias": library(bias)},
            "causal": {"mask": masks.causal()},
        }
        strict = library is LIBRARIES["strict"]  # which is NumPy underneath, and lets its warnings through
        with np.errstate(invalid="ignore") if strict else nullcontext():
            answer = numbers(attend(library(query), library(key), library(value), **terms[by]))
        np.testing.assert_allclose(answer[:, :3], expected[:, :3], atol=1e-6)

    def test_nan_is_found_in_arrays_of_any_size(self, library, rng):
        """A maximum need not show it: JAX loses NaN on the way there."""
        query, key, value = (rng.normal(size=(1, n, 64)).astype(np.float32) for n in (2, 1000, 1000))
        expected = reference.attend(query, key, value, allowed=np.arange(1000) < 400)
        value[0, 999] = np.nan
        answer = attend(*map(library, (query, key, value)), library(np.arange(1000) < 400))
        np.testing.assert_allclose(numbers(answer), expected, atol=1e-5)

    def test_a_masked_key_may_be_too_large_for_a_score(self, library):
        query, key, value = (np.ones((1, 2, 4), np.float32) for _ in range(3))
        query, key[0, 1] = query * 1e3, 3e38
        strict = library is LIBRARIES["strict"]
        with np.errstate(all="ignore") if strict else nullcontext():
            answer = attend(*map(library, (query, key, value)), masks.padding([1]))
        np.testing.assert_array_equal(numbers(answer), value)

    def test_no_queries_and_nan(self, library):
        value = library(np.full((2, 3, 4), np.nan, np.float32))
        key = library(np.ones((2, 3, 4), np.float32))
        assert attend(key[:, :0, :], key, value, masks.causal()).shape == (2, 0, 4)

    def test_wider_than_float64_stays_so(self, rng):
        query = rng.normal(size=(3, 4)).astype(np.longdouble)
        assert attend(query, query, query).dtype == np.longdouble
        np.testing.assert_allclose(attend(query, query, query), reference.attend(query, query, query), atol=1e-14)

    def test_no_warning_comes_from_behind_a_mask_in_any_thread(self, rng):
        """Infinities meet in tiles that other threads work on, and NumPy's settings are each thread's own."""
        query, key = rng.normal(size=(2, 2, 2100, 4)).astype(np.float32)
        expected = attend(query, key, key, masks.padding(2000))
        key[:, 2000:] = np.inf
        np.testing.assert_array_equal(attend(query, key, key, masks.padding(2000)), expected)
        assert np.all(np.isfinite(weights(query, key, masks.padding(2000), rows=slice(0, 3))))

    def test_what_may_be_seen_is_shown(self, library):
        """An honest NaN or infinity is not hidden."""
        query, key = np.zeros((4, 2), np.float32), np.zeros((4, 2), np.float32)
        value = np.asarray([[1, 1, 1], [np.inf, 1, 1], [1, np.nan, -np.inf], [-np.inf, 1, 1]], np.float32)
        answer = numbers(attend(library(query), library(key), library(value), masks.causal()))
        expected = [[1, 1, 1], [np.inf, 1, 1], [np.inf, np.nan, -np.inf], [np.nan, np.nan, -np.inf]]
        np.testing.assert_array_equal(answer, np.asarray(expected, np.float32))

    def test_float16_does_not_overflow(self, rng):
        query, key = (np.where(rng.random((2, 5, 64)) < 0.5, 1e4, -1e4).astype(np.float16) for _ in range(2))
        value = rng.normal(size=(2, 5, 64)).astype(np.float16)
        expected = reference.attend(query, key, value)
        for name in ("numpy", "torch", "jax"):
            answer = attend(*map(LIBRARIES[name], (query, key, value)))
            assert "float16" in str(answer.dtype)
            np.testing.assert_allclose(numbers(answer).astype(np.float64), expected, atol=2e-3)

    def test_a_mask_holds_in_float16_where_minus_1e9_does_not_exist(self, rng):
        query, key, value = (rng.normal(size=(5, 8)).astype(np.float16) for _ in range(3))
        answer = attend(query, key, value, masks.causal())
        np.testing.assert_array_equal(answer[0], value[0])

    @pytest.mark.parametrize("shape", [(0, 4, 5), (2, 0, 5), (2, 4, 0), (2, 0, 0)])
    def test_nothing_in_something_defined_out(self, library, shape):
        batch, n_q, n_k = shape
        query, key, value = (library(np.ones((batch, n, 3), np.float32)) for n in (n_q, n_k, n_k))
        for mask in (None, masks.causal(), masks.padding([n_k] * batch)):
            answer = numbers(attend(query, key, value, mask))
            assert answer.shape == (batch, n_q, 3)
            assert np.all(answer == 0) or n_k
            assert weights(query, key, mask).shape == shape

    def test_width_of_nothing(self, library):
        """Without anything to compare by, every key is as good as another."""
        query, key = library(np.ones((2, 0), np.float32)), library(np.ones((4, 0), np.float32))
        value = library(np.arange(4, dtype=np.float32)[:, None])
        np.testing.assert_allclose(numbers(attend(query, key, value)), [[1.5], [1.5]])

    def test_mixed_dtypes_meet_in_the_wider_one(self, rng):
        query, key = rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=(5, 4))
        assert attend(query, key, key).dtype == np.float64
        half = torch.ones(3, 4, dtype=torch.float16)
        assert attend(half, half, half.float()).dtype == torch.float32

        for wide in range(3):
            arrays = [torch.ones(3, 4, dtype=torch.float64 if at == wide else torch.float32) for at in range(3)]
            for terms in ({}, {"softcap": 1.0, "sinks": torch.tensor(0.0, dtype=torch.float64)}):
                assert attend(*arrays, **terms).dtype == torch.float64

    def test_two_kinds_of_half_meet_in_float32(self):
        half, brain = np.ones((3, 4), np.float16), np.ones((3, 4), ml_dtypes.bfloat16)
        for arrays in ((half, brain, brain), (brain, half, half), (brain, brain, half)):
            assert attend(*arrays).dtype == np.float32
        assert attend(torch.ones(3, 4).half(), *[torch.ones(3, 4).bfloat16()] * 2).dtype == torch.float32
        assert attend(brain, brain, brain).dtype == ml_dtypes.bfloat16

    def test_numpy_bfloat16_from_ml_dtypes(self, rng):
        query, key, value = (rng.normal(size=(5, 8)).astype(ml_dtypes.bfloat16) for _ in range(3))
        answer = attend(query, key, value, masks.causal())
        assert answer.dtype == ml_dtypes.bfloat16
        expected = reference.attend(query, key, value, allowed=masks.causal().dense(5))
        np.testing.assert_allclose(answer.astype(np.float64), expected, atol=2e-2)


class TestDifferentiable:
    @pytest.mark.parametrize("terms", [{}, {"mask": masks.causal()}, {"softcap": 2.0, "bias": positions.alibi(4)}])
    def test_torch_gradients(self, rng, terms):
        query, key, value = (
            torch.tensor(rng.normal(size=size), requires_grad=True)
            for size in ((2, 4, 3, 5), (2, 2, 4, 5), (2, 2, 4, 5))
        )
        assert torch.autograd.gradcheck(lambda *arrays: attend(*arrays, **terms), (query, key, value))

    def test_torch_gradients_through_tiles(self, rng, small_tiles):
        query, key, value = (torch.tensor(rng.normal(size=(30, 2)), requires_grad=True) for _ in range(3))
        assert torch.autograd.gradcheck(
            lambda *arrays: attend(*arrays, masks.causal(), softcap=2.0), (query, key, value)
        )

    def test_jax_gradients_and_jit(self, rng):
        query, key, value = (jnp.asarray(rng.normal(size=(2, 3, 4)), dtype=jnp.float32) for _ in range(3))

        def loss(query, key, value):
            return jnp.sum(attend(query, key, value, masks.causal() & masks.padding([2, 3])) ** 2)

        plain, compiled = loss(query, key, value), jax.jit(loss)(query, key, value)
        np.testing.assert_allclose(plain, compiled, rtol=1e-5)
        gradient = jax.jit(jax.grad(loss))(query, key, value)
        step = 1e-2
        for place in ((0, 1, 2), (1, 2, 0)):
            bump = jnp.zeros_like(query).at[place].set(step)
            slope = (loss(query + bump, key, value) - loss(query - bump, key, value)) / (2 * step)
            np.testing.assert_allclose(gradient[place], slope, atol=2e-3)

    def test_jit_keeps_masked_nan_out(self, rng):
        query, key, value = (jnp.asarray(rng.normal(size=(3, 4)), dtype=jnp.float32) for _ in range(3))
        answer = jax.jit(lambda *arrays: attend(*arrays, masks.causal()))(query, key, value.at[2].set(jnp.nan))
        np.testing.assert_allclose(answer[:2], attend(query, key, value, masks.causal())[:2], atol=1e-6)
        assert np.all(np.isnan(answer[2]))

    def test_jax_vmap(self, rng):
        query, key, value = (jnp.asarray(rng.normal(size=(5, 3, 4)), dtype=jnp.float32) for _ in range(3))
        mapped = jax.vmap(lambda *arrays: attend(*arrays, masks.causal()))(query, key, value)
        np.testing.assert_allclose(mapped, attend(query, key, value, masks.causal()), atol=1e-6)


def test_grouped_keys_are_not_copied(rng):
    """Memory above the arrays themselves stays below one more copy of the repeated keys."""
    query = rng.normal(size=(64, 1, 128)).astype(np.float32)
    key, value = (rng.normal(size=(1, 4096, 128)).astype(np.float32) for _ in range(2))
    attend(query[:2], key, value)
    tracemalloc.start()
    attend(query, key, value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * key.nbytes / 8, f"{peak / 2**20:.0f} MiB beside keys of {key.nbytes / 2**20:.0f} MiB"
