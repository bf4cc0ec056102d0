"""The formula in tiles (online softmax): O(n) extra memory, the same answer.

A row's sum is kept as (peak, total): Σ exp(score) = total·exp(peak). A new tile may raise the peak; what was summed
before then fades by exp(old peak − new peak). (Milakov and Gimelshein 2018; Dao et al. 2022.)
"""

# H query heads, Q queries, K keys, V value width; R rows and C columns of a tile

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence

import array_api_compat as compat

from .arrays import Array, Namespace, pick, widened
from .normalize import divided, log_of, softmax, subtractable
from .problem import Problem, grouped_matmul
from .threads import in_parallel

# A tile of 1024 × 512 float32 is 2 MiB: it stays in the cache, and Python's own time is lost in the time it takes.
ROWS = 1024
COLS = 512
TOGETHER = 2**24  # scores in a tile where all heads go at once, on libraries that spread the work themselves

BlockOf = Callable[..., tuple[Array, ...]]  # (problem, rows, buffer, **values) -> answers of (.., rows, anything)


def attend(problem: Problem, value: Array) -> Array:
    """The values, mixed by the weights.   (.., G, K, V) -> (.., H, Q, V)"""

    def mix(part: Problem, rows: range, buffer: Array | None, *, value: Array) -> tuple[Array]:
        _, sums = gather(part, rows, value, buffer)
        return (divided(part.xp, sums[..., :-1], sums[..., -1:]),)

    (mixed,) = by_blocks(problem, problem.shape[-2], mix, value=with_ones(problem.xp, value))
    return mixed


def weights(problem: Problem, rows: range) -> Array:
    """Some rows of the weights, with all their keys, made in blocks.   -> (.., H, R, K)"""

    def share(part: Problem, block: range, buffer: Array | None) -> tuple[Array]:
        return (normalized(part, shifted(block, rows.start)),)

    (whole,) = by_blocks(problem, len(rows), share)
    return whole


def normalized(problem: Problem, rows: range) -> Array:
    """The same, all at once."""
    scores = problem.scores(as_slice(rows))
    if problem.sinks is None:
        return softmax(scores)
    sinks = problem.xp.broadcast_to(problem.sinks, (*scores.shape[:-1], 1))
    return softmax(problem.xp.concat((scores, sinks), axis=-1))[..., :-1]


def log_sum_exp(problem: Problem, rows: range) -> Array:
    """log Σ exp(score) of some rows.   -> (.., H, R, 1)"""

    def sum_up(part: Problem, block: range, buffer: Array | None, *, ones: Array) -> tuple[Array]:
        peak, total = gather(part, shifted(block, rows.start), ones, buffer)
        return (log_of(part.xp, total) + subtractable(part.xp, peak),)

    (lse,) = by_blocks(
        problem, len(rows), sum_up, ones=with_ones(problem.xp, widened(problem.xp, problem.key[..., :0]))
    )
    return lse


def spoil(problem: Problem, value: Array, mixed: Array) -> Array:
    """`mixed`, which was made with zeros for the values that are not finite, with NaN and inf where they may be seen.

    0·NaN is NaN, so a product with masked values cannot tell what is masked; counting what may be seen can.
    """
    xp = problem.xp
    kinds = xp.concat((xp.isnan(value), value == xp.inf, value == -xp.inf), axis=-1)

    def count(part: Problem, rows: range, buffer: Array | None, *, kinds: Array) -> tuple[Array]:
        seen = zeros(part, len(rows), kinds.shape[-1])
        for cols, scores in tiles(part, rows, buffer):
            seen = seen + grouped_matmul(xp, xp.astype(scores != -xp.inf, scores.dtype), kinds[..., cols, :])
        return (seen,)

    (seen,) = by_blocks(problem, problem.shape[-2], count, kinds=xp.astype(kinds, problem.wide))
    width = value.shape[-1]
    nan, high, low = (seen[..., kind * width : (kind + 1) * width] > 0 for kind in range(3))
    mixed = xp.where(high, xp.inf, xp.where(low, -xp.inf, mixed))
    return xp.where(nan | (high & low), xp.nan, mixed)


def gather(problem: Problem, rows: range, value: Array, buffer: Array | None = None) -> tuple[Array, Array]:
    """Go through the keys that `rows` may look at, tile by tile, and sum exp(score − peak)·value.

    The last column of the values is ones, so the last sum is the total of the weights, at no pass of its own.
    -> peak (.., H, R, 1), sums (.., H, R, V)
    """
    peak, total = start(problem, len(rows))
    sums = problem.xp.concat((zeros(problem, len(rows), value.shape[-1] - 1), total), axis=-1)
    for cols, scores in tiles(problem, rows, buffer):
        peak, fade = raised(problem, peak, scores)
        powers = powers_of(problem, scores, peak, in_place=buffer is not None)
        sums = sums * fade + grouped_matmul(problem.xp, powers, value[..., cols, :])
    return peak, sums


def with_ones(xp: Namespace, value: Array) -> Array:
    """The values with a column of ones behind them, which sums up the weights that mix the others."""
    ones = xp.ones((*value.shape[:-1], 1), dtype=value.dtype, device=compat.device(value))
    return xp.concat((value, ones), axis=-1)


def start(problem: Problem, rows: int) -> tuple[Array, Array]:
    """Peak and total before the first tile: nothing, or the sink alone."""
    nothing = zeros(problem, rows, 1)
    if problem.sinks is None:
        return nothing - problem.xp.inf, nothing
    return nothing + problem.sinks, nothing + 1


