"""The heads of a record, ready to be asked many times: their keys in memory, and what was learned of their rows."""

# H heads, Q queries, K keys, D width

import mmap
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...formula.problem import Problem
from ...record import Head, Layer
from .kept import Kept
from .pages import Pages

__all__ = ["Heads"]

ROOM = 2**28  # bytes of keys that are held
ROOM_FOR_SUMS = 2**27  # bytes of log-sum-exps that are remembered, which take long to find


class Heads:
    """The heads of some layers."""

    def __init__(self, layers: tuple[Layer, ...], pages: Pages) -> None:
        self.layers, self.pages = layers, pages
        self._keys: Kept[Any] = Kept(ROOM, _bytes_of)
        self._sums: Kept[Any] = Kept(ROOM_FOR_SUMS, _bytes_of)

    def head(self, layer: int, place: int) -> Head:
        """One head. Of a live model's record it is as it is; of one on disk, its keys are brought into memory."""
        whole = self.layers[layer]
        if not self.pages.files:
            return whole.heads[place]
        one = whole.map.head(place)
        group = place * whole.map.keys.shape[0] // whole.map.shape[0]
        keys = self._keys.get((layer, group), lambda: _brought(one.keys[0]))
        sums = self._sums.get((layer, place), lambda: _sums_of(one.queries, one.lse))
        alone = replace(whole, maps=(replace(one, kept={"lse": sums}),), head_numbers=(whole.head_numbers[place],))
        return ReadyHead(alone, 0, keys)


@dataclass(frozen=True, eq=False)
class ReadyHead(Head):
    """A head whose keys are in memory already, in the dtype that products are taken in; its queries stay on disk."""

    keys: Any  # (K, D)

    @cached_property
    def _problem(self) -> Problem:
        return replace(self.map.problem.item((self.place,)), key=self.keys)


def _brought(array: Any) -> Any:
    """An array from disk, in memory that goes back to the system when the array goes; the heap might keep it."""
    dtype = _wide(array)
    room = _room(max(array.size, 1) * np.dtype(dtype).itemsize)
    brought = np.frombuffer(room, dtype, count=array.size).reshape(array.shape)
    np.copyto(brought, array)
    return brought


def _room(size: int) -> mmap.mmap:
    """Memory from the system; in large pages where it has them, which are taken sooner than many small ones."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, size)
    room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a system may be built without them
            room.madvise(mmap.MADV_HUGEPAGE)
    return room


def _sums_of(queries: Any, known: Any) -> Any:
    """The log-sum-exps of a head's rows, NaN where nobody has found them yet.   -> (1, Q)"""
    sums = np.full(queries.shape[:2], np.nan, dtype=_wide(queries))
    if known is not None:
        sums[...] = known
    return sums


def _wide(array: Any) -> Any:
    """The dtype that products are taken in; half precision is slow, and overflows."""
    return np.float64 if array.dtype == np.float64 else np.float32


def _bytes_of(array: Any) -> int:
    return int(array.nbytes)
