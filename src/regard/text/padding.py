"""Rows of unequal length → one array, filled up behind."""

# B rows, N the longest row, rounded up

from collections.abc import Sequence

import numpy as np

from ..errors import OptionError


def pad(
    rows: Sequence[Sequence[int] | np.ndarray], value: int, *, multiple: int = 8, most: int | None = None
) -> np.ndarray:
    """The rows, each filled up with `value` to the longest, rounded up to a multiple: few shapes, fit for a GPU.

    most: what a model takes; rounding up ends there, whatever the multiple.

    rows of ids -> (B, N), int64
    """
    if not len(rows) or multiple < 1:
        raise OptionError(f"pad needs a row or more and a multiple of 1 or more, not {len(rows)} and {multiple}.")
    sizes = np.array([len(row) for row in rows])
    width = rounded(int(sizes.max()), multiple, most)
    padded = np.full((len(rows), width), value, np.int64)
    if width:
        padded[np.arange(width) < sizes[:, None]] = np.concatenate([np.asarray(row, np.int64) for row in rows])
    return padded


def rounded(longest: int, multiple: int = 8, most: int | None = None) -> int:
    """How wide the array is whose longest row is given."""
    width = -(-longest // multiple) * multiple
    return width if most is None else max(longest, min(width, most))
