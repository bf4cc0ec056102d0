"""Masks that follow from the tokens themselves: padding, segments, and any boolean array."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ...errors import DtypeError, OptionError, ShapeError
from ..arrays import Array, Library, known, namespace
from .mask import Given, Mask, Shape, booleans, joined


def padding(lengths: Array | Sequence[int] | int) -> Mask:
    """Keys from `lengths` on are padding. lengths: (batch..), or one for all"""
    return Padding(lengths if isinstance(lengths, int) else whole_numbers(lengths, "lengths"))


def padding_of_ids(ids: Array, pad_token: int = 0) -> Mask:
    """Keys whose token is the pad token are padding. ids: (batch.., K)"""
    whole_numbers(ids, "ids")
    try:
        return Keys(ids != operator.index(pad_token))
    except TypeError:
        pass
    raise OptionError(f"pad_token is {pad_token!r}; it must be a whole number. Without one, see masks.padding.")


def keys(keep: Array) -> Mask:
    """Keys may be attended to where `keep` is True, by every query. keep: (batch.., K) booleans"""
    return Keys(booleans(keep, "keep"))


def segments(query_ids: Array, key_ids: Array | None = None) -> Mask:
    """Packed documents: a query sees the keys of its own segment. ids: (batch.., Q) and (batch.., K)"""
    key_ids = query_ids if key_ids is None else key_ids
    namespace(query_ids=query_ids, key_ids=key_ids)
    return Segments(query_ids, key_ids)


def given(allowed: Array) -> Mask:
    """A boolean array that broadcasts to (.., Q, K), True = may attend."""
    return Given(booleans(allowed, "mask"))


def from_binary(mask: Array) -> Mask:
    """A mask written as 1 = may attend, 0 = may not."""
    xp = namespace(mask=mask)
    if xp.isdtype(mask.dtype, "bool"):
        return Given(mask)
    if known(xp.all((mask == 0) | (mask == 1))) is False:
        raise DtypeError(
            "a 0/1 mask holds only 0 and 1, and this one other numbers; see masks.from_additive and bias=."
        )
    return Given(mask == 1)


def from_additive(mask: Array, never: float = -float("inf")) -> Mask:
    """A mask written to be added to scores: 0 = may attend, −inf (or anything down to `never`) = may not."""
    xp = namespace(mask=mask)
    if known(xp.all((mask == 0) | (mask <= never))) is False:
        raise DtypeError(
            f"an additive mask holds only 0 and numbers down to {never}, and this one others. "
            "If they stand for «never», say from which number on: from_additive(mask, never=-1e4); "
            "if they are meant as they are, give the array as bias=."
        )
    return Given(mask == 0)


@dataclass(frozen=True, eq=False)
class Padding(Mask):
    lengths: Array | tuple[int, ...] | int

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        if isinstance(self.lengths, int):
            return j < self.lengths
        lengths = library.asarray(self.lengths, dtype=j.dtype) if isinstance(self.lengths, tuple) else self.lengths
        return j < over_heads(lengths[..., None, None], shape, "lengths")

    def lead(self) -> Shape:
        if isinstance(self.lengths, int):
            return ()
        return (len(self.lengths),) if isinstance(self.lengths, tuple) else tuple(self.lengths.shape)

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        if isinstance(self.lengths, int):
            return self
        if isinstance(self.lengths, tuple):
            return Padding(self.lengths[index[0] % len(self.lengths)])  # 1 length serves every item
        return Padding(at_item(self.lengths, index, kept=0))

    @cached_property
    def ends(self) -> tuple[int, int] | None:
        """The shortest and the longest length, once for all tiles: on a GPU it is waited for."""
        return extremes(self.lengths)

    def sees(self, rows: range, cols: range, shape: Shape) -> bool | None:
        if self.ends is None:
            return None
        shortest, longest = self.ends
        return True if cols.stop <= shortest else False if cols.start >= longest else None


@dataclass(frozen=True, eq=False)
class Keys(Mask):
    keep: Array

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        if self.keep.shape[-1] != shape[-1]:
            raise ShapeError(f"the mask speaks of {self.keep.shape[-1]} keys and there are {shape[-1]}.")
        chosen = library.xp.take(self.keep, j[0, :], axis=-1)
        return over_heads(chosen[..., None, :], shape, "the padding mask")

    def lead(self) -> Shape:
        return tuple(self.keep.shape[:-1])

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        return Keys(at_item(self.keep, index, kept=1))


@dataclass(frozen=True, eq=False)
class Segments(Mask):
    query_ids: Array
    key_ids: Array

    def _allow(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        sizes = (self.query_ids.shape[-1], self.key_ids.shape[-1])
        if sizes != shape[-2:]:
            raise ShapeError(f"the segments speak of {sizes} queries and keys and there are {shape[-2:]}.")
        mine = library.xp.take(self.query_ids, i[:, 0], axis=-1)[..., :, None]
        theirs = library.xp.take(self.key_ids, j[0, :], axis=-1)[..., None, :]
        return over_heads(mine, shape, "segments") == over_heads(theirs, shape, "segments")

    def lead(self) -> Shape:
        return joined(tuple(self.query_ids.shape[:-1]), tuple(self.key_ids.shape[:-1]))

    def item(self, index: tuple[int, ...], shape: Shape) -> Mask:
        return Segments(at_item(self.query_ids, index, kept=1), at_item(self.key_ids, index, kept=1))


def over_heads(array: Array, shape: Shape, name: str) -> Array:
    """(batch.., R, C) → (batch.., 1.., R, C): batch axes are the map's first ones, whatever lies between (heads)."""
    batch, room = tuple(array.shape[:-2]), len(shape) - 2
    if len(batch) > room or any(size not in (1, whole) for size, whole in zip(batch, shape, strict=False)):
        raise ShapeError(f"{name} has batch axes {batch}, which are not the first axes of the map {tuple(shape)}.")
    return array[(slice(None),) * len(batch) + (None,) * (room - len(batch)) + (...,)]


def at_item(array: Array, index: tuple[int, ...], *, kept: int) -> Array:
    """The last `kept` axes of `array` for one item; its other axes are the map's first ones, 1 serving every item."""
    lead = array.shape[: array.ndim - kept]
    return array[(*(at if size != 1 else 0 for size, at in zip(lead, index, strict=False)), ...)]


def extremes(numbers: int | Array | tuple[int, ...]) -> tuple[int, int] | None:
    """The smallest and largest of some whole numbers; None where there are none, or they cannot be looked at."""
    if isinstance(numbers, int):
        return numbers, numbers
    if isinstance(numbers, tuple):
        return (min(numbers), max(numbers)) if numbers else None
    xp = namespace(numbers=numbers)
    if 0 in numbers.shape or known(xp.max(numbers) == 0) is None:
        return None
    return int(xp.min(numbers)), int(xp.max(numbers))


def whole_numbers(numbers: Array | Sequence[int], name: str) -> Array | tuple[int, ...]:
    """Some whole numbers: a sequence as a tuple, an array as it is."""
    if isinstance(numbers, Sequence) and not isinstance(numbers, str):
        try:
            return tuple(operator.index(number) for number in numbers)
        except TypeError:
            raise DtypeError(f"{name} are {list(numbers)}; they must be whole numbers.") from None
    xp = namespace(**{name: numbers})
    if not xp.isdtype(numbers.dtype, "integral"):
        raise DtypeError(f"{name} has dtype {numbers.dtype}; it must hold whole numbers.")
    return numbers
