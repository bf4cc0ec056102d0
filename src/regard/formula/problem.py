"""One attention problem, checked: queries, keys and everything that shapes a weight."""

# H query heads, G key heads, Q queries, K keys, D width; "..": any leading axes

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypeVar

import array_api_compat as compat

from ..errors import DtypeError, OptionError, ShapeError
from .arrays import (
    Array,
    Namespace,
    broadcast_shapes,
    common_dtype,
    floating,
    is_array,
    namespace,
    pick,
    require_fits,
    wide_dtype,
    widened,
)
from .masks.mask import Mask, as_mask
from .positions.bias import Bias, as_bias

EVERYTHING = slice(None)
WORTH_HOLDING = 2**22  # scores: a larger map falls out of the caches, and tiles are faster as well as smaller
Part = TypeVar("Part", Mask, Bias)


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """Scores of any rectangle of the map, from queries and keys that fit together.

    A score is softcap·tanh(scale·q·k / softcap) + bias, and −inf where the mask says no.
    """

    xp: Namespace
    query: Array  # (.., H, Q, D)
    key: Array  # (.., G, K, D)
    shape: tuple[int, ...]  # of the map: (.., H, Q, K)
    dtype: Any  # of the answer
    scale: float
    softcap: float | None = None
    mask: Mask | None = None
    bias: Bias | None = None
    sinks: Array | None = None  # (.., H, 1, 1): a logit that takes part in each row's sum and has no value

    @classmethod
    def of(
        cls, query: Array, key: Array, mask: Mask | Array | None = None, *, scale: float | None = None,
        softcap: float | None = None, bias: Bias | Array | None = None, sinks: Array | None = None,
    ) -> "Problem":  # fmt: skip
        """The caller's arguments, each checked against the others."""
        xp = namespace(query=query, key=key)
        query, key = floating(xp, query, "query"), floating(xp, key, "key")
        dtype, shape = common_dtype(xp, query, key), map_shape(query.shape, key.shape)
        query, key = (xp.astype(array, dtype, copy=False) for array in (query, key))
        return cls(
            xp=xp, query=query, key=key, shape=shape, dtype=dtype, scale=_scale(scale, query.shape[-1]),
            softcap=_softcap(softcap), sinks=_sinks(sinks, query, shape),
            mask=None if mask is None else _fitting(as_mask(mask), "mask", query, shape),
            bias=None if bias is None else _fitting(as_bias(bias), "bias", query, shape),
        )  # fmt: skip

    @property
    def wide(self) -> Any:
        """The dtype that sums are taken in."""
        return wide_dtype(self.xp, self.dtype)

    def scaled(self, rows: slice = EVERYTHING) -> Array:
        """Some of the queries times the scale, in the dtype sums are taken in."""
        return widened(self.xp, self.query[..., rows, :]) * self.scale

    def scores(
        self, rows: slice = EVERYTHING, cols: slice = EVERYTHING, *, masked: bool = True, out: Array | None = None,
        scaled: Array | None = None,
    ) -> Array:  # fmt: skip
        """The rectangle (rows, cols) of the scores, (.., H, rows, cols).

        masked=False leaves the mask out, where the caller knows that it says yes throughout; `out` is a buffer for
        the products, in libraries whose functions take one; `scaled` the queries, where they are at hand.
        """
        xp = self.xp
        query = self.scaled(rows) if scaled is None else scaled
        tile = grouped_matmul(xp, query, xp.matrix_transpose(widened(xp, self.key[..., cols, :])), out)
        if self.softcap is not None:
            tile = self.softcap * xp.tanh(tile / self.softcap)
        if self.bias is not None:
            bias = xp.astype(self.bias.tile(rows, cols, self.shape, like=tile), tile.dtype, copy=False)
            # A bias of −inf is a mask: it must win over whatever the key holds, NaN included.
            tile = xp.where(bias == -xp.inf, -xp.inf, tile + bias)
        if self.mask is not None and masked:
            tile = xp.where(self.mask.tile(rows, cols, self.shape, like=tile), tile, -xp.inf)
        return tile

    def sees(self, rows: range, cols: range) -> bool | None:
        """Whether the mask says yes throughout a rectangle (True), no (False), or both (None)."""
        return True if self.mask is None else self.mask.sees(rows, cols, self.shape)

    def item(self, index: tuple[int, ...]) -> "Problem":
        """The problem of one map alone, the one at `index` of the leading axes: query (Q, D), key (K, D)."""
        return replace(
            self,
            query=pick(self.query, index, self.shape),
            key=pick(self.key, index, self.shape),
            shape=self.shape[-2:],
            mask=None if self.mask is None else self.mask.item(index, self.shape),
            bias=None if self.bias is None else self.bias.item(index, self.shape),
            sinks=None if self.sinks is None else pick(self.sinks, index, self.shape),
        )


