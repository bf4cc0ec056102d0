"""What is added to the scores: any array, or numbers that follow from the distance (ALiBi, T5).

Like a mask, a bias answers for any rectangle of the map and is never n×n itself unless it was given so.
"""

# i, j: row (query) and column (key) indices of the rectangle asked for, shaped (R, 1) and (1, C)

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...errors import DtypeError, OptionError, ShapeError
from ..arrays import Array, Library, is_array, is_real_floating, namespace, pick, require_fits, wide_dtype

Shape = tuple[int, ...]  # of the whole map: (.., H, Q, K)


class Bias:
    """Numbers to add to the scores of any rectangle of the map."""

    def tile(self, rows: slice, cols: slice, shape: Shape, *, like: Array) -> Array:
        """The rectangle (rows, cols) of a map of `shape`: numbers that broadcast to (.., H, rows, cols)."""
        library = Library.of(like)
        i, j = (library.arange(*index.indices(size)) for index, size in zip((rows, cols), shape[-2:], strict=True))
        return self._add(i[:, None], j[None, :], shape, library)

    def _add(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        raise NotImplementedError

    def item(self, index: tuple[int, ...], shape: Shape) -> "Bias":
        """The bias of one map alone, the one at `index` of the leading axes."""
        raise NotImplementedError

    def arrays(self) -> Iterator[Array]:
        """The arrays it is made of, all of one library."""
        return (part for part in vars(self).values() if is_array(part))


def as_bias(bias: Any) -> Bias:
    """A bias object as it is; an array of numbers as one."""
    if isinstance(bias, Bias):
        return bias
    xp = namespace(bias=bias)
    if not is_real_floating(xp, bias.dtype):
        raise DtypeError(
            f"bias has dtype {bias.dtype}; it is added to the scores, so it must be floating. Booleans go to mask=."
        )
    return Given(bias)


def alibi_slopes(heads: int) -> list[float]:
    """How steeply each head forgets with distance (Press et al. 2022): 2^(−8/H), 2^(−16/H), …

    Where the heads are no power of two, the slopes of the next smaller power come first, and between them every
    other slope of the next larger one.
    """
    if not isinstance(heads, int) or heads < 1:
        raise OptionError(f"ALiBi slopes for {heads!r} heads; there must be at least one.")
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    return slopes + [2 ** (-4 * (2 * head + 1) / power) for head in range(heads - power)]


def alibi(heads: int, offset: int | None = None) -> Bias:
    """−slope × distance, head by head. Without an offset the last query stands at the last key."""
    return Alibi(tuple(alibi_slopes(heads)), _whole(offset))


def t5_buckets(distance: Array, *, both_ways: bool, buckets: int = 32, farthest: int = 128) -> Array:
    """Which row of T5's table a distance (key − query) belongs to (Raffel et al. 2020): exact when near, then in
    steps that grow as the logarithm. Both ways: half of the rows for keys that come later."""
    xp = namespace(distance=distance)
    rows = buckets // 2 if both_ways else buckets
    if rows < 2 or farthest <= rows // 2:
        raise OptionError(
            f"{buckets} buckets for distances up to {farthest}{', both ways' if both_ways else ''}: there must be at "
            f"least {4 if both_ways else 2}, and distances beyond the {rows // 2} that are counted one by one."
        )
    later = xp.astype(distance > 0, distance.dtype) * rows if both_ways else xp.zeros_like(distance)
    far = xp.abs(distance) if both_ways else xp.where(distance < 0, -distance, 0)
    exact = rows // 2
    ratio = xp.astype(xp.where(far < exact, exact, far), xp.float32) / exact
    steps = xp.log(ratio) / math.log(farthest / exact) * (rows - exact)
    grown = xp.astype(steps, distance.dtype) + exact
    return later + xp.where(far < exact, far, xp.where(grown < rows, grown, rows - 1))


def t5(table: Array, *, both_ways: bool, farthest: int = 128, offset: int | None = None) -> Bias:
    """T5's learned bias by distance. table: (buckets, heads), as the model keeps it"""
    namespace(table=table)
    if table.ndim != 2:
        raise ShapeError(f"the table has shape {tuple(table.shape)}; it must be (buckets, heads).")
    return T5(table, both_ways, farthest, _whole(offset))


def by_distance(numbers: Array, first: int, offset: int | None = None) -> Bias:
    """Any bias that depends on the distance (key − query) alone. numbers: (.., H, N), those of distance `first` on"""
    namespace(numbers=numbers)
    return Distances(numbers, first, _whole(offset))


@dataclass(frozen=True, eq=False)
class Given(Bias):
    numbers: Array

    def tile(self, rows: slice, cols: slice, shape: Shape, *, like: Array) -> Array:
        require_fits("bias", self.numbers.shape, shape, "map (.., queries, keys)")
        tile = self.numbers[(None,) * max(2 - self.numbers.ndim, 0) + (...,)]
        tile = tile if tile.shape[-1] == 1 else tile[..., cols]
        return tile if tile.shape[-2] == 1 else tile[..., rows, :]

    def item(self, index: tuple[int, ...], shape: Shape) -> Bias:
        return Given(pick(self.numbers, index, shape))


@dataclass(frozen=True, eq=False)
class Alibi(Bias):
    slopes: tuple[float, ...]
    offset: int | None

    def tile(self, rows: slice, cols: slice, shape: Shape, *, like: Array) -> Array:
        _require_heads(len(self.slopes), shape)
        library, dtype = Library.of(like), wide_dtype(Library.of(like).xp, like.dtype)
        far = library.xp.astype(super().tile(rows, cols, shape, like=like), dtype)
        slopes = library.asarray(self.slopes, dtype=dtype)
        return -far * (slopes[:, None, None] if len(shape) > 2 else slopes[0])

    def _add(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        return library.xp.abs(_distance(i, j, self.offset, shape))

    def item(self, index: tuple[int, ...], shape: Shape) -> Bias:
        return Alibi((self.slopes[index[-1]],), self.offset) if index else self


@dataclass(frozen=True, eq=False)
class T5(Bias):
    table: Array
    both_ways: bool
    farthest: int
    offset: int | None

    def _add(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        buckets, heads = self.table.shape
        _require_heads(heads, shape)
        distance = _distance(i, j, self.offset, shape)
        rows = t5_buckets(distance, both_ways=self.both_ways, buckets=buckets, farthest=self.farthest)
        flat = library.xp.take(self.table, library.xp.reshape(rows, (-1,)), axis=0)
        whole = library.xp.permute_dims(library.xp.reshape(flat, (*distance.shape, heads)), (2, 0, 1))
        return whole if len(shape) > 2 else whole[0, ...]

    def item(self, index: tuple[int, ...], shape: Shape) -> Bias:
        one = self.table[:, index[-1] : index[-1] + 1] if index else self.table
        return T5(one, self.both_ways, self.farthest, self.offset)


@dataclass(frozen=True, eq=False)
class Distances(Bias):
    numbers: Array
    first: int
    offset: int | None

    def _add(self, i: Array, j: Array, shape: Shape, library: Library) -> Array:
        places = _distance(i, j, self.offset, shape) - self.first
        known = self.first, self.first + self.numbers.shape[-1] - 1
        shift = shape[-1] - shape[-2] if self.offset is None else self.offset
        asked = 1 - shape[-2] - shift, shape[-1] - 1 - shift
        if asked[0] < known[0] or asked[1] > known[1]:
            raise ShapeError(
                f"the bias knows the distances {known[0]} to {known[1]}, and the map {tuple(shape)} has {asked[0]} to "
                f"{asked[1]}."
            )
        flat = library.xp.take(self.numbers, library.xp.reshape(places, (-1,)), axis=-1)
        return library.xp.reshape(flat, (*self.numbers.shape[:-1], *places.shape))

    def item(self, index: tuple[int, ...], shape: Shape) -> Bias:
        return Distances(pick(self.numbers[..., None, :], index, shape)[0, ...], self.first, self.offset)


def _whole(offset: int | None) -> int | None:
    if offset is not None and not isinstance(offset, int):
        raise OptionError(f"offset is {offset!r}; a bias takes one whole number for all items.")
    return offset


def _distance(i: Array, j: Array, offset: int | None, shape: Shape) -> Array:
    """key place − query place; without an offset the last query stands at the last key."""
    return j - i - (shape[-1] - shape[-2] if offset is None else offset)


def _require_heads(heads: int, shape: Shape) -> None:
    found = shape[-3] if len(shape) > 2 else 1
    if heads != found:
        raise ShapeError(f"the bias is for {heads} heads and the map {tuple(shape)} has {found}.")
