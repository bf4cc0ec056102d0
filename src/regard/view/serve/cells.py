"""A rectangle of the map in units, tokens or words, cut into cells: what is drawn."""

# R rows that are looked at, Q queries, K keys

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...formula.pooling import even_edges
from ...record import Head, Tokens
from ..page.coding import host
from .refusal import Gone
from .work import FIRST, allowed_step, chosen_rows

__all__ = ["Side", "column", "row", "tile"]

HELD = 2**21  # numbers that are held while cells are summed up
TOGETHER = 64  # rows of all keys that are held at once


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a rectangle: units from one to another, in cells that are as nearly equal as can be."""

    edges: np.ndarray  # of each cell, in tokens
    counts: np.ndarray  # units of each cell
    words: np.ndarray | None  # edges of all words, where words are the units

    @classmethod
    def of(cls, tokens: Tokens, unit: str, units: range, cells: int) -> "Side":
        """The side of a rectangle."""
        edges = np.asarray(even_edges(units, cells))
        words = np.asarray(tokens.word_edges) if unit == "word" else None
        return cls(edges if words is None else words[edges], np.diff(edges), words)

    @property
    def tokens(self) -> range:
        """All tokens of it."""
        return range(int(self.edges[0]), int(self.edges[-1]))

    def shares_of_units(self, places: np.ndarray) -> np.ndarray:
        """How much of its unit each token is: all of it, or of a word of three tokens a third.   (R,) -> (R,)"""
        if self.words is None:
            return np.ones(len(places))
        word = np.searchsorted(self.words, places, side="right") - 1
        shares: np.ndarray = 1.0 / np.diff(self.words)[word]
        return shares


def tile(head: Head, rows: Side, cols: Side, asked: int, wanted: Callable[[], bool]) -> tuple[np.ndarray, int]:
    """The mean over the units of each cell, and of how many rows one was looked at.   -> (cells, cells), step

    A unit of the rows gives the mean of what its tokens give, and a unit of the columns gets the sum of what its tokens
    get. A cell in which no row was looked at shows the nearest one that was. wanted: asked now and then; who moves on
    to another part of the map lets the work be dropped.
    """
    step = allowed_step(head, rows.tokens, cols.tokens, asked)
    chosen = chosen_rows(rows.tokens, step)
    sums = np.zeros((len(rows.counts), len(cols.counts)))
    weight = np.zeros(len(rows.counts))
    near = _nearest(rows, chosen) if step > 1 else np.zeros(0, dtype=int)
    seen = np.zeros((len(near), len(cols.counts)))
    work = head.shape[-1] * int(head.map.queries.shape[-1])
    at_once = max(1, min(HELD // len(cols.counts), FIRST // (2 * work)))
    for first in range(0, len(chosen), at_once):
        if not wanted():
            raise Gone
        part = chosen[first : first + at_once]
        shares = host(head.shares(part, cols.edges.tolist()))
        places = np.asarray(part)
        cell = np.searchsorted(rows.edges, places, side="right") - 1
        own = rows.shares_of_units(places)
        starts = np.flatnonzero(np.diff(cell, prepend=-1))
        sums[cell[starts]] += np.add.reduceat(shares * own[:, None], starts, axis=0)
        weight[cell[starts]] += np.add.reduceat(own, starts)
        inside = (first <= near) & (near < first + len(part))
        seen[inside] = shares[near[inside] - first]
    empty = weight == 0
    sums[~empty] /= weight[~empty, None]
    sums[empty] = seen[empty] if len(near) else 0.0
    means: np.ndarray = sums / cols.counts
    return means, step


def _nearest(rows: Side, chosen: range) -> np.ndarray:
    """For each cell the one of the chosen rows that is nearest to its middle.   -> (cells,)"""
    middle = (rows.edges[:-1] + rows.edges[1:] - 1) / 2
    nearest: np.ndarray = np.rint((middle - chosen.start) / chosen.step).astype(int).clip(0, len(chosen) - 1)
    return nearest


def row(head: Head, places: Sequence[int]) -> np.ndarray:
    """The mean over some rows.   -> (K,)"""
    total = np.zeros(head.shape[-1])
    for run in _runs(places):
        for first in range(run.start, run.stop, TOGETHER):
            total += host(head.weights(slice(first, min(first + TOGETHER, run.stop)))).sum(axis=0)
    return total / len(places)


def column(head: Head, places: Sequence[int], rows: range) -> np.ndarray:
    """The sum over some columns, for each of some rows.   -> (rows,)"""
    total = np.zeros(len(rows))
    for run in _runs(places):
        total += host(head.shares(rows, [run.start, run.stop]))[:, 0]
    return total


def _runs(places: Sequence[int]) -> Iterator[range]:
    """Places that rise, as runs of those next to each other."""
    breaks = [place for place, (one, other) in enumerate(pairwise(places), 1) if other != one + 1]
    for first, last in pairwise([0, *breaks, len(places)]):
        yield range(places[first], places[last - 1] + 1)