def raised(problem: Problem, peak: Array, scores: Array) -> tuple[Array, Array]:
    """The peak with one more tile seen, and how much the sums made under the old one fade."""
    xp = problem.xp
    higher = xp.maximum(peak, xp.max(scores, axis=-1, keepdims=True))
    return higher, xp.exp(peak - subtractable(xp, higher))


def powers_of(problem: Problem, scores: Array, peak: Array, *, in_place: bool = False) -> Array:
    """exp(scores − peak); in place, the scores are gone afterwards."""
    xp, into = problem.xp, {"out": scores} if in_place else {}
    return xp.exp(xp.subtract(scores, subtractable(xp, peak), **into), **into)


def tiles(problem: Problem, rows: range, buffer: Array | None = None) -> Iterator[tuple[slice, Array]]:
    """The scores of `rows`, tile by tile, without the tiles that the mask rules out."""
    scaled = problem.scaled(as_slice(rows))
    for cols in blocks(problem.shape[-1], _width(problem, len(rows), buffer)):
        tile = rectangle(problem, rows, cols, buffer, scaled)
        if tile is not None:
            yield as_slice(cols), tile


def rectangle(
    problem: Problem, rows: range, cols: range, buffer: Array | None = None, scaled: Array | None = None
) -> Array | None:
    """The scores of one rectangle, in the buffer if there is one; None where the mask rules all of it out."""
    seen = problem.sees(rows, cols) if len(rows) else None
    if seen is False:
        return None
    out = None if buffer is None else buffer[: len(rows) * len(cols)].reshape(len(rows), len(cols))
    return problem.scores(as_slice(rows), as_slice(cols), masked=not seen, out=out, scaled=scaled)


def by_blocks(problem: Problem, size: int | Sequence[range], block_of: BlockOf, **values: Array) -> tuple[Array, ...]:
    """block_of(problem, block, buffer, **values) for blocks that make up range(size), joined along axis −2.

    In place of a size the blocks themselves may be given; what a block answers need not be as high as it is.

    On a CPU each head and block is a task of its own, with a buffer that is used again and again (fresh memory costs as
    much as the product that fills it): side by side in NumPy, which works on one core unless told otherwise, one after
    the other in PyTorch, which spreads each of them itself. Elsewhere, under autograd, and where a single head is too
    little for a task, all heads go at once.
    """
    if problem.shape[-2] * problem.shape[-1] >= ROWS * COLS // 8 and _may_use_buffers(problem, values):
        return _by_head_and_block(problem, size, block_of, values)
    parts = blocks(size, height_of_all(problem)) if isinstance(size, int) else size
    answers = [block_of(problem, block, None, **values) for block in parts]
    return tuple(problem.xp.concat(parts, axis=-2) for parts in zip(*answers, strict=True))


def height_of_all(problem: Problem) -> int:
    """Rows of a tile where all heads go at once."""
    return max(1, min(ROWS, TOGETHER // (COLS * max(1, math.prod(problem.shape[:-2])))))


def blocks(size: int, height: int | None = None) -> list[range]:
    """range(size) in pieces of `height`, a tile's unless given."""
    height = height or ROWS
    return [range(first, min(first + height, size)) for first in range(0, size, height)]


def zeros(problem: Problem, rows: int, width: int) -> Array:
    """(.., H, rows, width)"""
    shape = (*problem.shape[:-2], rows, width)
    return problem.xp.zeros(shape, dtype=problem.wide, device=compat.device(problem.query))


def shifted(numbers: range, by: int) -> range:
    """The same numbers, `by` further on."""
    return range(numbers.start + by, numbers.stop + by)


def as_slice(numbers: range) -> slice:
    """The slice that picks a range of rows or columns."""
    return slice(numbers.start, numbers.stop)


def _may_use_buffers(problem: Problem, values: dict[str, Array]) -> bool:
    """Whether results may be written over each other: autograd would look for them later."""
    if compat.is_numpy_namespace(problem.xp):
        return True
    arrays = (problem.query, problem.key, *values.values())
    return (
        compat.is_torch_array(problem.query)
        and problem.query.device.type == "cpu"
        and not any(array.requires_grad for array in arrays)
    )


def _by_head_and_block(
    problem: Problem, size: int | Sequence[range], block_of: BlockOf, values: dict[str, Array]
) -> tuple[Array, ...]:
    parts = blocks(size) if isinstance(size, int) else size
    heads = [
        (problem.item(index), {name: pick(array, index, problem.shape) for name, array in values.items()})
        for index in itertools.product(*map(range, problem.shape[:-2]))
    ]
    buffers = threading.local()

    def work(task: tuple[tuple[Problem, dict[str, Array]], range]) -> tuple[Array, ...]:
        (head, own_values), block = task
        if not hasattr(buffers, "own"):
            buffers.own = problem.xp.empty(ROWS * COLS, dtype=problem.wide)
        return block_of(head, block, buffers.own, **own_values)

    tasks = [(head, block) for head in heads for block in parts]
    answers = in_parallel(work, tasks) if compat.is_numpy_namespace(problem.xp) else [work(task) for task in tasks]
    joined = (problem.xp.concat(parts, axis=0) for parts in zip(*answers, strict=True))  # head after head
    return tuple(problem.xp.reshape(whole, (*problem.shape[:-2], -1, whole.shape[-1])) for whole in joined)


def _width(problem: Problem, rows: int, buffer: Array | None) -> int:
    """Columns of a tile: what the buffer holds, or what all heads can do at once; fewer if a mask may rule some out."""
    room = ROWS * COLS if buffer is not None else TOGETHER // max(1, math.prod(problem.shape[:-2]))
    width = room // max(1, rows)
    return max(COLS, width if problem.mask is None else min(width, 4 * COLS))
