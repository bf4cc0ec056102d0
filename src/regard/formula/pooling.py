"""The map made small, tile by tile: what each group of queries gives to each group of keys."""

# H query heads, Q queries, K keys; R rows and C columns of a tile; G groups of rows, W groups of columns

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from . import tiled
from .arrays import Array, Library
from .normalize import log_of, subtractable
from .problem import Problem
from .tiled import as_slice, by_blocks, powers_of, rectangle, start, zeros

__all__ = ["even_edges", "pooled"]

Edges = Sequence[int]  # group g is range(edges[g], edges[g + 1])


def even_edges(span: range, groups: int) -> list[int]:
    """The edges of groups that are as nearly equal as can be; no more groups than there are numbers in the span."""
    groups = min(groups, len(span))
    return [span.start + len(span) * group // max(groups, 1) for group in range(groups + 1)]


def pooled(problem: Problem, rows: Edges, cols: Edges, lse: Array | None = None) -> tuple[Array, Array]:
    """The mean over each group of rows of the sum over each group of columns, and the rows' log-sum-exp.

    lse: of these rows, (.., H, rows, 1), where it is known. Else it is found in the same pass: each tile is summed
    under a peak of its own, and brought to scale when the whole row has been seen.   -> (.., H, G, W), (.., H, rows, 1)
    """
    if lse is None and (cols[0], cols[-1]) != (0, problem.shape[-1]):
        lse = tiled.log_sum_exp(problem, range(rows[0], rows[-1]))
    values = {} if lse is None else {"lse": lse}
    small, found = by_blocks(problem, _tasks(rows), partial(_pool, rows=rows, cols=cols), **values)
    return small, found


def _tasks(rows: Edges) -> list[range]:
    """Groups of rows in runs of about a tile's height; a larger group is a run of its own."""
    tasks, first = [], 0
    for group in range(1, len(rows)):
        if group == len(rows) - 1 or rows[group + 1] - rows[first] > tiled.ROWS:
            tasks.append(range(first, group))
            first = group
    return tasks


def _pool(
    problem: Problem, groups: range, buffer: Array | None, *, rows: Edges, cols: Edges, lse: Array | None = None
) -> tuple[Array, Array]:
    xp, edges = problem.xp, rows[groups.start : groups.stop + 1]
    height = tiled.ROWS if buffer is not None else tiled.height_of_all(problem)
    sums, found = zeros(problem, len(groups), len(cols) - 1), []
    for first in range(edges[0], edges[-1], height):
        block = range(first, min(first + height, edges[-1]))
        known = None if lse is None else lse[..., block.start - rows[0] : block.stop - rows[0], :]
        shares, own = _shares(problem, block, buffer, cols, known)
        sums = sums + _over_rows(problem, edges, block, shares)
        found.append(own)
    sizes = _column(problem, [max(after - before, 1) for before, after in pairwise(edges)])
    return sums / sizes, xp.concat(found, axis=-2)


def _shares(problem: Problem, rows: range, buffer: Array | None, cols: Edges, lse: Array | None) -> tuple[Array, Array]:
    """What each row gives to each group of columns.   -> (.., H, R, W), (.., H, R, 1)"""
    xp, scaled = problem.xp, problem.scaled(as_slice(rows))
    parts: list[tuple[range, Array | None, Array | None]] = []  # groups, their sums under the peak, the peak
    for groups, span in _column_tiles(cols, max(1, _room(problem, buffer) // len(rows))):
        scores = rectangle(problem, rows, span, buffer, scaled)
        if scores is None:
            parts.append((groups, None, None))
            continue
        peak = xp.max(scores, axis=-1, keepdims=True) if lse is None else lse
        powers = powers_of(problem, scores, peak, in_place=buffer is not None)
        parts.append((groups, _summed(problem, powers, cols[groups.start : groups.stop + 1], span), peak))
    if lse is None:
        lse = _joined(problem, len(rows), parts)
    return _laid_out(problem, len(rows), parts, lse), lse


def _joined(problem: Problem, rows: int, parts: list[tuple[range, Array | None, Array | None]]) -> Array:
    """The log-sum-exp of whole rows, from tiles summed under peaks of their own."""
    xp = problem.xp
    highest, total = start(problem, rows)
    for _, sums, peak in parts:
        if sums is not None:
            higher = xp.maximum(highest, peak)
            fade, rise = (xp.exp(part - subtractable(xp, higher)) for part in (highest, peak))
            total = total * fade + xp.sum(sums, axis=-1, keepdims=True) * rise
            highest = higher
    return log_of(xp, total) + subtractable(xp, highest)


def _laid_out(problem: Problem, rows: int, parts: list[tuple[range, Array | None, Array | None]], lse: Array) -> Array:
    """The tiles' sums as shares of the whole rows, beside each other.   -> (.., H, R, W)"""
    xp = problem.xp
    laid: list[tuple[range, Array]] = []
    for groups, sums, peak in parts:
        if sums is None or peak is None:
            share = zeros(problem, rows, len(groups))
        else:
            share = sums if peak is lse else sums * xp.exp(subtractable(xp, peak) - subtractable(xp, lse))
        if laid and laid[-1][0] == groups:  # one wide group in several tiles
            laid[-1] = (groups, laid[-1][1] + share)
        else:
            laid.append((groups, share))
    return xp.concat([share for _, share in laid], axis=-1)


def _column_tiles(cols: Edges, width: int) -> Iterator[tuple[range, range]]:
    """Runs of groups that fit a tile together, with their columns; a wider group is cut."""
    first = 0
    while first < len(cols) - 1:
        last = max(bisect_right(cols, cols[first] + width, lo=first + 1) - 1, first + 1)
        for begin in range(cols[first], max(cols[last], cols[first] + 1), max(width, 1)):
            yield range(first, last), range(begin, min(begin + width, cols[last]))
        first = last


def _summed(problem: Problem, powers: Array, edges: Edges, span: range) -> Array:
    """The sum over each group of columns of a tile.   (.., R, C) -> (.., R, groups)"""
    xp, sizes = problem.xp, {after - before for before, after in pairwise(edges)}
    if len(edges) == 2:
        return xp.sum(powers, axis=-1, keepdims=True)
    if len(sizes) == 1:
        return xp.sum(xp.reshape(powers, (*powers.shape[:-1], len(edges) - 1, -1)), axis=-1)
    return xp.matmul(powers, _membership(problem, edges, span))


def _over_rows(problem: Problem, edges: Edges, span: range, shares: Array) -> Array:
    """The sum over each group of rows.   (.., R, W) -> (.., groups, W)"""
    xp, member = problem.xp, problem.xp.matrix_transpose(_membership(problem, edges, span))
    sums = xp.matmul(member, shares)
    if not bool(xp.any(xp.isnan(sums))):
        return sums
    spoilt = ~xp.isfinite(shares)  # 0 · NaN is NaN: one such row would spoil the groups that it is not in
    clean = xp.matmul(member, xp.where(spoilt, xp.zeros_like(shares), shares))
    touched = xp.matmul(member, xp.astype(spoilt, shares.dtype)) > 0
    return xp.where(touched, xp.full_like(clean, xp.nan), clean)


def _membership(problem: Problem, edges: Edges, span: range) -> Array:
    """1 where a place of the span belongs to a group.   -> (span, groups)"""
    library = Library.of(problem.query)
    place = library.arange(span.start, span.stop)[:, None]
    begin, end = (library.asarray(list(part))[None, :] for part in (edges[:-1], edges[1:]))
    return library.xp.astype((begin <= place) & (place < end), problem.wide)


def _column(problem: Problem, numbers: Sequence[int]) -> Array:
    return Library.of(problem.query).asarray(list(numbers), dtype=problem.wide)[:, None]


def _room(problem: Problem, buffer: Array | None) -> int:
    """Scores that a tile may have."""
    return tiled.ROWS * tiled.COLS if buffer is not None else tiled.ROWS * tiled.height_of_all(problem)
