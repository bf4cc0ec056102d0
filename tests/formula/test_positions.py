"""Positions against their definitions, written out token by token in float64."""

import math

import numpy as np
import pytest

from regard.errors import OptionError, ShapeError
from regard.formula import attend, masks, positions, weights
from tests.formula.conftest import numbers, shrink


def test_sinusoidal_is_the_formula(library):
    table = numbers(positions.sinusoidal(50, 8, like=library(np.zeros(1, np.float32))))
    for place in range(50):
        for pair in range(4):
            angle = place / 10000 ** (2 * pair / 8)
            np.testing.assert_allclose(table[place, 2 * pair], math.sin(angle), atol=1e-6)
            np.testing.assert_allclose(table[place, 2 * pair + 1], math.cos(angle), atol=1e-6)


def test_sinusoidal_from_a_place_and_of_odd_width():
    np.testing.assert_array_equal(positions.sinusoidal(3, 6, start=7), positions.sinusoidal(10, 6)[7:])
    expected = np.sin(np.outer(range(4), 10000.0 ** (-2 * np.arange(2) / 5)))
    np.testing.assert_allclose(positions.sinusoidal(4, 5)[:, :4:2], expected)
    assert positions.sinusoidal(0, 4).shape == (0, 4)
    assert positions.sinusoidal(3, 4).dtype == np.float64


def test_learned_is_a_row_of_the_table(library, rng):
    table = rng.normal(size=(6, 3)).astype(np.float32)
    np.testing.assert_array_equal(numbers(positions.learned(library(table), 2, start=3)), table[3:5])
    with pytest.raises(ShapeError, match=r"places 3 to 7.*learned for 6"):
        positions.learned(library(table), 5, start=3)


