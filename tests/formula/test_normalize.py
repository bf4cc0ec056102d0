import numpy as np
import pytest

from regard.errors import DtypeError, ShapeError
from regard.formula import log_sum_exp, softmax
from tests.formula.conftest import numbers


def test_softmax_is_the_formula(library, rng):
    x = rng.normal(size=(3, 4, 5)).astype(np.float32)
    for axis in (-1, 0, 1, -2):
        expected = np.exp(x.astype(np.float64)) / np.exp(x.astype(np.float64)).sum(axis=axis, keepdims=True)
        np.testing.assert_allclose(numbers(softmax(library(x), axis=axis)), expected, atol=2e-7)


def test_each_row_has_its_own_maximum(library):
    """The lessons subtract one maximum from the whole matrix, and rows far below it become 0/0."""
    x = np.asarray([[1000.0, 1001.0], [-1000.0, -1001.0]], dtype=np.float32)
    expected = [[0.26894142, 0.73105858], [0.73105858, 0.26894142]]
    np.testing.assert_allclose(numbers(softmax(library(x))), expected, rtol=1e-6)


def test_nothing_to_attend_to_gives_zeros(library):
    x = np.asarray([[-np.inf, -np.inf], [0.0, -np.inf]], dtype=np.float32)
    np.testing.assert_array_equal(numbers(softmax(library(x))), [[0, 0], [1, 0]])
    np.testing.assert_array_equal(numbers(log_sum_exp(library(x))), [-np.inf, 0])


def test_log_sum_exp_is_the_formula_and_does_not_overflow(library, rng):
    x = rng.normal(size=(3, 7)).astype(np.float32) + np.asarray([[0], [1e4], [-1e4]], dtype=np.float32)
    expected = np.logaddexp.reduce(x.astype(np.float64), axis=-1)
    np.testing.assert_allclose(numbers(log_sum_exp(library(x))), expected, rtol=1e-6)
    assert log_sum_exp(library(x), axis=0).shape == (7,)


def test_infinity_is_the_sum_of_infinity(library):
    assert numbers(log_sum_exp(library(np.asarray([np.inf, 1.0], np.float32)))) == np.inf


def test_empty_axes(library):
    assert softmax(library(np.zeros((2, 0), np.float32))).shape == (2, 0)
    assert softmax(library(np.zeros((0, 3), np.float32))).shape == (0, 3)
    np.testing.assert_array_equal(numbers(log_sum_exp(library(np.zeros((2, 0), np.float32)))), [-np.inf] * 2)


def test_half_precision_keeps_its_dtype_and_its_digits(library, rng):
    x = library(rng.normal(size=(4, 1000)).astype(np.float32))
    if "strict" not in type(x).__module__:  # the standard has no float16
        half = library(numbers(x).astype(np.float16))
        assert softmax(half).dtype == half.dtype
        np.testing.assert_allclose(numbers(softmax(half)).astype(np.float64).sum(-1), 1, atol=1e-3)


def test_whole_numbers_become_floats(library):
    np.testing.assert_allclose(numbers(softmax(library([0, 0]))), [0.5, 0.5])


def test_bad_input_is_named():
    with pytest.raises(DtypeError, match=r"x is a list.*numpy\.asarray\(x\)"):
        softmax([1.0, 2.0])
    with pytest.raises(DtypeError, match="bool"):
        softmax(np.asarray([True, False]))
    for axis in (2, None):
        with pytest.raises(ShapeError, match=rf"axis {axis} does not exist in x of shape \(3, 4\)"):
            softmax(np.zeros((3, 4)), axis=axis)
