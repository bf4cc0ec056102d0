"""Rows of unequal length → one array, filled up behind."""

# B rows, N the longest row, rounded up

from collections.abc import Sequence

import numpy as np

from ..errors import OptionError


def pad(rows: Sequence[Sequence[int] | np.ndarray], value: int, *, multiple: int = 8) -> np.ndarray:
    """The rows, each filled up with `value` to the longest, rounded up to a multiple: few shapes, fit for a GPU.

    rows of ids -> (B, N), int64
    """
    if not len(rows) or multiple < 1:
        raise OptionError(f"pad needs a row or more and a multiple of 1 or more, not {len(rows)} and {multiple}.")
    sizes = np.array([len(row) for row in rows])
    width = -(-int(sizes.max()) // multiple) * multiple
    padded = np.full((len(rows), width), value, np.int64)
    if width:
        padded[np.arange(width) < sizes[:, None]] = np.concatenate([np.asarray(row, np.int64) for row in rows])
    return padded
