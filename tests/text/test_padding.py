"""Rows of unequal length in one array."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import OptionError
from regard.text.padding import pad


@given(rows=st.lists(st.lists(st.integers(1, 99), max_size=20), min_size=1), multiple=st.integers(1, 9))
def test_rows_come_first_and_padding_behind(rows, multiple):
    padded = pad(rows, 0, multiple=multiple)
    longest = max(map(len, rows))
    assert padded.dtype == np.int64
    assert padded.shape[0] == len(rows)
    assert padded.shape[1] % multiple == 0
    assert longest <= padded.shape[1] < longest + multiple
    for line, row in zip(padded.tolist(), rows, strict=True):
        assert line == row + [0] * (padded.shape[1] - len(row))


def test_arrays_as_well():
    assert pad([np.array([5, 6, 7]), np.array([8])], 1, multiple=2).tolist() == [[5, 6, 7, 1], [8, 1, 1, 1]]
    assert pad([[5]], 0).shape == (1, 8)


@pytest.mark.parametrize(("rows", "multiple"), [([], 8), ([[1]], 0)])
def test_what_makes_no_sense(rows, multiple):
    with pytest.raises(OptionError, match=f"not {len(rows)} and {multiple}"):
        pad(rows, 0, multiple=multiple)


def test_rounding_up_ends_where_a_model_does():
    assert pad([[1] * 27, [2]], 0, most=30).shape == (2, 30)
    assert pad([[1] * 20, [2]], 0, most=30).shape == (2, 24)
    assert pad([[1, 2]], 0, most=3).tolist() == [[1, 2, 0]]
