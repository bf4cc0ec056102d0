"""What a mask is, and how masks combine."""

# i, j: row (query) and column (key) indices of the rectangle asked for, shaped (R, 1) and (1, C)

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...errors import DtypeError, ShapeError
from ..arrays import Array, Library, broadcast_shapes, is_array, namespace, pick, require_fits

Shape = tuple[int, ...]  # of the whole map: (.., Q, K)
HINTS = {
    2: " One of (batch, keys), as for padding, is masks.keys(mask).",
    3: " One of (batch, queries, keys) wants an axis for the heads: mask[:, None].",
}


class Mask:
    """Who may attend to whom. Subclasses say it for index arrays (`_allow`) and, where they can, for whole tiles."""

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        raise NotImplementedError

    def lead(self) -> Shape:
        """The leading (batch) axes this mask speaks about, none when it is the same for every item."""
        return ()

    def item(self, index: tuple[int, ...], shape: Shape) -> "Mask":
        """The mask of one map alone, the one at `index` of the leading axes."""
        return self

    def sees(self, rows: range, cols: range, shape: Shape) -> bool | None:
        """Whether all of these rows see all of these columns (True), none sees any (False), or it depends (None).

        Where it is False the scores need not be computed, where it is True the mask need not be applied.
        """
        return None

    def tile(self, rows: slice, cols: slice, shape: Shape, *, like: Array | None = None) -> Array:
        """The rectangle (rows, cols) of a map of `shape` (.., Q, K): booleans that broadcast to (.., rows, cols).

        The answer is an array of the library and on the device of `like` (NumPy when there is none).
        """
        library = Library.of(like)
        i, j = (library.arange(*index.indices(size)) for index, size in zip((rows, cols), shape[-2:], strict=True))
        return self._allow(i[:, None], j[None, :], shape, library)

    def dense(self, *sizes: int, like: Array | None = None) -> Array:
        """The whole map as booleans, for people who want to see it.

        sizes: n; or n_q, n_k; or all axes of the map, as in (batch, heads, n_q, n_k), which is the form that goes in
        again. Without the leading ones, a mask that differs from item to item has those it speaks about.
        """
        like = next(self.arrays(), None) if like is None else like
        shape = sizes if len(sizes) > 2 else (*self.lead(), sizes[0], sizes[-1])
        return Library.of(like).xp.broadcast_to(self.tile(slice(None), slice(None), shape, like=like), shape)

    def arrays(self) -> Iterator[Array]:
        """The arrays it is made of, all of one library."""
        for part in vars(self).values():
            if isinstance(part, Mask):
                yield from part.arrays()
            elif is_array(part):
                yield part

    def additive(self, *sizes: int, like: Array | None = None) -> Array:
        """The whole map as numbers to add to the scores: 0 = may attend, −inf = may not."""
        allowed = self.dense(*sizes, like=like)
        xp = namespace(allowed=allowed)
        zeros = xp.astype(xp.zeros_like(allowed), xp.asarray(0.0).dtype)
        return xp.where(allowed, zeros, -xp.inf)

    def binary(self, *sizes: int, like: Array | None = None) -> Array:
        """The whole map as numbers: 1 = may attend, 0 = may not."""
        allowed = self.dense(*sizes, like=like)
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

    def tile(self, rows: slice, cols: slice, shape: Shape, *, like: Array | None = None) -> Array:
        require_fits("mask", self.allowed.shape, shape, "map (.., queries, keys)", HINTS.get(self.allowed.ndim, ""))
        tile = self.allowed[(None,) * max(2 - self.allowed.ndim, 0) + (...,)]
        tile = tile if tile.shape[-1] == 1 else tile[..., cols]
        return tile if tile.shape[-2] == 1 else tile[..., rows, :]

    def lead(self) -> Shape:
        return tuple(self.allowed.shape[:-2])

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        return Given(pick(self.allowed, index, shape))


@dataclass(frozen=True, eq=False)
class Both(Mask):
    one: Mask
    other: Mask

    def tile(self, rows: slice, cols: slice, shape: Shape, *, like: Array | None = None) -> Array:
        return self.one.tile(rows, cols, shape, like=like) & self.other.tile(rows, cols, shape, like=like)

    def lead(self) -> Shape:
        return joined(self.one.lead(), self.other.lead())

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        return Both(self.one.item(index, shape), self.other.item(index, shape))

    def sees(self, rows: range, cols: range, shape: Shape) -> bool | None:
        answers = self.one.sees(rows, cols, shape), self.other.sees(rows, cols, shape)
        return False if False in answers else None if None in answers else True


@dataclass(frozen=True, eq=False)
class Either(Mask):
    one: Mask
    other: Mask

    def tile(self, rows: slice, cols: slice, shape: Shape, *, like: Array | None = None) -> Array:
        return self.one.tile(rows, cols, shape, like=like) | self.other.tile(rows, cols, shape, like=like)

    def lead(self) -> Shape:
        return joined(self.one.lead(), self.other.lead())

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        return Either(self.one.item(index, shape), self.other.item(index, shape))

    def sees(self, rows: range, cols: range, shape: Shape) -> bool | None:
        answers = self.one.sees(rows, cols, shape), self.other.sees(rows, cols, shape)
        return True if True in answers else None if None in answers else False


@dataclass(frozen=True, eq=False)
class Not(Mask):
    one: Mask

    def tile(self, rows: slice, cols: slice, shape: Shape, *, like: Array | None = None) -> Array:
        return ~self.one.tile(rows, cols, shape, like=like)

    def lead(self) -> Shape:
        return self.one.lead()

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        return Not(self.one.item(index, shape))

    def sees(self, rows: range, cols: range, shape: Shape) -> bool | None:
        seen = self.one.sees(rows, cols, shape)
        return None if seen is None else not seen


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