def turned_by_hand(x, places, width, base, interleaved):
    x = x.copy()
    for token, place in enumerate(places):
        for pair in range(width // 2):
            one, other = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + width // 2)
            angle = place * base ** (-2 * pair / width)
            turn = np.asarray([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            x[..., token, [one, other]] = x[..., token, [one, other]] @ turn.T
    return x


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("width", [8, 4])
def test_rotary_turns_pairs(library, rng, interleaved, width):
    x = rng.normal(size=(2, 3, 5, 8)).astype(np.float32)
    places = np.asarray([0, 1, 2, 7, 90000])
    turned = positions.rotary(library(x), library(places), width=width, base=500.0, interleaved=interleaved)
    expected = turned_by_hand(x.astype(np.float64), places, width, 500.0, interleaved)
    # Without float64 (JAX as it comes) 90,000 radians are known to 0.004.
    np.testing.assert_allclose(numbers(turned), expected, atol=2e-2 if "jax" in type(turned).__module__ else 1e-5)
    np.testing.assert_allclose(numbers(turned)[..., :4, :], expected[..., :4, :], atol=1e-5)


def test_rotary_products_depend_on_the_distance_alone(rng):
    query, key = rng.normal(size=(2, 1, 16))
    near, far = ([positions.rotary(x, np.asarray([place])) for x, place in zip((query, key), at, strict=True)]
                 for at in ((3, 1), (1003, 1001)))  # fmt: skip
    np.testing.assert_allclose(near[0] @ near[1].T, far[0] @ far[1].T, atol=1e-9)


def test_rotary_with_a_place_for_each_item(rng):
    x, places = rng.normal(size=(2, 3, 4, 8)), np.asarray([[0, 1, 2, 3], [5, 6, 7, 8]])
    turned = positions.rotary(x, places)
    for item in range(2):
        np.testing.assert_allclose(turned[item], positions.rotary(x[item], places[item]))


class TestLongContext:
    plain = numbers(positions.frequencies(64))

    def test_linear_divides_every_place(self):
        np.testing.assert_allclose(positions.frequencies(64, scaling=positions.Linear(factor=4)), self.plain / 4)

    def test_ntk_changes_the_base(self):
        expected = positions.frequencies(64, base=10000 * 4 ** (64 / 62))
        np.testing.assert_allclose(positions.frequencies(64, scaling=positions.Ntk(factor=4)), expected)

    def test_yarn_keeps_the_fast_and_stretches_the_slow(self):
        scaling = positions.Yarn(factor=8, trained_length=4096)
        scaled = numbers(positions.frequencies(64, scaling=scaling))
        turns = 4096 * self.plain / (2 * np.pi)
        np.testing.assert_allclose(scaled[turns > 40], self.plain[turns > 40])
        np.testing.assert_allclose(scaled[turns < 0.7], self.plain[turns < 0.7] / 8)
        assert np.all((scaled <= self.plain) & (scaled >= self.plain / 8))
        assert math.isclose(scaling.temperature, (0.1 * math.log(8) + 1) ** 2)

    def test_llama3_blends_between_its_two_wavelengths(self):
        scaling = positions.Llama3(factor=8, trained_length=8192)
        scaled = numbers(positions.frequencies(128, base=500000.0, scaling=scaling))
        plain = numbers(positions.frequencies(128, base=500000.0))
        wavelengths = 2 * np.pi / plain
        np.testing.assert_allclose(scaled[wavelengths < 8192 / 4], plain[wavelengths < 8192 / 4])
        np.testing.assert_allclose(scaled[wavelengths > 8192], plain[wavelengths > 8192] / 8)
        middle = (wavelengths >= 8192 / 4) & (wavelengths <= 8192)
        smooth = (8192 / wavelengths[middle] - 1) / (4 - 1)
        np.testing.assert_allclose(scaled[middle], (1 - smooth) * plain[middle] / 8 + smooth * plain[middle])


class TestAlibi:
    def test_slopes(self):
        np.testing.assert_allclose(positions.alibi_slopes(8), [2.0**-power for power in range(1, 9)])
        np.testing.assert_allclose(positions.alibi_slopes(4), [2.0 ** -(2 * power) for power in range(1, 5)])
        # 6 heads: the four slopes of 4 heads, then every other one of 8 heads
        expected = [*(2.0 ** -(2 * power) for power in range(1, 5)), 2.0**-1, 2.0**-3]
        np.testing.assert_allclose(positions.alibi_slopes(6), expected)

    def test_scores_fall_with_distance(self, library, rng):
        query, key = (rng.normal(size=(2, 4, n, 8)).astype(np.float32) for n in (3, 5))
        far = np.abs(np.arange(5)[None, :] - (np.arange(3)[:, None] + 2))
        bias = -numbers(positions.alibi_slopes(4))[:, None, None] * far
        expected = weights(query, key, bias=bias.astype(np.float32))
        answer = weights(library(query), library(key), bias=positions.alibi(4))
        np.testing.assert_allclose(numbers(answer), expected, atol=1e-6)

    def test_heads_must_be_the_maps(self):
        with pytest.raises(ShapeError, match=r"for 3 heads and the map .* has 4"):
            attend(*(np.zeros((4, 5, 8), np.float32),) * 3, bias=positions.alibi(3))


class TestT5:
    def bucket_by_hand(self, distance, both_ways, buckets, farthest):
        first = 0
        if both_ways:
            buckets //= 2
            first, distance = buckets * (distance > 0), abs(distance)
        else:
            distance = max(-distance, 0)
        exact = buckets // 2
        if distance < exact:
            return first + distance
        # in float32, as T5 was trained: at exact powers another precision may fall on the other side of a step
        step = exact + int(np.log(np.float32(distance) / exact) / math.log(farthest / exact) * (buckets - exact))
        return first + min(step, buckets - 1)

    @pytest.mark.parametrize("both_ways", [True, False])
    def test_buckets(self, library, both_ways):
        distances = np.arange(-300, 301)
        expected = [self.bucket_by_hand(int(far), both_ways, 32, 128) for far in distances]
        answer = numbers(positions.t5_buckets(library(distances), both_ways=both_ways))
        np.testing.assert_array_equal(answer, expected)

    def test_the_table_is_looked_up_by_distance(self, library, rng):
        query, key, table = (rng.normal(size=size).astype(np.float32) for size in ((4, 6, 8), (4, 6, 8), (32, 4)))
        rows = [[self.bucket_by_hand(j - i, True, 32, 128) for j in range(6)] for i in range(6)]
        expected = weights(query, key, bias=table[np.asarray(rows)].transpose(2, 0, 1), scale=1.0)
        answer = weights(library(query), library(key), bias=positions.t5(library(table), both_ways=True), scale=1.0)
        np.testing.assert_allclose(numbers(answer), expected, atol=1e-6)


def test_a_bias_is_the_same_in_tiles(library, rng, monkeypatch):
    query, key, value = (library(rng.normal(size=(2, 4, 30, 8)).astype(np.float32)) for _ in range(3))
    table = library(rng.normal(size=(32, 4)).astype(np.float32))
    dense = library(rng.normal(size=(2, 1, 30, 30)).astype(np.float32))
    for bias in (positions.alibi(4), positions.t5(table, both_ways=False), dense):
        whole = numbers(attend(query, key, value, masks.causal(), bias=bias, softcap=20.0))
        with monkeypatch.context() as patch:
            shrink(patch)
            tiles = numbers(attend(query, key, value, masks.causal(), bias=bias, softcap=20.0))
        np.testing.assert_allclose(tiles, whole, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: positions.frequencies(7), "width of 7"),
        (lambda: positions.sinusoidal(-1, 4), "-1 tokens"),
        (lambda: positions.alibi(0), "0 heads"),
        (lambda: positions.rotary(np.zeros((4, 6)), width=8), r"\(4, 6\).*\(4, 4\)"),
        (lambda: positions.rotary(np.zeros((4, 6)), np.arange(3)), r"\(4, 6\).*\(3, 3\)"),
        (lambda: positions.rotary(np.zeros(6)), r"\(6,\)"),
        (lambda: positions.t5(np.zeros(5), both_ways=True), r"\(5,\)"),
        (lambda: positions.t5_buckets(np.arange(3), both_ways=True, buckets=2), "2 buckets .* both ways"),
        (lambda: positions.t5_buckets(np.arange(3), both_ways=False, farthest=16), "up to 16"),
        (lambda: positions.alibi(2.5), r"2\.5 heads"),
        (lambda: positions.alibi(2, offset=np.asarray([1])), "one whole number"),
        (lambda: positions.rotary(np.ones((2, 3, 5, 4)), np.zeros((3, 5))), r"\(3,\).*\(2, 3, 5, 4\)"),
        (lambda: positions.rotary(np.zeros((4, 6)), base=0), "base is 0"),
        (lambda: positions.rotary(np.zeros((4, 6)), scaling="yarn"), "scaling is 'yarn'"),
        (lambda: positions.Linear(factor=-1), "factor is -1"),
        (lambda: positions.Yarn(factor=2, trained_length=0), "trained_length is 0"),
        (lambda: positions.Llama3(factor=2, trained_length=8, low=4, high=4), "high is 4 and low is 4"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises((OptionError, ShapeError), match=words):
        make()
