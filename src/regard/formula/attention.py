"""The formula: how much each query attends to each key, and the values mixed by it."""

# H query heads, G key heads, Q queries, K keys, D width, V value width; "..": any leading axes

import math
from collections.abc import Callable
from typing import NamedTuple

from ..errors import ShapeError
from . import fused, tiled
from .arrays import Array, all_finite, common_dtype, floating, namespace, quiet, widened
from .masks import Mask
from .positions import Bias
from .problem import EVERYTHING, WORTH_HOLDING, Problem, grouped_matmul, lead_shape, map_shape, span

__all__ = ["Attended", "attend", "attended", "scores", "weights"]


def scores(
    query: Array, key: Array, mask: Mask | Array | None = None, *, scale: float | None = None,
    softcap: float | None = None, bias: Bias | Array | None = None,
) -> Array:  # fmt: skip
    """How well each query fits each key: scale·q·k, capped, biased, −inf where masked.   -> (.., H, Q, K)"""
    problem = Problem.of(query, key, mask, scale=scale, softcap=softcap, bias=bias)
    return problem.xp.astype(problem.scores(), problem.dtype, copy=False)


def weights(
    query: Array, key: Array, mask: Mask | Array | None = None, *, scale: float | None = None,
    softcap: float | None = None, bias: Bias | Array | None = None, sinks: Array | None = None,
    rows: slice = EVERYTHING, cols: slice = EVERYTHING,
) -> Array:  # fmt: skip
    """How much each query attends to each key.   (.., H, Q, D), (.., G, K, D) -> (.., H, Q, K)

    scale: 1/√D unless given. mask: booleans or a `masks` object, True = may attend. bias: numbers added to the scores.
    softcap: scores are squeezed into ±softcap by tanh. sinks: one logit a head that takes part in the sum and has no
    value, so that a row may add up to less than 1. G key heads may serve H = m·G query heads. rows, cols: one
    rectangle of the map, at the price of one pass over the keys for its rows.
    """
    problem = Problem.of(query, key, mask, scale=scale, softcap=softcap, bias=bias, sinks=sinks)
    chosen = span("rows", rows, problem.shape[-2]), span("cols", cols, problem.shape[-1])
    with quiet(problem.xp):
        return problem.xp.astype(_weights(problem, *chosen), problem.dtype, copy=False)


def attend(
    query: Array, key: Array, value: Array, mask: Mask | Array | None = None, *, scale: float | None = None,
    softcap: float | None = None, bias: Bias | Array | None = None, sinks: Array | None = None,
) -> Array:  # fmt: skip
    """The values, mixed by the weights.   (.., H, Q, D), (.., G, K, D), (.., G, K, V) -> (.., H, Q, V)

    The arguments are those of `weights`. A query that may attend to nothing gets zeros. What stands in a masked key or
    value never reaches the answer, be it NaN. The map is held only while it is small; the answer is the same.
    """
    query, key, value = _matched(query, key, value)
    problem = Problem.of(query, key, mask, scale=scale, softcap=softcap, bias=bias, sinks=sinks)
    mixed = _with_what_is_seen(problem, value, lambda value: _mixed(problem, value))
    return problem.xp.astype(mixed, problem.dtype, copy=False)


class Attended(NamedTuple):
    """The values, mixed by the weights, and the weights themselves."""

    output: Array  # (.., H, Q, V)
    weights: Array  # (.., H, Q, K)


def attended(
    query: Array, key: Array, value: Array, mask: Mask | Array | None = None, *, scale: float | None = None,
    softcap: float | None = None, bias: Bias | Array | None = None, sinks: Array | None = None,
) -> Attended:  # fmt: skip
    """What `attend` and `weights` give, both from one map, which is held for it. The arguments are theirs."""
    query, key, value = _matched(query, key, value)
    problem = Problem.of(query, key, mask, scale=scale, softcap=softcap, bias=bias, sinks=sinks)
    xp = problem.xp
    with quiet(xp):
        found = _weights(problem, range(problem.shape[-2]), range(problem.shape[-1]))
    mixed = _with_what_is_seen(problem, value, lambda value: grouped_matmul(xp, found, widened(xp, value)))
    return Attended(*(xp.astype(part, problem.dtype, copy=False) for part in (mixed, found)))


def _with_what_is_seen(problem: Problem, value: Array, mix: Callable[[Array], Array]) -> Array:
    """mix(value), such that NaN and infinities reach those who may see them and nobody else."""
    xp = problem.xp
    with quiet(xp):
        if 0 in problem.shape or (problem.mask is None and problem.bias is None) or all_finite(xp, value):
            return mix(value)
        return tiled.spoil(problem, value, mix(xp.where(xp.isfinite(value), value, 0.0)))


def _weights(problem: Problem, rows: range, cols: range) -> Array:
    if not rows or not cols:
        return tiled.zeros(problem, len(rows), len(cols))
    if len(cols) < problem.shape[-1]:  # the sum is over all keys, the weights are those of a few
        scores = problem.scores(tiled.as_slice(rows), tiled.as_slice(cols))
        return tiled.powers_of(problem, scores, tiled.log_sum_exp(problem, rows))
    large = math.prod(problem.shape[:-2]) * len(rows) * len(cols) > WORTH_HOLDING
    return tiled.weights(problem, rows) if large else tiled.normalized(problem, rows)


def _mixed(problem: Problem, value: Array) -> Array:
    """By the library's own kernel where it has one that gives this answer, else in tiles or by the whole map."""
    mixed = fused.attend(problem, value)
    if mixed is not None:
        return mixed
    value = widened(problem.xp, value)
    if math.prod(problem.shape) > WORTH_HOLDING:
        return tiled.attend(problem, value)
    whole = _weights(problem, range(problem.shape[-2]), range(problem.shape[-1]))
    return grouped_matmul(problem.xp, whole, value)


def _matched(query: Array, key: Array, value: Array) -> list[Array]:
    """The three in one dtype, and the query once for each item of a batch that only the value has."""
    xp = namespace(query=query, key=key, value=value)
    *lead, _, keys = map_shape(query.shape, key.shape)
    if value.ndim < 2 or value.shape[-2] != keys:
        raise ShapeError(
            f"value has shape {tuple(value.shape)} and there are {keys} keys; it must be (.., {keys}, width)."
        )
    whole = lead_shape("the map", tuple(lead), "value", tuple(value.shape[:-2]))
    if whole != tuple(lead):
        query = xp.broadcast_to(query, (*whole, *query.shape[-2:]))
    arrays = [floating(xp, array, name) for array, name in ((query, "query"), (key, "key"), (value, "value"))]
    return [xp.astype(array, common_dtype(xp, *arrays), copy=False) for array in arrays]
