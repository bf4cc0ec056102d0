"""The formula: how much each query attends to each key, and the values mixed by it."""

# H query heads, G key heads, Q queries, K keys, D width, V value width; "..": any leading axes

import math

from ..errors import OptionError, ShapeError
from . import fused, tiled
from .arrays import Array, all_finite, floating, namespace, widened
from .masks import Mask
from .positions import Bias
from .problem import EVERYTHING, WORTH_HOLDING, Problem, grouped_matmul, lead_shape, map_shape

__all__ = ["attend", "scores", "weights"]


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
    rectangle of the map, at the price of that rectangle and one pass over the keys of its rows.
    """
    problem = Problem.of(query, key, mask, scale=scale, softcap=softcap, bias=bias, sinks=sinks)
    rectangle = _weights(problem, rows) if cols == EVERYTHING else _weights_of_columns(problem, rows, cols)
    return problem.xp.astype(rectangle, problem.dtype, copy=False)


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
    xp = problem.xp
    if (problem.mask is None and problem.bias is None) or all_finite(xp, value):
        return xp.astype(_mixed(problem, value), problem.dtype, copy=False)
    mixed = _mixed(problem, xp.where(xp.isfinite(value), value, 0.0))
    return xp.astype(tiled.spoil(problem, value, mixed), problem.dtype, copy=False)


def _weights(problem: Problem, rows: slice) -> Array:
    large = math.prod(problem.shape) > WORTH_HOLDING and rows == EVERYTHING
    return tiled.weights(problem) if large else tiled.normalized(problem, rows)


def _weights_of_columns(problem: Problem, rows: slice, cols: slice) -> Array:
    """exp(score − log-sum-exp): the sum is over all keys, the weights are those of a few."""
    chosen = range(*rows.indices(problem.shape[-2]))
    if chosen.step != 1:
        raise OptionError(f"rows {rows} are taken in steps of {chosen.step}; a rectangle has a step of 1.")
    lse = tiled.log_sum_exp(problem, chosen)
    return tiled.powers_of(problem, problem.scores(rows, cols), lse)


def _mixed(problem: Problem, value: Array) -> Array:
    """By the library's own kernel where it has one that gives this answer, else in tiles or by the whole map."""
    mixed = fused.attend(problem, value)
    if mixed is not None:
        return mixed
    value = widened(problem.xp, value)
    if math.prod(problem.shape) > WORTH_HOLDING:
        return tiled.attend(problem, value)
    return grouped_matmul(problem.xp, tiled.normalized(problem, EVERYTHING), value)


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
    return [xp.astype(array, xp.result_type(*arrays), copy=False) for array in arrays]
