"""A shuffle that is never held is still a shuffle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import OptionError
from regard.text.permutation import Permutation


@given(n=st.integers(1, 5000), key=st.lists(st.integers(0, 2**64), min_size=1, max_size=3))
def test_every_number_stands_at_one_place(n, key):
    found = Permutation(n, key).of(np.arange(n))
    assert found.dtype == np.int64
    assert np.array_equal(np.sort(found), np.arange(n))


@given(n=st.integers(2**40, 2**62), places=st.lists(st.integers(0, 2**40 - 1), min_size=1, unique=True))
def test_large_ones_too(n, places):
    found = Permutation(n, (1, 2)).of(np.array(places))
    assert len(set(found.tolist())) == len(places)
    assert found.min() >= 0
    assert found.max() < n


def test_a_part_is_a_part_of_the_whole():
    shuffle = Permutation(1000, (3, 4))
    assert np.array_equal(shuffle.of(np.arange(1000))[[7, 999, 0]], shuffle.of(np.array([7, 999, 0])))


def test_it_is_the_same_everywhere():
    """A run must go on as it began, on another machine and with other versions."""
    assert Permutation(10, (0, 0)).of(np.arange(10)).tolist() == [8, 9, 2, 4, 7, 5, 3, 6, 0, 1]
    assert Permutation(10**6, (7, 3)).of(np.arange(3)).tolist() == [341978, 649330, 923189]


def test_each_key_gives_another():
    found = {tuple(Permutation(100, key).of(np.arange(100))) for key in [(0, 0), (0, 1), (1, 0), (1, 1), (0, 0, 1)]}
    assert len(found) == 5


@pytest.mark.parametrize("n", [7, 256, 1000])
def test_it_looks_like_chance(n):
    """Chi-square: over many keys, each number is as often at each place; the bound is six standard deviations."""
    keys = 2000
    found = np.array([Permutation(n, (key,)).of(np.arange(min(n, 16))) for key in range(keys)])  # (keys, places)
    cells = np.stack([np.bincount(column * 7 // n, minlength=7) for column in found.T])
    expected = np.bincount(np.arange(n) * 7 // n) * keys / n
    chi = ((cells - expected) ** 2 / expected).sum()
    freedom = cells.shape[0] * 6
    assert abs(chi - freedom) < 6 * np.sqrt(2 * freedom)


def test_neighbours_do_not_stay_neighbours():
    found = Permutation(100_000, (5, 5)).of(np.arange(100_000)).astype(float)
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(found, np.arange(100_000))[0, 1]) < 0.02


def test_what_makes_no_sense():
    for n in (0, 2**62 + 1):
        with pytest.raises(OptionError, match=f"n is {n}; it must be 1 or more"):
            Permutation(n, (0,))
    with pytest.raises(OptionError, match=r"the key is \(-1, 0\)"):
        Permutation(5, (-1, 0))
    for places in ([-1, 3], [0, 5]):
        with pytest.raises(OptionError, match=r"places are .*; there are 0 to 4"):
            Permutation(5, (0,)).of(np.array(places))
