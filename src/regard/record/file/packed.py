"""A boolean array of n×n as a mask that stays packed, eight to a byte, until a rectangle of it is asked for."""

# Q queries, K keys

from dataclasses import dataclass

import numpy as np

from ...errors import ShapeError
from ...formula.arrays import Array, pick, require_fits
from ...formula.masks import Mask


@dataclass(frozen=True, eq=False)
class Packed(Mask):
    """A boolean array of n×n, eight to a byte: a rectangle is unpacked when it is asked for, the rest stays on disk."""

    bits: Array  # (.., Q, ⌈K/8⌉) bytes, the first key in the highest bit
    keys: int  # K

    def tile(self, rows: slice, cols: slice, shape: tuple[int, ...], *, like: Array | None = None) -> Array:
        """The rectangle (rows, cols) of the array, as booleans."""
        require_fits("mask", (*self.bits.shape[:-2], 1, 1), shape, "map (.., queries, keys)")
        if (self.bits.shape[-2], self.keys) != shape[-2:]:
            raise ShapeError(f"the mask is {self.bits.shape[-2]} × {self.keys} and the map {shape[-2]} × {shape[-1]}.")
        begin, end, _ = cols.indices(self.keys)
        few = np.unpackbits(self.bits[..., rows, begin // 8 : -(-end // 8)], axis=-1)
        return few[..., begin % 8 : begin % 8 + max(end - begin, 0)].view(np.bool_)

    def lead(self) -> tuple[int, ...]:
        """The leading axes of the array."""
        return tuple(self.bits.shape[:-2])

    def item(self, index: tuple[int, ...], shape: tuple[int, ...]) -> Mask:
        """The mask of one map alone."""
        return Packed(pick(self.bits, index, shape), self.keys)
