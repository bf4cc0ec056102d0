"""Sums down the columns of the map, each row counted as much as somebody says, tile by tile."""

# H query heads, G key heads, Q queries, K keys, V value width, N sums at once; R rows and C columns of a tile

from collections.abc import Sequence
from functools import partial

from ...formula import tiled
from ...formula.arrays import Array, quiet
from ...formula.normalize import subtractable
from ...formula.problem import Problem, grouped_matmul
from ...formula.tiled import as_slice, blocks, by_blocks, powers_of, rectangle, shifted, zeros

__all__ = ["active_rows", "column_sums", "row_totals"]


def active_rows(problem: Problem, factors: Array) -> list[range]:
    """The blocks of rows that count at all. Rows that nothing has reached need not be computed.   factors (N, Q)"""
    xp = problem.xp
    return [rows for rows in blocks(problem.shape[-2], tiled.COLS) if bool(xp.any(factors[:, as_slice(rows)] != 0))]


def column_sums(
    problem: Problem, lse: Array, factors: Array, rows: Sequence[range], *, values: Array | None = None,
    gradients: Array | None = None,
) -> Array:  # fmt: skip
    """Σ_i factor_i · w_ij, or Σ_i factor_i · max(0, w_ij · g_i·v_j) where values and gradients are given.

    factors: (N, Q). rows: the blocks of rows that count. lse: (.., H, rows), from the first of those rows to the last.
    -> (.., H, N, K)
    """
    arrays = {"lse": lse[..., None], "factors": problem.xp.matrix_transpose(factors)}
    if values is not None and gradients is not None:
        arrays |= {"values": values, "gradients": gradients}
    with quiet(problem.xp):
        (sums,) = by_blocks(problem, problem.shape[-1], partial(_column_sums, rows=rows), **arrays)
    return problem.xp.matrix_transpose(sums)


def row_totals(problem: Problem, lse: Array) -> Array:
    """What the weights of each row add up to: 1, less what the sink takes; 0 where a row may see nothing.

    (.., H, R) -> (.., H, R)
    """
    xp = problem.xp
    empty = lse == -xp.inf
    if problem.sinks is None:
        return xp.astype(~empty, problem.wide)
    return xp.where(empty, 0.0, -xp.expm1(problem.sinks[..., 0] - subtractable(xp, lse)))


def _column_sums(
    problem: Problem, cols: range, buffer: Array | None, *, rows: Sequence[range], lse: Array, factors: Array,
    values: Array | None = None, gradients: Array | None = None,
) -> tuple[Array]:  # fmt: skip
    """Of some columns.   -> (.., H, C, N)"""
    xp, first = problem.xp, rows[0].start if rows else 0
    sums = zeros(problem, len(cols), factors.shape[-1])
    for block in rows:
        scores = rectangle(problem, block, cols, buffer)
        if scores is None:
            continue
        weights = powers_of(problem, scores, lse[..., as_slice(shifted(block, -first)), :], in_place=buffer is not None)
        if values is not None and gradients is not None:
            slopes = grouped_matmul(
                xp, gradients[..., as_slice(block), :], xp.matrix_transpose(values[..., as_slice(cols), :])
            )
            weights = weights * xp.where(slopes > 0, slopes, 0.0)
        sums = sums + xp.matmul(xp.matrix_transpose(weights), factors[as_slice(block), :])
    return (sums,)
