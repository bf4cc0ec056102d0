"""The few keys that each query attends to most, tile by tile."""

# H query heads, Q queries, K keys, N how many are wanted; R rows and C columns of a tile

from functools import partial
from typing import NamedTuple

import array_api_compat as compat

from .arrays import Array, Library, Namespace
from .normalize import log_of, subtractable
from .problem import Problem
from .tiled import as_slice, by_blocks, powers_of, raised, shifted, start, tiles, zeros

__all__ = ["Top", "top"]


class Top(NamedTuple):
    """The keys with the highest weights in each row, the highest first."""

    keys: Array  # (.., H, Q, N) their places; −1, with a weight of 0, where a row sees fewer keys than were asked for
    weights: Array  # (.., H, Q, N)


def top(problem: Problem, count: int, rows: range, lse: Array | None = None) -> tuple[Top, Array]:
    """The `count` highest of each of some rows, and the rows' log-sum-exp, (.., H, R, 1), found in the same pass."""
    count = min(count, problem.shape[-1])
    values = {} if lse is None else {"lse": lse}
    places, weights, found = by_blocks(problem, len(rows), partial(_top, count=count, first=rows.start), **values)
    return Top(places, weights), found


def _top(
    problem: Problem, block: range, buffer: Array | None, *, count: int, first: int, lse: Array | None = None
) -> tuple[Array, Array, Array]:
    xp, rows = problem.xp, shifted(block, first)
    best = zeros(problem, len(rows), count) - xp.inf
    library = Library.of(problem.query)
    places = xp.full(best.shape, -1, dtype=library.arange(0, 1).dtype, device=library.device)
    peak, total = start(problem, len(rows))
    for cols, scores in tiles(problem, rows, buffer):
        few, where = _largest(xp, scores, min(count, scores.shape[-1]))
        where = xp.where(few == -xp.inf, -1, where + cols.start)
        best, order = _largest(xp, xp.concat((best, few), axis=-1), count)
        places = xp.take_along_axis(xp.concat((places, where), axis=-1), order, axis=-1)
        if lse is None:
            peak, fade = raised(problem, peak, scores)
            powers = powers_of(problem, scores, peak, in_place=buffer is not None)
            total = total * fade + xp.sum(powers, axis=-1, keepdims=True)
    own = log_of(xp, total) + subtractable(xp, peak) if lse is None else lse[..., as_slice(block), :]
    return places, xp.exp(best - subtractable(xp, own)), own


def _largest(xp: Namespace, scores: Array, count: int) -> tuple[Array, Array]:
    """The largest numbers along the last axis, the largest first, and where they stand."""
    if compat.is_torch_namespace(xp):
        found = scores.topk(count, dim=-1)
        return found.values, found.indices
    if hasattr(xp, "argpartition") and count < scores.shape[-1]:
        where = xp.argpartition(-scores, count - 1, axis=-1)[..., :count]
        few = xp.take_along_axis(scores, where, axis=-1)
    else:
        where, few = None, scores
    order = xp.argsort(-few, axis=-1)[..., :count]
    few = xp.take_along_axis(few, order, axis=-1)
    return few, order if where is None else xp.take_along_axis(where, order, axis=-1)
