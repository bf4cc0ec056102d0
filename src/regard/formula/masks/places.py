"""Masks that follow from where a query and a key stand: causal, window, blocks, ranges, global tokens."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...errors import OptionError, ShapeError
from ..arrays import Array, Library, is_array, namespace
from .mask import Mask, Shape
from .tokens import at_item, extremes, over_heads, whole_numbers

REMEMBERED = 4096  # runs of rows whose extremes a mask keeps: a server asks for ever others
Number = int | Array  # one for all, or one per item of the batch


def causal(offset: Number | None = None) -> Mask:
    """Each query sees the keys up to its own place: j ≤ i + offset.

    Without an offset the last query sees the last key (bottom-right aligned), which is what a cache of earlier keys
    needs; offset=0 aligns the first query with the first key (top-left).
    """
    return Causal(_whole(offset))


def window(left: int | None = None, right: int | None = None, offset: Number | None = None) -> Mask:
    """Each query sees `left` keys before its own place and `right` after it; None leaves that side open."""
    sides = {"left": left, "right": right}
    for name, size in sides.items():
        if size is not None and _count(size, 0) is None:
            raise OptionError(f"window {name}={size!r}; it must be a number of keys, 0 or more, or None for no limit.")
    return Window(_whole(offset), *(None if size is None else int(size) for size in sides.values()))


def blocks(size: int) -> Mask:
    """The sequence is cut into blocks of `size`; a query sees the keys of its own block."""
    if _count(size, 1) is None:
        raise OptionError(f"blocks of size {size!r}; a block holds 1 token or more.")
    return Blocks(int(size))


def ranges(first: Array, last: Array) -> Mask:
    """Each query sees the keys from its `first` to its `last`, both included. first, last: (batch.., Q)

    Causal, windowed, padded at either end, packed: any mask whose rows have no holes is of this kind, in O(n) numbers.
    """
    namespace(first=whole_numbers(first, "first"), last=whole_numbers(last, "last"))
    if first.shape != last.shape or first.ndim == 0:
        raise ShapeError(f"first {tuple(first.shape)} and last {tuple(last.shape)}; both must be (batch.., queries).")
    return Ranges(first, last)


def global_tokens(places: Sequence[int]) -> Mask:
    """The tokens at `places` see everything and are seen by everything (Longformer's global attention)."""
    return Global(tuple(whole_numbers(tuple(places) if isinstance(places, Iterable) else (places,), "places")))


@dataclass(frozen=True, eq=False)
class Placed(Mask):
    """A mask that depends on where a query stands among the keys: at its index + offset."""

    offset: Number | None

    def lead(self) -> Shape:
        return () if self.offset is None or isinstance(self.offset, int) else tuple(self.offset.shape)

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        if self.offset is None or isinstance(self.offset, int):
            return self
        return replace(self, offset=at_item(self.offset, index, kept=0))

    @cached_property
    def offsets(self) -> tuple[int, int] | None:
        """The smallest and the largest offset, once for all tiles: on a GPU it is waited for."""
        return None if self.offset is None else extremes(self.offset)

    def span(self, rows: range, shape: Shape) -> tuple[int, int] | None:
        """Between which places `rows` stand, if that can be known."""
        low, high = (shape[-1] - shape[-2],) * 2 if self.offset is None else self.offsets or (None, None)
        return None if low is None or high is None else (rows[0] + low, rows[-1] + high)


class Causal(Placed):
    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        return j <= _places(i, self.offset, shape)

    def sees(self, rows: range, cols: range, shape: Shape) -> bool | None:
        span = self.span(rows, shape)
        if span is None:
            return None
        return True if cols[-1] <= span[0] else False if cols[0] > span[1] else None


@dataclass(frozen=True, eq=False)
class Window(Placed):
    left: int | None
    right: int | None

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        place = _places(i, self.offset, shape)
        if self.left is None:
            return (j == j) | (place == place) if self.right is None else j <= place + self.right  # noqa: PLR0124
        after = j >= place - self.left
        return after if self.right is None else after & (j <= place + self.right)

    def sees(self, rows: range, cols: range, shape: Shape) -> bool | None:
        span = self.span(rows, shape)
        if span is None:
            return None
        left, right = (math.inf if size is None else size for size in (self.left, self.right))
        if cols[0] >= span[1] - left and cols[-1] <= span[0] + right:
            return True
        return False if cols[-1] < span[0] - left or cols[0] > span[1] + right else None


@dataclass(frozen=True, eq=False)
class Blocks(Mask):
    size: int

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        return _places(i, None, shape) // self.size == j // self.size

    def sees(self, rows: range, cols: range, shape: Shape) -> bool | None:
        shift = shape[-1] - shape[-2]
        first, last, left, right = (
            place // self.size for place in (rows[0] + shift, rows[-1] + shift, cols[0], cols[-1])
        )
        return True if first == last == left == right else False if last < left or right < first else None


@dataclass(frozen=True, eq=False)
class Ranges(Mask):
    first: Array
    last: Array

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        if self.first.shape[-1] != shape[-2]:
            raise ShapeError(f"the ranges are those of {self.first.shape[-1]} queries and there are {shape[-2]}.")
        first, last = (
            over_heads(library.xp.take(ends, i[:, 0], axis=-1)[..., :, None], shape, "ranges")
            for ends in (self.first, self.last)
        )
        return (first <= j) & (j <= last)

    def lead(self) -> Shape:
        return tuple(self.first.shape[:-1])

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        return Ranges(at_item(self.first, index, kept=1), at_item(self.last, index, kept=1)) if self.lead() else self

    def sees(self, rows: range, cols: range, shape: Shape) -> bool | None:
        if rows not in self._ends:
            ends = (extremes(part[..., rows.start : rows.stop]) for part in (self.first, self.last))
            if len(self._ends) >= REMEMBERED:
                self._ends.clear()
            self._ends[rows] = tuple(ends)
        firsts, lasts = self._ends[rows]
        if firsts is None or lasts is None:
            return None
        if firsts[1] <= cols[0] and cols[-1] <= lasts[0]:
            return True
        return False if cols[-1] < firsts[0] or lasts[1] < cols[0] else None

    @cached_property
    def _ends(self) -> dict[range, Any]:
        """The extremes of some rows' firsts and lasts, once for all tiles: on a GPU they are waited for."""
        return {}


@dataclass(frozen=True, eq=False)
class Global(Mask):
    places: tuple[int, ...]

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        outside = [place for place in self.places if not 0 <= place < shape[-1]]
        if outside:
            raise ShapeError(f"global tokens at {outside}, and there are {shape[-1]} keys.")
        place = _places(i, None, shape)
        chosen = (i < 0) & (j < 0)  # none yet
        for token in self.places:
            chosen = chosen | (place == token) | (j == token)
        return chosen

    def sees(self, rows: range, cols: range, shape: Shape) -> bool | None:
        shift = shape[-1] - shape[-2]
        return None if any(place in cols or place - shift in rows for place in self.places) else False


def _count(number: Any, least: int) -> int | None:
    """A whole number of at least so much, NumPy's too; None if it is none."""
    whole = not isinstance(number, bool) and hasattr(number, "__index__")
    return int(number) if whole and number >= least else None


def _places(i: Array, offset: Number | None, shape: Shape) -> Array:
    """Where each query stands among the keys."""
    if offset is None:
        return i + (shape[-1] - shape[-2])
    return i + (offset if isinstance(offset, int) else over_heads(offset[..., None, None], shape, "offset"))


def _whole(offset: Number | None) -> Number | None:
    if offset is None or isinstance(offset, int):
        return offset
    if is_array(offset) and offset.ndim:
        return whole_numbers(offset, "offset")
    return whole_numbers((offset,), "offset")[0]
