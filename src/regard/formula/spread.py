"""Numbers about the weights, gathered tile by tile: what each query spreads and what each key receives."""

# H query heads, Q queries, K keys; R rows and C columns of a tile

from dataclasses import dataclass
from functools import partial

from . import tiled
from .arrays import Array, Library, quiet
from .masks import Mask
from .normalize import divided, log_of, subtractable
from .positions import Bias
from .problem import Problem
from .tiled import as_slice, blocks, by_blocks, powers_of, raised, rectangle, start, tiles, zeros

__all__ = ["Statistics", "receive", "spread", "statistics"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Statistics:
    """What each query spreads and each key receives, without the map itself."""

    log_sum_exp: Array  # (.., H, Q)  log Σ exp(score): a weight is exp(score − this)
    entropy: Array  # (.., H, Q)  −Σ w·log w, in nats: 0 = one key, log K = all alike
    distance: Array  # (.., H, Q)  Σ w·|query's place − key's place|
    received: Array  # (.., H, K)  Σ of the weights in each column


def statistics(
    query: Array, key: Array, mask: Mask | Array | None = None, *, scale: float | None = None,
    softcap: float | None = None, bias: Bias | Array | None = None, sinks: Array | None = None,
    offset: int | None = None,
) -> Statistics:  # fmt: skip
    """Entropy, distance and received mass of all the weights, in O(n) memory. The arguments are those of `weights`.

    offset: the place of the first query among the keys, for the distance; the last query stands at the last key unless
    it is given.
    """
    problem = Problem.of(query, key, mask, scale=scale, softcap=softcap, bias=bias, sinks=sinks)
    if 0 in problem.shape:
        rows, cols = (zeros(problem, size, 1)[..., 0] for size in problem.shape[-2:])
        peak, total = start(problem, problem.shape[-2])
        lse = (log_of(problem.xp, total) + subtractable(problem.xp, peak))[..., 0]
        return Statistics(log_sum_exp=lse, entropy=rows, distance=rows, received=cols)
    offset = problem.shape[-1] - problem.shape[-2] if offset is None else offset
    with quiet(problem.xp):
        lse, entropy, distance = spread(problem, offset)
        received = receive(problem, lse)
    return Statistics(log_sum_exp=lse, entropy=entropy, distance=distance, received=received)


def spread(problem: Problem, offset: int) -> tuple[Array, Array, Array]:
    """Log-sum-exp, entropy and mean distance of every row, in one pass.   -> (.., H, Q) each"""
    lse, entropy, distance = by_blocks(problem, problem.shape[-2], partial(_spread, offset=offset))
    return lse[..., 0], entropy[..., 0], distance[..., 0]


def receive(problem: Problem, lse: Array) -> Array:
    """What each key receives from all queries, whose log-sum-exp is known.   (.., H, Q) -> (.., H, K)"""
    (received,) = by_blocks(problem, problem.shape[-1], _receive, lse=lse[..., None])
    return received[..., 0]


def _spread(problem: Problem, rows: range, buffer: Array | None, *, offset: int) -> tuple[Array, Array, Array]:
    """log-sum-exp, entropy and mean distance of some rows.   -> (.., H, R, 1) each"""
    xp = problem.xp
    peak, total = start(problem, len(rows))
    mass, scored, gone = (zeros(problem, len(rows), 1) for _ in range(3))  # Σ p, Σ p·(score − peak), Σ p·distance
    for cols, scores in tiles(problem, rows, buffer):
        before = peak
        peak, fade = raised(problem, peak, scores)
        powers = powers_of(problem, scores, peak)
        part = xp.sum(powers, axis=-1, keepdims=True)
        risen = xp.where(before == -xp.inf, 0.0, peak - subtractable(xp, before))
        below = xp.where(scores == -xp.inf, 0.0, scores - subtractable(xp, peak))  # 0·(−inf) is NaN
        scored = (scored - risen * mass) * fade + xp.sum(powers * below, axis=-1, keepdims=True)
        total, mass = total * fade + part, mass * fade + part
        gone = gone * fade + xp.sum(powers * _distances(problem, rows, cols, offset), axis=-1, keepdims=True)
    log_total = log_of(xp, total)
    entropy = subtractable(xp, log_total) * divided(xp, mass, total) - divided(xp, scored, total)
    distance = divided(xp, gone, total)
    return log_total + subtractable(xp, peak), xp.where(entropy < 0, 0.0, entropy), distance  # −1e-8 is rounding


def _receive(problem: Problem, cols: range, buffer: Array | None, *, lse: Array) -> tuple[Array]:
    """What some keys receive from all queries.   -> (.., H, C, 1)"""
    xp = problem.xp
    received = zeros(problem, len(cols), 1)
    for rows in blocks(problem.shape[-2], tiled.COLS):
        scores = rectangle(problem, rows, cols, buffer)
        if scores is not None:
            powers = powers_of(problem, scores, lse[..., as_slice(rows), :], in_place=buffer is not None)
            received = received + xp.sum(powers, axis=-2)[..., None]
    return (received,)


def _distances(problem: Problem, rows: range, cols: slice, offset: int) -> Array:
    """|query's place − key's place|.   -> (R, C)"""
    library = Library.of(problem.query)
    mine, theirs = library.arange(rows.start + offset, rows.stop + offset), library.arange(cols.start, cols.stop)
    mine, theirs = (library.xp.astype(places, problem.wide) for places in (mine, theirs))
    return library.xp.abs(mine[:, None] - theirs[None, :])
