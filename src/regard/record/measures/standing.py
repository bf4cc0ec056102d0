"""What heads give by where tokens stand: to the one before, the one after, themselves, the first, the strongest."""

# H heads, Q queries, K keys

from ...formula.arrays import Array, quiet
from ...formula.normalize import divided, subtractable
from ...formula.problem import Problem
from ...formula.tiled import as_slice, blocks, shifted
from ..record import Layer
from .subject import Floats, floats, problem_of

__all__ = ["lacks_neighbour", "lacks_tokens", "mean_over_rows", "on_first", "on_neighbour", "on_strongest"]

BAND = 128  # rows and columns of a tile along the diagonal


def on_neighbour(layer: Layer, step: int) -> Floats:
    """The mean weight on the key `step` places from each query, over the queries that have one.   -> (H,)"""
    problem, lse, rows = problem_of(layer), layer.log_sum_exp(), _with_neighbour(layer, step)
    xp = problem.xp
    total = seen = xp.zeros(problem.shape[0], dtype=problem.wide, device=problem.query.device)
    with quiet(xp):
        for block in (shifted(block, rows.start) for block in blocks(len(rows), BAND)):
            part = lse[..., as_slice(block)]
            weights = _diagonal(problem, block, shifted(block, layer.map.offset + step), part)
            total = total + xp.sum(weights, axis=-1)
            seen = seen + xp.sum(xp.astype(part > -xp.inf, problem.wide), axis=-1)
    return floats(divided(xp, total, seen))


def lacks_neighbour(layer: Layer, step: int) -> str | None:
    """Why there is nothing to measure, in words."""
    if layer.kind == "cross":
        return f"layer {layer.index} is cross-attention: its keys are another text, without a place beside the query"
    if not _with_neighbour(layer, step):
        return f"layer {layer.index} is {_size(layer)}, and no query has a key at {step:+d} from its own place"
    return None


def on_first(layer: Layer) -> Floats:
    """The mean weight on the first key; padding before it, which nobody may see, does not count.   -> (H,)"""
    first = _first_seen(layer)
    return mean_over_rows(layer, layer.weights(cols=slice(first, first + 1))[..., 0])


def _first_seen(layer: Layer) -> int:
    """The first key that some query may see."""
    mask, (_, queries, keys) = layer.map.mask, layer.map.shape
    if mask is None or not queries or not keys:
        return 0
    for block in blocks(keys, BAND):
        seen = mask.tile(slice(None), as_slice(block), layer.map.shape, like=layer.map.queries)
        found = [place for place in range(len(block)) if seen.shape[-1] == 1 or bool(seen[..., place].any())]
        if found:
            return block.start + found[0]
    return 0


def on_strongest(layer: Layer) -> Floats:
    """The mean weight on that key which receives most of all.   -> (H,)"""
    received = layer.received()
    return floats(divided(problem_of(layer).xp, problem_of(layer).xp.max(received, axis=-1), _seeing(layer)))


def lacks_tokens(layer: Layer) -> str | None:
    """Why there is nothing to measure, in words."""
    return None if all(layer.map.shape) else f"layer {layer.index} is {_size(layer)}: there is nothing in it"


def mean_over_rows(layer: Layer, numbers: Array) -> Floats:
    """The mean of one number a row, 0 in rows that see nothing, which are left out of it.   (H, Q) -> (H,)"""
    xp = problem_of(layer).xp
    return floats(divided(xp, xp.sum(numbers, axis=-1), _seeing(layer)))


def _seeing(layer: Layer) -> Array:
    """How many queries may see anything.   -> (H,)"""
    problem = problem_of(layer)
    return problem.xp.sum(problem.xp.astype(layer.log_sum_exp() > -problem.xp.inf, problem.wide), axis=-1)


def _with_neighbour(layer: Layer, step: int) -> range:
    """The queries that have a key at `step` from their own place."""
    _, queries, keys = layer.map.shape
    shift = layer.map.offset + step
    first = max(0, -shift)
    return range(first, max(first, min(queries, keys - shift)))


def _diagonal(problem: Problem, rows: range, cols: range, lse: Array) -> Array:
    """The weight of each row on the column beside it in the list.   -> (H, R)"""
    xp = problem.xp
    scores = xp.linalg.diagonal(problem.scores(as_slice(rows), as_slice(cols)))
    return xp.exp(scores - subtractable(xp, lse))


def _size(layer: Layer) -> str:
    _, queries, keys = layer.map.shape
    return f"{queries} × {keys}, queries × keys"
