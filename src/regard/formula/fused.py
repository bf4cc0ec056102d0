"""A library's own attention kernel, where it gives the formula's answer: PyTorch's scaled_dot_product_attention.

The library is found from the array, never imported.
"""

# B batch, H query heads, G key heads, Q queries, K keys, D width

import math
import sys
from typing import Any

import array_api_compat as compat

from .arrays import Array, Namespace, broadcast_shapes, largest, widened
from .masks.mask import Given as GivenMask
from .masks.mask import Mask
from .masks.places import Causal
from .positions.bias import Bias
from .positions.bias import Given as GivenBias
from .problem import WORTH_HOLDING, Problem

DENSE_AT_MOST = 2**24  # numbers of a mask or bias written out for the kernel, which knows causal and arrays only


def attend(problem: Problem, value: Array) -> Array | None:
    """The mixed values, or None where the kernel would answer something else, or hold the whole map to do so."""
    if not compat.is_torch_array(problem.query) or problem.softcap is not None or problem.sinks is not None:
        return None
    if value.shape[-1] != problem.query.shape[-1] or 0 in (*problem.shape, *value.shape):
        return None
    if value.dtype == problem.xp.float32 and value.device.type != "cpu" and math.prod(problem.shape) <= WORTH_HOLDING:
        return None  # On a GPU its exponentials are rough, which shows in float32; a small map costs little.
    heads, key_heads, value_heads = (_heads(shape) for shape in (problem.shape, problem.key.shape, value.shape))
    if key_heads != value_heads or broadcast_shapes(problem.shape[:-3], value.shape[:-3]) != problem.shape[:-3]:
        return None
    if (problem.mask is not None or problem.bias is not None) and not _has_finite_scores(problem):
        return None  # The kernel adds −inf to masked scores, and NaN − inf and inf − inf are NaN.
    query, key, value = _precise_enough(problem, value)
    shaping = _shaping(problem, query.dtype)
    if shaping is None:
        return None
    kernel = sys.modules["torch"].nn.functional.scaled_dot_product_attention
    mixed = kernel(
        _four_axes(query, problem.shape, heads),
        _four_axes(key, problem.shape, key_heads),
        _four_axes(value, problem.shape, key_heads),
        scale=problem.scale,
        enable_gqa=heads != key_heads,
        **shaping,
    )
    if "attn_mask" in shaping and mixed.device.type != "cpu":
        mixed = _zero_where_nothing_is_seen(problem.xp, mixed, shaping["attn_mask"])
    return problem.xp.reshape(mixed, (*problem.shape[:-1], value.shape[-1]))


def _zero_where_nothing_is_seen(xp: Namespace, mixed: Array, mask: Array) -> Array:
    """On a GPU some of PyTorch's kernels give the mean of the values to a row that may attend to nothing."""
    seen = mask if xp.isdtype(mask.dtype, "bool") else mask != -xp.inf
    return xp.where(xp.any(seen, axis=-1, keepdims=True), mixed, 0.0)


def _precise_enough(problem: Problem, value: Array) -> list[Array]:
    """On a CPU the half-precision kernel is no faster than the float32 one, and it rounds the weights on the way."""
    arrays = [problem.query, problem.key, value]
    return [widened(problem.xp, array) for array in arrays] if value.device.type == "cpu" else arrays


def _shaping(problem: Problem, dtype: Any) -> dict[str, Any] | None:
    """Mask and bias as the kernel takes them, or None where that would be an array of n×n that nobody has yet."""
    mask, bias, shape = problem.mask, problem.bias, problem.shape
    if mask is None and bias is None:
        return {}
    if bias is None and mask_is_triangular(mask, shape):
        return {"is_causal": True}
    xp, everything = problem.xp, slice(None)
    if any(_size_when_dense(part, problem) > DENSE_AT_MOST for part in (mask, bias)):
        return None
    shaping: Array = (
        None if bias is None else xp.astype(bias.tile(everything, everything, shape, like=problem.query), dtype)
    )
    if mask is not None:
        allowed = mask.tile(everything, everything, shape, like=problem.query)
        shaping = allowed if shaping is None else xp.where(allowed, shaping, -xp.inf)
    return {"attn_mask": _four_axes(shaping, shape, _heads(shaping.shape))}


def _has_finite_scores(problem: Problem) -> bool:
    """Whether no score can overflow, whatever masked keys hold."""
    sizes = [largest(problem.xp, array) for array in (problem.query, problem.key)]
    known = [size for size in sizes if size is not None]
    highest = math.prod(known) * float(problem.query.shape[-1]) * max(abs(problem.scale), 1.0)
    return len(known) == len(sizes) and highest < 1e38


def _size_when_dense(part: Mask | Bias | None, problem: Problem) -> int:
    """How many numbers would have to be written out for the kernel; none where they stand there already."""
    if part is None or isinstance(part, GivenMask | GivenBias):
        return 0
    one = part.tile(slice(0, 1), slice(0, 1), problem.shape, like=problem.query)
    return int(math.prod(one.shape[:-2])) * problem.shape[-2] * problem.shape[-1]


def mask_is_triangular(mask: Any, shape: tuple[int, ...]) -> bool:
    """Whether a mask is the one that kernels know by name: causal, with as many queries as keys."""
    square = isinstance(mask, Causal) and shape[-2] == shape[-1]
    return square and (mask.offset is None or (isinstance(mask.offset, int) and mask.offset == 0))


def _four_axes(array: Array, shape: tuple[int, ...], heads: int) -> Array:
    """(.., heads, N, D) → (B, heads, N, D), the batch axes of the map flattened into one."""
    return array.expand(*shape[:-3], heads, *array.shape[-2:]).reshape(-1, heads, *array.shape[-2:])


def _heads(shape: tuple[int, ...]) -> int:
    return shape[-3] if len(shape) > 2 else 1
