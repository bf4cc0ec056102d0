"""What a mask is, and how masks combine."""

# i, j: row (query) and column (key) indices of the rectangle asked for, shaped (R, 1) and (1, C)

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...errors import DtypeError, ShapeError
from ..arrays import Array, Library, broadcast_shapes, is_array, namespace, pick, require_fits

Shape = tuple[int, ...]  # of the whole map: (.., Q, K)
Span = tuple[int, int]  # columns start:stop
HINTS = {
    2: " One of (batch, keys), as for padding, is masks.keys(mask).",
    3: " One of (batch, queries, keys) wants an axis for the heads: mask[:, None].",
}


class Mask:
    """Who may attend to whom. Subclasses say it for index arrays (`_allow`) and, where they can, for spans."""

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        raise NotImplementedError

    def lead(self) -> Shape:
        """The leading (batch) axes this mask speaks about, none when it is the same for every item."""
        return ()

    def item(self, index: tuple[int, ...], shape: Shape) -> "Mask":
        """The mask of one map alone, the one at `index` of the leading axes."""
        return self

    def reach(self, rows: range, shape: Shape) -> Span:
        """Columns outside which none of `rows` may look; what lies beyond need not be computed."""
        return (0, shape[-1])

    def clear(self, rows: range, shape: Shape) -> Span:
        """Columns in which all of `rows` may look everywhere; there the mask need not be applied."""
        return (0, 0)

    def tile(self, rows: slice, cols: slice, shape: Shape, *, like: Array | None = None) -> Array:
        """The rectangle (rows, cols) of a map of `shape` (.., Q, K): booleans that broadcast to (.., rows, cols).

        The answer is an array of the library and on the device of `like` (NumPy when there is none).
        """
        library = Library.of(like)
        i, j = (library.arange(*index.indices(size)) for index, size in zip((rows, cols), shape[-2:], strict=True))
        return self._allow(i[:, None], j[None, :], shape, library)

    def dense(self, n_q: int, n_k: int | None = None, *, like: Array | None = None) -> Array:
        """The whole map as booleans, (.., Q, K), for people who want to see it."""
        like = next(self.arrays(), None) if like is None else like
        shape = (*self.lead(), n_q, n_q if n_k is None else n_k)
        return Library.of(like).xp.broadcast_to(self.tile(slice(None), slice(None), shape, like=like), shape)

    def arrays(self) -> Iterator[Array]:
        """The arrays it is made of, all of one library."""
        for part in vars(self).values():
            if isinstance(part, Mask):
                yield from part.arrays()
            elif is_array(part):
                yield part

    def additive(self, n_q: int, n_k: int | None = None, *, like: Array | None = None) -> Array:
        """The whole map as numbers to add to the scores: 0 = may attend, −inf = may not."""
        allowed = self.dense(n_q, n_k, like=like)
        xp = namespace(allowed=allowed)
        zeros = xp.astype(xp.zeros_like(allowed), xp.asarray(0.0).dtype)
        return xp.where(allowed, zeros, -xp.inf)

    def binary(self, n_q: int, n_k: int | None = None, *, like: Array | None = None) -> Array:
        """The whole map as numbers: 1 = may attend, 0 = may not."""
        allowed = self.dense(n_q, n_k, like=like)
        xp = namespace(allowed=allowed)
        return xp.astype(allowed, xp.asarray(0).dtype)

    def __and__(self, other: "Mask | Array") -> "Mask":
        return Both(self, as_mask(other))

    def __or__(self, other: "Mask | Array") -> "Mask":
        return Either(self, as_mask(other))

    def __invert__(self) -> "Mask":
        return Not(self)

    __rand__, __ror__ = __and__, __or__
    __array_ufunc__ = None  # so that numpy_array & mask comes to __rand__ instead of an array of objects


@dataclass(frozen=True, eq=False)
class Given(Mask):
    allowed: Array

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        require_fits("mask", self.allowed.shape, shape, "map (.., queries, keys)", HINTS.get(self.allowed.ndim, ""))
        tile = self.allowed[(None,) * max(2 - self.allowed.ndim, 0) + (...,)]
        for axis, index in ((-1, j[0, :]), (-2, i[:, 0])):
            if tile.shape[axis] != 1:
                tile = library.xp.take(tile, index, axis=axis)
        return tile

    def lead(self) -> Shape:
        return tuple(self.allowed.shape[:-2])

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        return Given(pick(self.allowed, index, shape))


@dataclass(frozen=True, eq=False)
class Both(Mask):
    one: Mask
    other: Mask

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        return self.one._allow(i, j, shape, library) & self.other._allow(i, j, shape, library)

    def lead(self) -> Shape:
        return joined(self.one.lead(), self.other.lead())

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        return Both(self.one.item(index, shape), self.other.item(index, shape))

    def reach(self, rows: range, shape: Shape) -> Span:
        return common(self.one.reach(rows, shape), self.other.reach(rows, shape))

    def clear(self, rows: range, shape: Shape) -> Span:
        return common(self.one.clear(rows, shape), self.other.clear(rows, shape))


@dataclass(frozen=True, eq=False)
class Either(Mask):
    one: Mask
    other: Mask

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        return self.one._allow(i, j, shape, library) | self.other._allow(i, j, shape, library)

    def lead(self) -> Shape:
        return joined(self.one.lead(), self.other.lead())

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        return Either(self.one.item(index, shape), self.other.item(index, shape))

    def reach(self, rows: range, shape: Shape) -> Span:
        (start, stop), (first, last) = self.one.reach(rows, shape), self.other.reach(rows, shape)
        return (min(start, first), max(stop, last))

    def clear(self, rows: range, shape: Shape) -> Span:
        spans = self.one.clear(rows, shape), self.other.clear(rows, shape)
        return max(spans, key=lambda span: span[1] - span[0])


@dataclass(frozen=True, eq=False)
class Not(Mask):
    one: Mask

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        return ~self.one._allow(i, j, shape, library)

    def lead(self) -> Shape:
        return self.one.lead()

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        return Not(self.one.item(index, shape))


def as_mask(mask: Any) -> Mask:
    """A mask object as it is; a boolean array as one."""
    return mask if isinstance(mask, Mask) else Given(booleans(mask, "mask"))


def booleans(array: Array, name: str) -> Array:
    """`array` itself, if it is boolean."""
    xp = namespace(**{name: array})
    if not xp.isdtype(array.dtype, "bool"):
        raise DtypeError(
            f"{name} has dtype {array.dtype}; a mask is boolean, True = may attend. "
            f"If 1 and 0 were meant: masks.from_binary({name}); if 0 and −inf: masks.from_additive({name}). "
            "Numbers to be added to the scores go to bias=."
        )
    return array


def joined(one: Shape, other: Shape) -> Shape:
    """Two sets of leading axes as one, the first axes matched with each other."""
    rank = max(len(one), len(other))
    shapes = ((*shape, *(1,) * (rank - len(shape))) for shape in (one, other))
    together = broadcast_shapes(*shapes)
    if together is None:
        raise ShapeError(f"two masks for batches of {tuple(one)} and {tuple(other)} cannot be combined.")
    return together


def common(one: Span, other: Span) -> Span:
    """The columns in both."""
    start = max(one[0], other[0])
    return start, max(start, min(one[1], other[1]))
