"""Heads taken apart and joined again, and masks laid over them: what the NumPy and PyTorch lessons share."""

# B batch, H heads, N tokens, Q queries, K keys, D width of a head

import operator
from typing import Any

import numpy as np

from ..errors import OptionError, ShapeError
from ..formula.arrays import Array, broadcast_shapes

Shape = tuple[int, ...]


def whole_number(number: Any, name: str, least: int) -> int:
    """`number` as an int, where it is one and not too small."""
    try:
        whole = operator.index(number)
    except TypeError:
        whole = least - 1
    if whole < least or isinstance(number, bool):
        raise OptionError(f"{name} is {number!r}; it must be a whole number, {least} or more.")
    return whole


def head_width(d_model: int, num_heads: int) -> int:
    """d_k: the width that each head has for itself."""
    d_model, num_heads = whole_number(d_model, "d_model", 1), whole_number(num_heads, "num_heads", 1)
    if d_model % num_heads:
        fitting = ", ".join(str(heads) for heads in range(1, d_model + 1) if d_model % heads == 0)
        raise OptionError(f"{num_heads} heads do not divide d_model {d_model}; {fitting} would.")
    return d_model // num_heads


def split(x: Array, num_heads: int) -> Array:
    """The width cut into heads.   (.., N, H·D) -> (.., H, N, D)"""
    return x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads).swapaxes(-2, -3)


def join(heads: Array) -> Array:
    """The heads side by side again.   (.., H, N, D) -> (.., N, H·D)"""
    *lead, count, tokens, width = heads.shape
    return heads.swapaxes(-2, -3).reshape(*lead, tokens, count * width)


def alike(q: Any, batch: Array) -> Array:
    """`batch` without its first axis where `q`, one sentence, came without it."""
    return batch if np.ndim(q) > 2 else batch[0]


def require_sentences(d_model: int, **arrays: Array) -> None:
    """All must be one sentence each, (N, d_model), or all a batch of them, (B, N, d_model)."""
    for name, x in arrays.items():
        if x.ndim not in (2, 3) or x.shape[-1] != d_model:
            raise ShapeError(
                f"{name} has shape {tuple(x.shape)}; it must be (tokens, {d_model}) or (batch, tokens, {d_model}), "
                f"where {d_model} is d_model."
            )
    if len({x.ndim for x in arrays.values()}) > 1:
        shapes = " and ".join(f"{name} {tuple(x.shape)}" for name, x in arrays.items())
        raise ShapeError(f"{shapes}: some have a batch axis and some have not; give it to all or to none.")
    require_same_batch(**arrays)


def require_products(x: Array, **matrices: Array) -> None:
    """X @ W must be a product for each of the matrices: (.., N, A) with (A, D)."""
    if x.ndim < 2:
        raise ShapeError(f"X has shape {tuple(x.shape)}; it must be (.., tokens, width).")
    for name, matrix in matrices.items():
        if matrix.ndim != 2 or matrix.shape[0] != x.shape[-1]:
            raise ShapeError(
                f"X {tuple(x.shape)} @ {name} {tuple(matrix.shape)} is no product; "
                f"{name} must be ({x.shape[-1]}, width)."
            )


def require_same_batch(**arrays: Array) -> None:
    """Leading axes must be equal or 1. The formula would take fewer keys than queries for heads that share them."""
    if broadcast_shapes(*(tuple(array.shape[:-2]) for array in arrays.values())) is None:
        shapes = " and ".join(f"{name} {tuple(array.shape)}" for name, array in arrays.items())
        raise ShapeError(f"{shapes} differ in their batch; all axes before the last two must be equal, or 1.")


def lay(mask: Array, shape: Shape) -> Array:
    """`mask` with the axes it lacks, or has too many of, so that it broadcasts over a map of `shape`.

    (K), (Q, K): for every item of the batch and every head. (B, Q or 1, K): for every head. (B, H or 1, Q or 1, K).
    A plain broadcast would take the batch of a three-axis mask for heads.
    """
    laid = mask
    while 2 < laid.ndim < len(shape):
        laid = laid[:, None]
    while laid.ndim > len(shape) and laid.shape[-3] == 1:
        laid = laid.reshape(*laid.shape[:-3], *laid.shape[-2:])
    if broadcast_shapes(tuple(laid.shape), shape) != shape:
        hint = "a mask with one row an item is (batch, 1, keys)" if mask.ndim == 2 else "its first axis is the batch"
        raise ShapeError(f"mask has shape {tuple(mask.shape)}, which does not fit the map {shape}; {hint}.")
    return laid