def span(name: str, part: slice, size: int) -> range:
    """The rows or columns that a slice picks, as a range."""
    if not isinstance(part, slice):
        raise DtypeError(f"{name} is {part!r}; a rectangle is taken by slices, as in {name}=slice(3, 4).")
    chosen = range(*part.indices(size))
    if chosen.step != 1:
        raise OptionError(f"{name} {part} are taken in steps of {chosen.step}; a rectangle has a step of 1.")
    return chosen


def map_shape(query: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """(.., H, Q, D), (.., G, K, D) -> (.., H, Q, K)"""
    for name, shape in (("query", query), ("key", key)):
        if len(shape) < 2:
            raise ShapeError(f"{name} has shape {tuple(shape)}; it needs at least two axes, (.., tokens, width).")
    if query[-1] != key[-1]:
        raise ShapeError(
            f"query {tuple(query)} and key {tuple(key)} differ in their last axis; both must be the head width."
        )
    lead = lead_shape("query", query[:-2], "key", key[:-2])
    return (*lead, query[-2], key[-2])


def lead_shape(one_name: str, one: tuple[int, ...], other_name: str, other: tuple[int, ...]) -> tuple[int, ...]:
    """The leading axes of a map; on the last of them, the heads, G keys may serve H = m·G queries."""
    grouped = one and other and other[-1] > 1 and one[-1] % other[-1] == 0
    lead = broadcast_shapes(tuple(one), (*other[:-1], one[-1]) if grouped else tuple(other))
    if lead is None:
        raise ShapeError(
            f"the leading axes of {one_name} {tuple(one)} and {other_name} {tuple(other)} do not fit together: each "
            "must be equal or 1, and of the last ones, the heads, those of the keys must divide those of the queries."
        )
    return lead


def grouped_matmul(xp: Namespace, left: Array, right: Array, out: Array | None = None) -> Array:
    """left @ right, where each of G matrices on the right serves H/G on the left, without being copied.

    (.., H, M, A), (.., G, A, N) -> (.., H, M, N)
    """
    into: dict[str, Any] = {} if out is None else {"out": out}
    if compat.is_jax_namespace(xp):
        into["precision"] = "highest"  # On a GPU, JAX would otherwise round float32 products to 10 bits.
    if left.ndim < 3 or right.ndim < 3 or left.shape[-3] in (1, right.shape[-3]):
        return xp.matmul(left, right, **into)
    *lead, heads, rows, width = left.shape
    groups = right.shape[-3]
    folded = xp.reshape(left, (*lead, groups, heads // groups * rows, width))
    product = xp.matmul(folded, right, **into)
    return xp.reshape(product, (*product.shape[:-3], heads, rows, right.shape[-1]))


def _scale(scale: float | None, width: int) -> float:
    if scale is None:
        return 1 / math.sqrt(max(width, 1))  # q·k has variance D; dividing by √D keeps softmax out of its flat ends.
    return _number(scale, "scale")


def _softcap(softcap: float | None) -> float | None:
    if softcap is not None and _number(softcap, "softcap") <= 0:
        raise OptionError(f"softcap is {softcap}; it must be above 0, or None for no cap.")
    return softcap if softcap is None else float(softcap)


def _number(number: Any, name: str) -> float:
    if is_array(number) and not isinstance(number, Real):
        raise DtypeError(f"{name} is an array; it must be a number. One that is learned is multiplied into the query.")
    if not isinstance(number, Real):
        raise DtypeError(f"{name} is {number!r}; it must be a number.")
    if not math.isfinite(number):
        raise OptionError(f"{name} is {number}; it must be finite.")
    return float(number)


def _sinks(sinks: Array | None, like: Array, shape: tuple[int, ...]) -> Array | None:
    if sinks is None:
        return None
    xp = namespace(query=like, sinks=sinks)
    require_fits("sinks", sinks.shape, shape[:-2], "heads (.., H)", " Give one number for each head.")
    return xp.astype(floating(xp, sinks, "sinks"), wide_dtype(xp, like.dtype))[..., None, None]


def _fitting(part: Part, name: str, like: Array, shape: tuple[int, ...]) -> Part:
    """`part` itself, once it has answered for an empty rectangle: a misfit shows before any work is done."""
    for array in part.arrays():
        namespace(query=like, **{name: array})
    tile = part.tile(slice(0, 0), slice(0, 0), shape, like=like)
    require_fits(name, tile.shape, (*shape[:-2], 0, 0), "map (.., queries, keys)")
    return part
