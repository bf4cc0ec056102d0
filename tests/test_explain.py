import json

import numpy as np
import pytest

from regard.errors import OptionError, ShapeError
from regard.explain import explain
from regard.text.vectors import draw

from . import reference

WORDS = ["我", "喜欢", "学习", "AI", "技术"]


def steps_of(words=WORDS, width=4, **options):
    return explain(words, draw(words, width), **options)


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize(("heads", "d_k"), [(1, None), (2, None), (4, None), (1, 7), (3, 2)])
def test_every_step_follows_from_the_one_before(mask, heads, d_k):
    steps = steps_of(mask=mask, heads=heads, d_k=d_k, seed=5)
    width = d_k or 4 // heads
    allowed = np.tri(5, dtype=bool) if mask == "causal" else None
    assert steps.W_Q.shape == steps.W_K.shape == steps.W_V.shape == (heads, 4, width)
    for name in "QKV":
        assert np.allclose(getattr(steps, name), np.einsum("nd,hda->hna", steps.vectors, getattr(steps, f"W_{name}")))
    products = np.einsum("hia,hja->hij", steps.Q, steps.K)
    assert np.allclose(steps.products, products, rtol=1e-14, atol=1e-14)
    assert np.allclose(steps.scaled, products / np.sqrt(width), rtol=1e-14, atol=1e-14)
    assert steps.scale == pytest.approx(1 / np.sqrt(width))
    assert np.array_equal(np.isneginf(steps.masked[0]), np.zeros((5, 5), bool) if allowed is None else ~allowed)
    assert np.allclose(steps.weights, reference.weights(steps.Q, steps.K, allowed=allowed), rtol=1e-13)
    assert np.allclose(steps.mixed, reference.attend(steps.Q, steps.K, steps.V, allowed=allowed), rtol=1e-12)
    assert np.allclose(steps.joined, np.moveaxis(steps.mixed, 0, 1).reshape(5, -1))
    expected = steps.joined if heads == 1 else steps.joined @ steps.W_O
    assert np.allclose(steps.output, expected)
    assert steps.output.shape == (5, width if heads == 1 else 4)


def test_powers_over_their_sum_are_the_weights():
    steps = steps_of(mask="causal", heads=2)
    for head in range(2):
        powers = steps.powers(head)
        assert np.allclose(powers / powers.sum(axis=-1, keepdims=True), steps.weights[head], rtol=1e-14)
        assert powers.max() == 1


def test_matrices_are_drawn_from_the_seed_alone():
    one, two = steps_of(seed=1), explain(["x"], np.ones((1, 4)), seed=1)
    assert np.array_equal(one.W_Q, two.W_Q)
    assert not np.array_equal(one.W_Q, steps_of(seed=2).W_Q)
    assert not np.array_equal(one.W_Q, one.W_K)


def test_weights_are_neither_even_nor_all_in_one_place():
    for width in (4, 50, 300):
        words = [str(place) for place in range(20)]
        entropy = [
            float(-(steps.weights * np.log(steps.weights + 1e-300)).sum(-1).mean())
            for steps in (steps_of(words, width, seed=seed) for seed in range(10))
        ]
        assert 0.3 * np.log(20) < np.mean(entropy) < 0.8 * np.log(20)


def test_the_first_two_steps_are_exact_as_printed():
    steps = steps_of()
    for table, digits in ((steps.vectors, 1), (steps.W_Q, 1), (steps.Q, 2), (steps.V, 2)):
        assert np.allclose(table, np.round(table, digits), rtol=0, atol=1e-12)


def test_numbers_are_json():
    steps = steps_of(mask="causal", heads=2)
    numbers = json.loads(json.dumps(steps.numbers(), allow_nan=False))
    assert (numbers["heads"], numbers["d_model"], numbers["d_k"], numbers["mask"]) == (2, 4, 2, "causal")
    assert numbers["words"] == WORDS
    assert numbers["masked"][0][0][1:] == [None] * 4
    assert numbers["weights"] == steps.weights.tolist()


def test_the_middle_row_is_worked_out():
    assert [steps_of(WORDS[:size]).row for size in (1, 2, 5)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 3}, "3 heads do not divide vectors of 4 numbers; take heads out of 1, 2, 4, or give d_k"),
        ({"heads": 0}, "heads is 0"),
        ({"heads": -2}, "heads is -2"),
        ({"d_k": 0}, "d_k is 0"),
        ({"d_k": 5000}, "1 · 5000 = 5000; at most 4096"),
        ({"heads": 4096, "d_k": 2}, "4096 · 2 = 8192"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(OptionError, match=message):
        steps_of(**options)


def test_too_much():
    with pytest.raises(OptionError, match="1001 words"):
        explain(["a"] * 1001, np.ones((1001, 2)))
    with pytest.raises(OptionError, match="5000 numbers each"):
        explain(["a"], np.ones((1, 5000)))
    with pytest.raises(OptionError, match="100 heads and 1000 words make 100000000 scores"):
        explain(["a"] * 1000, np.ones((1000, 2)), heads=100, d_k=1)
    with pytest.raises(OptionError, match=r"overflows; the largest number in them is 1e\+300"):
        explain(["a", "b"], np.full((2, 4), 1e300))


def test_words_and_vectors_must_fit():
    with pytest.raises(ShapeError, match=r"2 words and vectors of shape \(3, 4\)"):
        explain(["a", "b"], np.ones((3, 4)))
    with pytest.raises(ShapeError, match=r"vectors of shape \(4,\)"):
        explain(["a"], np.ones(4))
    with pytest.raises(OptionError, match="0 words"):
        explain([], np.ones((0, 4)))
