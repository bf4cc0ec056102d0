"""Prefixes: tokens that are given and not chosen, as many for each row as it likes."""

# B batch, R rows that are decoded at once

from collections.abc import Sequence

import numpy as np

from ...errors import OptionError, ShapeError


class Prefixes:
    """The given tokens of each row of a batch. A row with fewer of them begins to choose sooner."""

    def __init__(self, prefixes: Sequence[Sequence[int]] | None, batch: int) -> None:
        prefixes = [()] * batch if prefixes is None else prefixes
        if len(prefixes) != batch:
            raise ShapeError(f"there are {len(prefixes)} prefixes and {batch} start tokens; give one for each row.")
        self.lengths = np.array([len(prefix) for prefix in prefixes], dtype=np.int64)
        self._tokens = np.zeros((batch, int(self.lengths.max(initial=0))), dtype=np.int64)
        for row, prefix in enumerate(prefixes):
            self._tokens[row, : len(prefix)] = prefix
        if (self._tokens < 0).any():
            raise OptionError(f"a prefix has token {self._tokens.min()}; tokens are whole numbers, 0 or more.")

    def chosen(self, rows: np.ndarray, step: int) -> np.ndarray:
        """How many tokens each row has chosen before this step; below 0 while the prefix lasts.   (R,)"""
        return np.asarray(step - self.lengths[rows])

    def at(self, rows: np.ndarray, step: int) -> np.ndarray:
        """The given token of each row, for rows whose prefix still lasts.   (R,)"""
        return np.asarray(self._tokens[rows, step])
