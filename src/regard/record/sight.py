"""What can be asked of weights that are not there: exact rectangles, and numbers about the whole, tile by tile."""

# "..": nothing for one head, H for all heads of a layer; Q queries, K keys

import operator
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import Any

from ..errors import DtypeError, OptionError
from ..formula.arrays import Array, Library
from ..formula.pooling import even_edges
from ..formula.problem import EVERYTHING, Problem, span
from . import statistics
from .map import Map
from .statistics import Top

__all__ = ["Sight", "Top"]


class Sight:
    """The weights of one head, (Q, K), or of all heads of a layer, (H, Q, K). Each answer is exact, to rounding."""

    @property
    def map(self) -> Map:
        """What the weights follow from."""
        raise NotImplementedError

    @property
    def _index(self) -> tuple[int, ...]:
        return ()

    @cached_property
    def _problem(self) -> Problem:
        whole = self.map.problem
        return whole.item(self._index) if self._index else whole

    @property
    def shape(self) -> tuple[int, ...]:
        """(Q, K), or (H, Q, K)"""
        return tuple(self._problem.shape)

    def weights(self, rows: slice = EVERYTHING, cols: slice = EVERYTHING) -> Array:
        """How much each of some queries attends to each of some keys.   -> (.., rows, cols)"""
        chosen = self._rows(rows), self._cols(cols)
        return statistics.weights(self._problem, *chosen, self.log_sum_exp(rows))

    def log_sum_exp(self, rows: slice = EVERYTHING) -> Array:
        """log Σ exp(score) of each row: a weight is exp(score − this). Computed when first needed, and kept."""
        chosen = self._rows(rows)
        known = self._known(chosen)
        return self._learn(chosen, statistics.log_sum_exp(self._problem, chosen)) if known is None else known

    def pooled(
        self, height: int = 512, width: int = 512, *, rows: slice = EVERYTHING, cols: slice = EVERYTHING
    ) -> Array:
        """The map, or a rectangle of it, made small: each cell is the mean of the weights under it.   -> (.., h, w)

        The cells are as nearly equal as can be, and no smaller than one weight: a map of 5 tokens is 5 × 5 at most.
        """
        row_edges = even_edges(self._rows(rows), _count("height", height))
        col_edges = even_edges(self._cols(cols), _count("width", width))
        sums = self.grouped(row_edges, col_edges)
        sizes = [after - before for before, after in pairwise(col_edges)]
        return sums / Library.of(sums).asarray(sizes, dtype=sums.dtype)

    def grouped(self, rows: Sequence[int], cols: Sequence[int]) -> Array:
        """What the queries of each group give, on average, to the keys of each group.   -> (.., groups, groups)

        rows, cols: the edges of the groups, n + 1 rising numbers for n groups. Groups that are words merge the pieces
        of a word as is the custom (Clark et al. 2019): what goes to a word is added up, what comes from it is averaged.
        """
        rows, cols = _edges("rows", rows, self.shape[-2]), _edges("cols", cols, self.shape[-1])
        if len(rows) < 2 or len(cols) < 2:
            return statistics.nothing(self._problem, max(len(rows) - 1, 0), max(len(cols) - 1, 0))
        chosen = range(rows[0], rows[-1])
        small, lse = statistics.pooled(self._problem, rows, cols, self._known(chosen))
        self._learn(chosen, lse)
        return small

    def shares(self, rows: range, cols: Sequence[int]) -> Array:
        """What each of some queries, evenly spaced, gives to the keys of each group.   -> (.., rows, groups)

        rows: as range(5, 100_000, 10): the whole of a long map can be guessed at from a few of its rows, each exact.
        cols: the edges of the groups, as for `grouped`.
        """
        cols = _edges("cols", cols, self.shape[-1])
        if rows.step < 1 or (rows and not 0 <= rows[0] <= rows[-1] < self.shape[-2]):
            raise OptionError(f"rows are {rows}; they must rise, and be out of 0 to {self.shape[-2] - 1}.")
        if not rows or len(cols) < 2:
            return statistics.nothing(self._problem, len(rows), max(len(cols) - 1, 0))
        found, lse = statistics.shares(self._problem, rows, cols, self._known(rows))
        self._learn(rows, lse)
        return found

    def is_summed(self, rows: range) -> bool:
        """Whether the log-sum-exp of some queries is known already, so that their weights are little work."""
        return self._known(rows) is not None

    def top(self, count: int = 8, rows: slice = EVERYTHING) -> Top:
        """The keys that each query attends to most, and how much.   -> .keys and .weights, (.., rows, count)"""
        count, chosen = min(_count("count", count), self.shape[-1]), self._rows(rows)
        if not chosen:
            nothing = statistics.weights(self._problem, chosen, range(count), self.log_sum_exp(rows))
            return Top(self._problem.xp.astype(nothing, Library.of(nothing).arange(0, 1).dtype), nothing)
        found, lse = statistics.top(self._problem, count, chosen, self._known(chosen))
        self._learn(chosen, lse)
        return found

    def entropy(self) -> Array:
        """−Σ w·log w of each query, in nats: 0 = one key, log K = all alike.   -> (.., Q)"""
        return self._spread()[0]

    def distance(self) -> Array:
        """Σ w·|query's place − key's place| of each query.   -> (.., Q)"""
        return self._spread()[1]

    def received(self) -> Array:
        """What each key receives from all queries together.   -> (.., K)"""
        kept = self.map.kept
        if (self._index, "received") not in kept:
            kept[self._index, "received"] = statistics.received(self._problem, self.log_sum_exp())
        return kept[self._index, "received"]

    def attention_from(self, rows: int | Sequence[int]) -> Array:
        """What some queries, any of them, attend to, on average.   -> (.., K)"""
        found = [self.weights(slice(row, row + 1)) for row in self._places("rows", rows, self.shape[-2])]
        return sum(found[1:], start=found[0])[..., 0, :] / len(found)

    def attention_to(self, cols: int | Sequence[int]) -> Array:
        """How much each query attends to some keys, any of them, together.   -> (.., Q)"""
        found = [self.weights(cols=slice(col, col + 1)) for col in self._places("cols", cols, self.shape[-1])]
        return sum(found[1:], start=found[0])[..., 0]

    def _spread(self) -> tuple[Array, Array]:
        kept = self.map.kept
        if (self._index, "spread") not in kept:
            lse, entropy, distance = statistics.spread_of(self._problem, self.map.offset)
            self._learn(range(self.shape[-2]), lse)
            kept[self._index, "spread"] = entropy, distance
        entropy, distance = kept[self._index, "spread"]
        return entropy, distance

    def _rows(self, rows: slice) -> range:
        return span("rows", rows, self.shape[-2])

    def _cols(self, cols: slice) -> range:
        return span("cols", cols, self.shape[-1])

    def _places(self, name: str, places: int | Sequence[int], size: int) -> list[int]:
        given = _whole(name, (places,) if isinstance(places, Integral) else places)
        chosen = [place + size if place < 0 else place for place in given]
        if not chosen or any(not 0 <= place < size for place in chosen):
            raise OptionError(f"{name} are {given}; choose at least one, out of 0 to {size - 1}.")
        return chosen

    def _known(self, rows: range) -> Array | None:
        """The log-sum-exp of some rows, if all of them are known."""
        sums = self._sums()[(*self._index, ..., slice(rows.start, rows.stop, rows.step))]
        xp = self._problem.xp
        return None if bool(xp.any(xp.isnan(sums))) else sums

    def _learn(self, rows: range, lse: Array) -> Array:
        self._sums()[(*self._index, ..., slice(rows.start, rows.stop, rows.step))] = lse
        return lse

    def _sums(self) -> Any:
        """What is known of the log-sum-exps of all heads, NaN where it is not yet."""
        kept, problem = self.map.kept, self.map.problem
        if "lse" not in kept:
            unknown = problem.xp.full(
                problem.shape[:-1], problem.xp.nan, dtype=problem.wide, device=problem.query.device
            )
            if self.map.lse is not None:
                unknown[...] = self.map.lse
            kept["lse"] = unknown
        return kept["lse"]


def _count(name: str, number: Any) -> int:
    """A whole number of at least 1, NumPy's too."""
    try:
        size = 0 if isinstance(number, bool) else operator.index(number)
    except TypeError:
        size = 0
    if size < 1:
        raise OptionError(f"{name} is {number!r}; it must be a whole number, 1 or more.")
    return size


def _whole(name: str, places: Any) -> list[int]:
    """Places as Python's whole numbers, whatever library they come from."""
    try:
        return [operator.index(place) for place in places]
    except TypeError:
        raise DtypeError(f"{name} are {places!r}; they must be whole numbers, as in [0, 3].") from None


def _edges(name: str, edges: Sequence[int], size: int) -> list[int]:
    """The edges of groups, as whole numbers that rise."""
    found = _whole(f"the edges of the {name}", edges)
    rising = all(before < after for before, after in pairwise(found))
    if found and (not rising or found[0] < 0 or found[-1] > size):
        raise OptionError(f"the edges of the {name} must rise, from 0 at least to {size} at most.")
    return found
