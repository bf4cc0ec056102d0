"""scores → weights: softmax and log-sum-exp along one axis."""

from ..errors import ShapeError
from .arrays import Array, Namespace, floating, namespace, widened

__all__ = ["log_sum_exp", "softmax"]


def softmax(x: Array, axis: int = -1) -> Array:
    """exp(x) / Σ exp(x) along `axis`.

    Each slice has its own maximum subtracted, so nothing overflows. A slice that is −inf throughout
    (nothing may be attended to) gives zeros, not NaN.
    """
    xp, x = _checked(x, axis)
    wide = widened(xp, x)
    powers = xp.exp(wide - peak_of(xp, wide, axis))
    return xp.astype(divided(xp, powers, xp.sum(powers, axis=axis, keepdims=True)), x.dtype, copy=False)


def log_sum_exp(x: Array, axis: int = -1) -> Array:
    """log Σ exp(x) along `axis`, which it removes. Nothing to sum over gives −inf."""
    xp, x = _checked(x, axis)
    wide = widened(xp, x)
    peak = peak_of(xp, wide, axis)
    total = xp.sum(xp.exp(wide - peak), axis=axis, keepdims=True)
    return xp.astype(xp.squeeze(log_of(xp, total) + peak, axis=axis), x.dtype, copy=False)


def peak_of(xp: Namespace, x: Array, axis: int) -> Array:
    """The maximum along `axis`, kept as an axis of 1; 0 where it is infinite, since ∞ − ∞ is NaN."""
    if x.shape[axis] == 0:
        return xp.sum(x, axis=axis, keepdims=True)
    peak = xp.max(x, axis=axis, keepdims=True)
    return xp.where(xp.isfinite(peak), peak, 0.0)


def subtractable(xp: Namespace, peak: Array) -> Array:
    """`peak`, with 0 where it is −inf and so nothing is there to be subtracted from."""
    return xp.where(peak == -xp.inf, 0.0, peak)


def divided(xp: Namespace, part: Array, total: Array) -> Array:
    """part / total, and 0 where the total is 0."""
    return part / xp.where(total == 0, 1.0, total)


def log_of(xp: Namespace, total: Array) -> Array:
    """log(total), with −inf for 0 and no warning about it."""
    nothing = total == 0
    return xp.where(nothing, -xp.inf, xp.log(xp.where(nothing, 1.0, total)))


def _checked(x: Array, axis: int) -> tuple[Namespace, Array]:
    xp = namespace(x=x)
    if isinstance(axis, bool) or not isinstance(axis, int) or not -x.ndim <= axis < x.ndim:
        raise ShapeError(f"axis {axis!r} does not exist in x of shape {tuple(x.shape)}.")
    return xp, floating(xp, x)
