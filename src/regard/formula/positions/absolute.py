"""Positions that are added to the token vectors: sinusoidal and learned."""

from ...errors import OptionError, ShapeError
from ..arrays import Array, Library, namespace
from .rotary import angles


def sinusoidal(n: int, width: int, *, start: int = 0, base: float = 10000.0, like: Array | None = None) -> Array:
    """sin in the even columns, cos in the odd ones, of place / base^(2i/width).   -> (n, width)

    Vaswani et al. 2017, section 3.5. The answer is of the library of `like` (NumPy, float64, when there is none).
    """
    if n < 0 or width < 1:
        raise OptionError(
            f"sinusoidal positions for {n} tokens of width {width}; give 0 or more tokens and a width of 1 or more."
        )
    library = Library.of(like)
    pairs = (width + 1) // 2  # of an odd width the last cos is left out
    cos, sin = angles(library.arange(start, start + n), [base ** (-2 * pair / width) for pair in range(pairs)])
    pairs = library.xp.reshape(library.xp.stack((sin, cos), axis=-1), (n, 2 * pairs))[:, :width]
    return pairs if like is None else library.xp.astype(pairs, like.dtype)


def learned(table: Array, n: int, *, start: int = 0) -> Array:
    """The rows of a learned table for `n` tokens from `start` on.   (places, width) -> (n, width)"""
    namespace(table=table)
    if n < 0 or start < 0 or start + n > table.shape[0]:
        raise ShapeError(
            f"places {start} to {start + n - 1} are asked for, and the table was learned for {table.shape[0]} "
            f"(0 to {table.shape[0] - 1}). Cut the text, or use positions that extrapolate."
        )
    return table[start : start + n, ...]
