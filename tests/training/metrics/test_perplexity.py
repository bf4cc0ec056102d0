"""Perplexity and bits per character, from a summed loss."""

import math

import pytest

from regard.errors import OptionError
from regard.training.metrics import bits_per_character, perplexity


def test_a_guess_among_equals_has_as_much_perplexity_as_there_are():
    assert perplexity(10 * math.log(50), 10) == pytest.approx(50)
    assert perplexity(0.0, 3) == 1


def test_a_coin_for_each_character_is_one_bit():
    assert bits_per_character(7 * math.log(2), 7) == pytest.approx(1)
    assert bits_per_character(7 * math.log(2), 14) == pytest.approx(0.5)


def test_a_loss_beyond_all_numbers_is_infinite():
    assert perplexity(1e6, 1) == math.inf


def test_nothing_cannot_be_measured():
    with pytest.raises(OptionError, match="over 0 tokens"):
        perplexity(1.0, 0)
    with pytest.raises(OptionError, match="over 0 characters"):
        bits_per_character(1.0, 0)
