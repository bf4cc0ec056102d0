"""Positions that turn queries and keys, so that their product depends on the distance alone (Su et al. 2021)."""

# N tokens, D head width, W rotated width (W ≤ D), W/2 pairs turned by one angle each

import math
from dataclasses import dataclass
from typing import Protocol

from ...errors import OptionError, ShapeError
from ..arrays import Array, Library, floating, namespace, widened


class Scaling(Protocol):
    """A way to stretch trained frequencies over a longer context."""

    def stretch(self, frequencies: list[float], base: float) -> list[float]: ...


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Every place is divided by `factor` (position interpolation, Chen et al. 2023)."""

    factor: float

    def __post_init__(self) -> None:
        _require_positive(factor=self.factor)

    def stretch(self, frequencies: list[float], base: float) -> list[float]:
        return [frequency / self.factor for frequency in frequencies]


@dataclass(frozen=True, kw_only=True)
class Ntk:
    """The base grows so that the slowest pair is stretched by `factor` and the fastest not at all."""

    factor: float

    def __post_init__(self) -> None:
        _require_positive(factor=self.factor)

    def stretch(self, frequencies: list[float], base: float) -> list[float]:
        slowest = max(len(frequencies) - 1, 1)
        return [frequency * self.factor ** (-pair / slowest) for pair, frequency in enumerate(frequencies)]


@dataclass(frozen=True, kw_only=True)
class Yarn:
    """Pairs that turn often within the trained length are kept, slow ones stretched, a ramp between (Peng et al. 2023).

    YaRN also sharpens the softmax: multiply the scale by `temperature`.
    """

    factor: float
    trained_length: int
    fast: float = 32.0
    slow: float = 1.0

    def __post_init__(self) -> None:
        _require_positive(factor=self.factor, trained_length=self.trained_length, fast=self.fast, slow=self.slow)

    def stretch(self, frequencies: list[float], base: float) -> list[float]:
        low, high = (self._pair(turns, len(frequencies), base) for turns in (self.fast, self.slow))
        low, high = max(math.floor(low), 0), min(math.ceil(high), 2 * len(frequencies) - 1)
        ramp = [min(max((pair - low) / max(high - low, 1e-3), 0.0), 1.0) for pair in range(len(frequencies))]
        return [f / self.factor * r + f * (1 - r) for f, r in zip(frequencies, ramp, strict=True)]

    @property
    def temperature(self) -> float:
        return (0.1 * math.log(self.factor) + 1) ** 2 if self.factor > 1 else 1.0

    def _pair(self, turns: float, pairs: int, base: float) -> float:
        """Which pair makes so many turns within the trained length."""
        return pairs * math.log(self.trained_length / (turns * 2 * math.pi)) / math.log(base)


@dataclass(frozen=True, kw_only=True)
class Llama3:
    """Wavelengths short against the trained length are kept, long ones stretched, those between blended."""

    factor: float
    trained_length: int
    low: float = 1.0
    high: float = 4.0

    def __post_init__(self) -> None:
        _require_positive(factor=self.factor, trained_length=self.trained_length, low=self.low)
        if self.high <= self.low:
            raise OptionError(f"high is {self.high} and low is {self.low}; high must be the larger one.")

    def stretch(self, frequencies: list[float], base: float) -> list[float]:
        return [self._one(frequency) for frequency in frequencies]

    def _one(self, frequency: float) -> float:
        turns = self.trained_length * frequency / (2 * math.pi)
        kept = min(max((turns - self.low) / (self.high - self.low), 0.0), 1.0)
        return kept * frequency + (1 - kept) * frequency / self.factor


def frequencies(width: int, base: float = 10000.0, scaling: Scaling | None = None) -> list[float]:
    """How far each pair of columns turns from one token to the next: base^(−2i/width), fastest first."""
    if width < 2 or width % 2:
        raise OptionError(f"a rotated width of {width}; columns turn in pairs, so it must be even and at least 2.")
    _require_positive(base=base)
    if scaling is not None and not hasattr(scaling, "stretch"):
        raise OptionError(f"scaling is {scaling!r}; give Linear, Ntk, Yarn or Llama3 of regard.formula.positions.")
    plain = [base ** (-2 * pair / width) for pair in range(width // 2)]
    return plain if scaling is None else scaling.stretch(plain, base)


def angles(places: Array, frequencies: list[float]) -> tuple[Array, Array]:
    """cos and sin of place × frequency.   (.., N) -> (.., N, W/2) twice

    In float64 where the library has it: at place 100,000 float32 is already 0.004 radians off.
    """
    namespace(places=places)
    library = Library.of(places)
    widest = library.widest_float()
    turned = library.xp.astype(places, widest)[..., None] * library.asarray(frequencies, dtype=widest)
    return library.xp.cos(turned), library.xp.sin(turned)


def rotate(x: Array, cos: Array, sin: Array, *, interleaved: bool = False) -> Array:
    """Turn pairs of columns by their angles.   (batch.., heads.., N, D), (batch.., N, W/2) twice -> like x

    A pair is columns (i, i + W/2), or (2i, 2i + 1) when interleaved. Columns from W on stay as they are.
    """
    xp = namespace(x=x, cos=cos, sin=sin)
    x, width = floating(xp, x), 2 * cos.shape[-1]
    if cos.shape != sin.shape or x.ndim < 2 or cos.ndim < 2 or x.shape[-2] != cos.shape[-2] or x.shape[-1] < width:
        raise ShapeError(
            f"x {tuple(x.shape)} cannot be turned by cos {tuple(cos.shape)} and sin {tuple(sin.shape)}: "
            "they must be (.., tokens, pairs) alike, with x's number of tokens and at most half its width in pairs."
        )
    wide = widened(xp, x)
    cos, sin = (xp.astype(_over_heads(part, x.shape), wide.dtype) for part in (cos, sin))
    turned, rest = wide[..., :width], wide[..., width:]
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., : width // 2], turned[..., width // 2 :]
    first, second = first * cos - second * sin, first * sin + second * cos
    if interleaved:
        turned = xp.reshape(xp.stack((first, second), axis=-1), turned.shape)
    else:
        turned = xp.concat((first, second), axis=-1)
    return xp.astype(xp.concat((turned, rest), axis=-1), x.dtype, copy=False)


def rotary(
    x: Array, places: Array | None = None, *, width: int | None = None, base: float = 10000.0,
    interleaved: bool = False, scaling: Scaling | None = None,
) -> Array:  # fmt: skip
    """Turn queries or keys by their places.   (batch.., heads.., N, D) -> the same

    places: (batch.., N), by default 0, 1, 2 …; width: how many columns are turned, by default all.
    """
    namespace(x=x)
    if x.ndim < 2:
        raise ShapeError(f"x has shape {tuple(x.shape)}; it needs at least two axes, (.., tokens, width).")
    places = Library.of(x).arange(0, x.shape[-2]) if places is None else places
    cos, sin = angles(places, frequencies(x.shape[-1] if width is None else width, base, scaling))
    return rotate(x, cos, sin, interleaved=interleaved)


def _over_heads(angle: Array, shape: tuple[int, ...]) -> Array:
    """(batch.., N, W/2) → (batch.., 1.., N, W/2): the batch axes are the first ones, heads lie between."""
    batch, room = tuple(angle.shape[:-2]), len(shape) - 2
    if len(batch) > room or any(size not in (1, whole) for size, whole in zip(batch, shape, strict=False)):
        raise ShapeError(f"places for batches of {batch}, which are not the first axes of x {tuple(shape)}.")
    return angle[(slice(None),) * len(batch) + (None,) * (room - len(batch)) + (...,)]


def _require_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not isinstance(number, int | float) or not 0 < number < math.inf:
            raise OptionError(f"{name} is {number!r}; it must be a number above 0.")
