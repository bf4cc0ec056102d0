"""The numbers that the lessons print, where right, and the right ones where they are wrong."""

import numpy as np
import pytest
import torch
from torch import nn

from regard import lessons
from regard.formula import attend, weights
from regard.lessons import torch as torch_lessons

BOTH = pytest.mark.parametrize("lesson", [lessons, torch_lessons], ids=["numpy", "torch"])
SEED_42 = [
    [0.81995736, 0.02616278, 0.15387986],
    [0.02856435, 0.0325557, 0.93887995],
    [0.14520511, 0.74423134, 0.11056355],
]


def float64(numbers):
    """Whole numbers and lists would be float32 in PyTorch, which has not all of the digits."""
    return np.asarray(numbers, dtype=np.float64)


@BOTH
def test_softmax_of_three_scores(lesson):
    answer = np.asarray(lesson.softmax(float64([0.88, 0.78, 0.71])))
    np.testing.assert_allclose(answer, [0.3638, 0.3292, 0.3070], rtol=0, atol=5e-5)
    assert np.round(answer, 2).tolist() != [0.37, 0.32, 0.31], "what the lesson prints"


@BOTH
def test_a_key_unlike_the_query_still_gets_its_share(lesson):
    Q, K, V = [[1, 0]], [[1, 0], [0, 1], [1, 0]], [[10, 0], [0, 20], [30, 0]]
    output, mixing = lesson.scaled_dot_product_attention(*map(float64, (Q, K, V)))
    np.testing.assert_allclose(np.asarray(mixing), [[0.40111, 0.19778, 0.40111]], rtol=0, atol=5e-6)
    np.testing.assert_allclose(np.asarray(output), [[16.0445, 3.9555]], rtol=0, atol=5e-5)


@BOTH
def test_whole_numbers_in_lists_do_as_well(lesson):
    output, _ = lesson.scaled_dot_product_attention([[1]], [[1], [2], [0.5]], [[10], [20], [5]])
    np.testing.assert_allclose(np.asarray(output), [[15.5841]], rtol=0, atol=5e-5)


@BOTH
def test_the_table_of_seed_42(lesson):
    np.random.seed(42)
    X, W_q, W_k, W_v = np.random.randn(3, 4), *(np.random.randn(4, 3) for _ in range(3))
    output, mixing = lesson.self_attention(X, W_q, W_k, W_v)
    np.testing.assert_allclose(np.asarray(mixing), SEED_42, rtol=0, atol=5e-9)
    np.testing.assert_allclose(np.asarray(output), np.asarray(mixing) @ X @ W_v, rtol=1e-12)


def test_the_lessons_softmax_is_nan_where_ours_is_not():
    x = np.array([[1000.0, 1001.0], [-1000.0, -1001.0]])
    with np.errstate(invalid="ignore"):
        powers = np.exp(x - x.max())  # of the whole matrix, as the lesson has it
        theirs = powers / powers.sum(axis=-1, keepdims=True)
    assert np.isnan(theirs[1]).all()
    small, large = 1 / (1 + np.e), np.e / (1 + np.e)
    np.testing.assert_allclose(lessons.softmax(x), [[small, large], [large, small]], rtol=1e-12)
    tensor = torch.tensor(x)
    np.testing.assert_allclose(torch_lessons.softmax(tensor), [[small, large], [large, small]], rtol=1e-12)


def test_nn_multihead_attention_averages_over_heads_and_ours_does_not():
    x, theirs = torch.randn(2, 5, 64), nn.MultiheadAttention(64, 8, batch_first=True)
    averaged, each = theirs(x, x, x)[1], theirs(x, x, x, average_attn_weights=False)[1]
    assert averaged.shape == (2, 5, 5)
    assert each.shape == (2, 8, 5, 5)
    torch.testing.assert_close(averaged, each.mean(dim=1))
    assert torch_lessons.MultiHeadSelfAttention(64, 8)(x)[1].shape == (2, 8, 5, 5)


def test_minus_1e9_is_no_mask_in_float16_and_ours_masks_all_the_same():
    with pytest.raises(RuntimeError, match="overflow"):
        torch.zeros(2, 2, dtype=torch.float16).masked_fill(torch.eye(2) == 0, -1e9)
    with np.errstate(over="ignore"):
        mask = np.full((2, 2), -1e9).astype(np.float16)
    assert np.isneginf(mask).all(), "it has become another number"
    X = np.array([[300.0, -200.0], [-250.0, 100.0]], dtype=np.float16)  # a product of 3e4 / √2, beyond float16 soon
    for never in (-1e9, -1e4, float(np.finfo(np.float16).min), -np.inf):
        with np.errstate(over="ignore"):
            causal = np.array([[0, never], [0, 0]]).astype(np.float16)
        output, mixing = lessons.scaled_dot_product_attention(X, X, X, causal)
        assert mixing.dtype == output.dtype == np.float16
        assert mixing[0].tolist() == [1, 0]
        assert output[0].tolist() == X[0].tolist()


@pytest.mark.parametrize("never", [-np.inf, -1e9, -1e30, -1e4, float(np.finfo(np.float32).min)])
def test_a_row_that_may_attend_to_nothing_is_zeros(never, rng):
    X = rng.normal(size=(3, 4))
    mask = np.zeros((3, 3))
    mask[1] = never
    with np.errstate(invalid="ignore"):
        table = X @ X.T / 2 + np.where(mask < 0, -np.inf, 0)
        theirs = np.exp(table - table.max(axis=-1, keepdims=True))
    assert np.isnan(theirs[1]).all(), "what the lesson's sum gives"
    output, mixing = lessons.scaled_dot_product_attention(X, X, X, mask)
    assert not mixing[1].any()
    assert not output[1].any()
    np.testing.assert_allclose(mixing.sum(axis=-1), [1, 0, 1], rtol=1e-12)


def test_a_row_of_zeros_in_a_torch_mask_is_zeros_with_a_gradient_that_is_finite():
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[1, 1, 1], [0, 0, 0], [1, 0, 1]])
    output, mixing = torch_lessons.scaled_dot_product_attention(x, x, x, mask)
    assert not mixing[1].any()
    assert not output[1].any()
    output.sum().backward()
    assert torch.isfinite(x.grad).all()


@BOTH
def test_lesson_and_formula_are_one(lesson, rng):
    Q, K, V = (rng.normal(size=(2, 3, 5, 4)) for _ in range(3))
    output, mixing = lesson.scaled_dot_product_attention(Q, K, V)
    np.testing.assert_allclose(np.asarray(output), attend(Q, K, V), atol=1e-12)
    np.testing.assert_allclose(np.asarray(mixing), weights(Q, K), atol=1e-12)
