"""The one seam between a record and what computes it: every number that is asked for comes through here.

Each function streams over tiles in O(n·d) memory, on NumPy and PyTorch, CPU and GPU. A kernel that does the same in
one go takes its place here, where it gives the same answer.
"""

import math
from collections.abc import Sequence
from contextlib import nullcontext

from array_api_compat import is_numpy_namespace

from ..formula import highest, pooling, sampled, spread, tiled
from ..formula.arrays import Array, quiet
from ..formula.highest import Top
from ..formula.problem import Problem
from ..formula.threads import in_parallel, single_threaded_blas
from ..formula.tiled import as_slice, by_blocks, powers_of, shifted

__all__ = ["Top", "log_sum_exp", "nothing", "pooled", "received", "shares", "spread_of", "top", "weights"]

FEW = 128  # rows that are a task of their own where there are not many


def log_sum_exp(problem: Problem, rows: range) -> Array:
    """log Σ exp(score) of some rows.   -> (.., R)"""
    with quiet(problem.xp):
        return tiled.log_sum_exp(problem, rows)[..., 0] if rows else tiled.zeros(problem, 0, 1)[..., 0]


def weights(problem: Problem, rows: range, cols: range, lse: Array) -> Array:
    """One rectangle of the weights; lse is that of its rows.   -> (.., R, C)"""
    if not rows or not cols:
        return tiled.zeros(problem, len(rows), len(cols))

    def share(part: Problem, block: range, buffer: Array | None, *, lse: Array) -> tuple[Array]:
        scores = part.scores(as_slice(shifted(block, rows.start)), as_slice(cols))
        return (powers_of(part, scores, lse[..., as_slice(block), :]),)

    with quiet(problem.xp), single_threaded_blas() if _is_small(problem, rows, cols) else nullcontext():
        (whole,) = by_blocks(problem, len(rows), share, lse=lse[..., None])
    return whole


def _is_small(problem: Problem, rows: range, cols: range) -> bool:
    """Whether a rectangle is too little work for a second core."""
    heads = math.prod(problem.shape[:-2])
    return is_numpy_namespace(problem.xp) and heads * len(rows) * len(cols) <= 2**18


def nothing(problem: Problem, rows: int, cols: int) -> Array:
    """An answer without rows, or without columns, of the dtype and on the device of any other.   -> (.., R, C)"""
    return tiled.zeros(problem, rows, cols)


def pooled(problem: Problem, rows: Sequence[int], cols: Sequence[int], lse: Array | None) -> tuple[Array, Array]:
    """Groups of rows, their mean, by groups of columns, their sum; and the log-sum-exp.   -> (.., G, W), (.., R)"""
    with quiet(problem.xp):
        small, found = pooling.pooled(problem, rows, cols, None if lse is None else lse[..., None])
    return small, found[..., 0]


def shares(problem: Problem, rows: range, cols: Sequence[int], lse: Array | None) -> tuple[Array, Array]:
    """Each of some rows, evenly spaced or next to each other, by groups of columns; and their log-sum-exp.

    rows: as range(0, Q, 10). lse: theirs, where it is known.   -> (.., R, W), (.., R)
    """

    def share(block: range) -> tuple[Array, Array]:
        known = None if lse is None else lse[..., as_slice(block)]
        return pooled(sampled.every(problem, rows[as_slice(block)]), range(len(block) + 1), cols, known)

    blocks = tiled.blocks(len(rows), FEW)
    found = in_parallel(share, blocks) if is_numpy_namespace(problem.xp) else [share(block) for block in blocks]
    parts, sums = zip(*found, strict=True)
    return problem.xp.concat(parts, axis=-2), problem.xp.concat(sums, axis=-1)


def top(problem: Problem, count: int, rows: range, lse: Array | None) -> tuple[Top, Array]:
    """The highest few of each row, and the rows' log-sum-exp.   -> (.., R, count) twice, (.., R)"""
    with quiet(problem.xp):
        found, sums = highest.top(problem, count, rows, None if lse is None else lse[..., None])
    return found, sums[..., 0]


def spread_of(problem: Problem, offset: int) -> tuple[Array, Array, Array]:
    """Log-sum-exp, entropy and mean distance of every row.   -> (.., Q) each"""
    with quiet(problem.xp):
        return spread.spread(problem, offset)


def received(problem: Problem, lse: Array) -> Array:
    """What each key receives from all queries.   -> (.., K)"""
    with quiet(problem.xp):
        return spread.receive(problem, lse)
