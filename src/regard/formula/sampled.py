"""Some rows of a problem, evenly spaced, as a problem of their own: a long map can be guessed at from a few of them."""

# Q queries of the whole problem, K keys

from dataclasses import dataclass, replace

from .arrays import Array
from .masks.mask import Mask, Shape
from .positions.bias import Bias
from .problem import Problem

__all__ = ["every"]


def every(problem: Problem, rows: range) -> Problem:
    """The problem of some rows alone, as range(0, Q, 10).   (.., Q, K) -> (.., R, K)"""
    queries = problem.shape[-2]
    return replace(
        problem,
        query=problem.query[..., _picked(rows, slice(None)), :],
        shape=(*problem.shape[:-2], len(rows), problem.shape[-1]),
        mask=None if problem.mask is None else SampledMask(problem.mask, rows, queries),
        bias=None if problem.bias is None else SampledBias(problem.bias, rows, queries),
    )


@dataclass(frozen=True, eq=False)
class SampledMask(Mask):
    """A mask that is asked for a few of its rows."""

    whole: Mask
    rows: range
    queries: int  # that the whole has

    def tile(self, rows: slice, cols: slice, shape: Shape, *, like: Array | None = None) -> Array:
        """What the mask says in the rows that stand for `rows`."""
        return self.whole.tile(_picked(self.rows, rows), cols, _whole(shape, self.queries), like=like)

    def sees(self, rows: range, cols: range, shape: Shape) -> bool | None:
        """What the mask says of the rows that stand for `rows`."""
        return self.whole.sees(self.rows[rows.start : rows.stop], cols, _whole(shape, self.queries))

    def lead(self) -> Shape:
        """The leading axes of the mask."""
        return self.whole.lead()

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        """The mask of one map alone."""
        return replace(self, whole=self.whole.item(index, _whole(shape, self.queries)))


@dataclass(frozen=True, eq=False)
class SampledBias(Bias):
    """A bias that is asked for a few of its rows."""

    whole: Bias
    rows: range
    queries: int

    def tile(self, rows: slice, cols: slice, shape: Shape, *, like: Array) -> Array:
        """What the bias adds in the rows that stand for `rows`."""
        return self.whole.tile(_picked(self.rows, rows), cols, _whole(shape, self.queries), like=like)

    def item(self, index: tuple[int, ...], shape: Shape) -> Bias:
        """The bias of one map alone."""
        return replace(self, whole=self.whole.item(index, _whole(shape, self.queries)))


def _picked(rows: range, part: slice) -> slice:
    """The slice of the whole that a part of some of its rows is."""
    chosen = rows[part]
    return slice(chosen.start, chosen.stop, chosen.step)


def _whole(shape: Shape, queries: int) -> Shape:
    return (*shape[:-2], queries, shape[-1])
