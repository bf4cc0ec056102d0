"""Exact weights where any rows meet any columns, next to each other in the map or not."""

# H query heads, Q queries, K keys; R rows and C columns that are chosen

from dataclasses import replace

from ...formula.arrays import Array, Library
from ...formula.masks.mask import Both, Either, Mask, Not
from ...formula.normalize import subtractable
from ...formula.positions.bias import Alibi, Bias
from ...formula.problem import Problem

__all__ = ["weights_at"]

Shape = tuple[int, ...]


def weights_at(problem: Problem, rows: Array, cols: Array, lse: Array) -> Array:
    """The weights of each of some rows on each of some columns. rows (R,), cols (C,): their places

    lse: of all rows, (.., H, Q).   -> (.., H, R, C)
    """
    xp = problem.xp
    part = replace(
        problem, query=xp.take(problem.query, rows, axis=-2), key=xp.take(problem.key, cols, axis=-2), mask=None,
        bias=None,
    )  # fmt: skip
    scores = part.scores()
    i, j = rows[:, None], cols[None, :]
    if problem.bias is not None:
        bias = xp.astype(_added(problem.bias, i, j, problem.shape, scores), scores.dtype, copy=False)
        scores = xp.where(bias == -xp.inf, -xp.inf, scores + bias)
    if problem.mask is not None:
        scores = xp.where(_allowed(problem.mask, i, j, problem.shape, scores), scores, -xp.inf)
    return xp.exp(scores - subtractable(xp, xp.take(lse, rows, axis=-1))[..., None])


def _allowed(mask: Mask, i: Array, j: Array, shape: Shape, like: Array) -> Array:
    """What a mask says where rows i (R, 1) meet columns j (1, C)."""
    if isinstance(mask, Both | Either):
        one, other = (_allowed(part, i, j, shape, like) for part in (mask.one, mask.other))
        return one & other if isinstance(mask, Both) else one | other
    if isinstance(mask, Not):
        return ~_allowed(mask.one, i, j, shape, like)
    if type(mask)._allow is Mask._allow:
        return _by_rows(mask, i, j, shape, like)
    return mask._allow(i, j, shape, Library.of(like))


def _added(bias: Bias, i: Array, j: Array, shape: Shape, like: Array) -> Array:
    """What a bias adds where rows i (R, 1) meet columns j (1, C)."""
    if type(bias)._add is Bias._add:
        return _by_rows(bias, i, j, shape, like)
    library = Library.of(like)
    numbers = bias._add(i, j, shape, library)
    if isinstance(bias, Alibi):
        slopes = library.asarray(bias.slopes, dtype=like.dtype)
        return -library.xp.astype(numbers, like.dtype) * (slopes[:, None, None] if len(shape) > 2 else slopes[0])
    return numbers


def _by_rows(part: Mask | Bias, i: Array, j: Array, shape: Shape, like: Array) -> Array:
    """From a mask or bias that answers for rectangles only, because it was given as an array: row after row."""
    xp = Library.of(like).xp
    first, last = int(xp.min(j)), int(xp.max(j))
    rows = []
    for row in i[:, 0].tolist():
        line = part.tile(slice(row, row + 1), slice(first, last + 1), shape, like=like)
        line = xp.broadcast_to(line, (*line.shape[:-2], 1, last + 1 - first))
        rows.append(xp.take(line, j[0, :] - first, axis=-1))
    return xp.concat(rows, axis=-2)
