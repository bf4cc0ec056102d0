"""What the caller handed in → arrays of one library, in a dtype that is safe to compute in."""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import array_api_compat as compat
from array_api_compat import numpy as default_library

from ..errors import DtypeError, ShapeError

Array = Any  # an array of any library that follows the Array API standard
Namespace = Any  # that library's functions


class Library(NamedTuple):
    """An array library and the device its arrays are on: where new arrays are to be made."""

    xp: Namespace
    device: Any

    @classmethod
    def of(cls, array: Array | None) -> "Library":
        """The library that `array` belongs to; NumPy when there is no array to ask."""
        if array is None:
            return cls(default_library, "cpu")
        return cls(compat.array_namespace(array), compat.device(array))

    def arange(self, start: int, stop: int, step: int = 1) -> Array:
        return self.xp.arange(start, stop, step, device=self.device)

    def asarray(self, numbers: Any, dtype: Any = None) -> Array:
        return self.xp.asarray(numbers, dtype=dtype, device=self.device)

    def widest_float(self) -> Any:
        """float64, unless the library is set to do without (JAX) or the device does (Apple's)."""
        floats = self.xp.__array_namespace_info__().dtypes(kind="real floating")
        try:
            return self.xp.zeros(1, dtype=floats["float64"], device=self.device).dtype
        except (KeyError, TypeError):
            return self.xp.float32


def is_array(thing: Any) -> bool:
    """Whether some library that follows the standard made this. (NumPy's masked arrays do not: they hide numbers.)"""
    return compat.is_array_api_obj(thing) and not hasattr(thing, "harden_mask")


def namespace(**arrays: Array) -> Namespace:
    """The one library that all the named arrays belong to."""
    for name, array in arrays.items():
        if not is_array(array):
            raise DtypeError(
                f"{name} is a {type(array).__name__}; the formulas work on arrays of NumPy, PyTorch, JAX or CuPy. "
                f"Make it one first, for example numpy.asarray({name})."
            )
    libraries = {name: compat.array_namespace(array) for name, array in arrays.items()}
    first = next(iter(libraries.values()))
    if any(xp is not first for xp in libraries.values()):
        kinds = ", ".join(
            f"{name} from {xp.__name__.removeprefix('array_api_compat.')}" for name, xp in libraries.items()
        )
        raise DtypeError(f"the arrays come from different libraries: {kinds}. Convert them to one.")
    _require_one_device(arrays)
    return first


def _require_one_device(arrays: dict[str, Array]) -> None:
    """Where arrays live on one device each; in JAX they may be spread over several, and it moves them itself."""
    devices = {name: compat.device(array) for name, array in arrays.items() if not compat.is_jax_array(array)}
    if any(device != next(iter(devices.values())) for device in devices.values()):
        places = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise DtypeError(f"the arrays are on different devices: {places}. Move them to one.")


def is_real_floating(xp: Namespace, dtype: Any) -> bool:
    """Whether a dtype is a real floating one; NumPy's bfloat16, from ml_dtypes, is so outside the standard's kinds."""
    return "bfloat16" in str(dtype) or xp.isdtype(dtype, "real floating")


def floating(xp: Namespace, array: Array, name: str = "x") -> Array:
    """`array` itself when it holds real floating numbers, whole numbers as the library's default float."""
    if is_real_floating(xp, array.dtype):
        return array
    if xp.isdtype(array.dtype, "integral"):
        return xp.astype(array, xp.asarray(0.0).dtype)
    raise DtypeError(f"{name} has dtype {array.dtype}; attention needs real floating numbers.")


def common_dtype(xp: Namespace, *arrays: Array) -> Any:
    """The dtype that all meet in. Two kinds of half precision, neither wider than the other, meet in float32."""
    dtypes = [array.dtype for array in arrays]
    if len({str(dtype) for dtype in dtypes}) > 1 and any("bfloat16" in str(dtype) for dtype in dtypes):
        return xp.result_type(*(widened(xp, array) for array in arrays))
    return xp.result_type(*arrays)


def wide_dtype(xp: Namespace, dtype: Any) -> Any:
    """The dtype sums are taken in: float64 and wider stay, everything narrower is float32.

    In float16 a dot product of two rows at 1e4 is already infinite; in bfloat16 it keeps 8 bits.
    """
    return dtype if dtype == xp.float64 or getattr(dtype, "itemsize", 0) > 8 else xp.float32


def widened(xp: Namespace, array: Array) -> Array:
    """`array` in the dtype sums are taken in."""
    return xp.astype(array, wide_dtype(xp, array.dtype), copy=False)


def known(condition: Array) -> bool | None:
    """The truth of a 0-d array; None where only shapes are known yet, as inside jax.jit."""
    try:
        return bool(condition)
    except Exception:  # the tracers' own error classes live in libraries that are never imported here
        return None


def all_finite(xp: Namespace, array: Array) -> bool | None:
    """Whether there is no NaN and no infinity in it; None where it cannot be known yet."""
    if compat.is_numpy_namespace(xp) or compat.is_torch_namespace(xp):
        size = largest(xp, array)
        return None if size is None else math.isfinite(size)
    return known(xp.all(xp.isfinite(array)))  # JAX loses NaN on its way to a maximum


def largest(xp: Namespace, array: Array) -> float | None:
    """The largest magnitude, NaN if there is any; None where it cannot be known yet. (Two passes, no copy.)"""
    if 0 in array.shape:
        return 0.0
    try:
        high, low = float(xp.max(array)), float(xp.min(array))
    except Exception:  # as in `known`
        return None
    return math.nan if math.isnan(high + low) and (math.isnan(high) or math.isnan(low)) else max(high, -low)


def quiet(xp: Namespace) -> AbstractContextManager[Any]:
    """Where masked keys hold infinities or overflow, NumPy would warn, and the answer does not depend on them."""
    return xp.errstate(invalid="ignore", over="ignore") if compat.is_numpy_namespace(xp) else nullcontext()


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that all broadcast to, or None where they do not fit."""
    rank = max(map(len, shapes))
    result = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(sizes) > 1:
            return None
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def require_fits(name: str, shape: tuple[int, ...], target: tuple[int, ...], axes: str, hint: str = "") -> None:
    """`shape` must broadcast to `target` without making it any larger."""
    if broadcast_shapes(shape, target) != target:
        raise ShapeError(f"{name} has shape {tuple(shape)}, which does not fit the {axes} {tuple(target)}.{hint}")


def pick(array: Array, index: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """The last two axes of `array` at `index` of the leading axes of a map of `shape`.

    An axis of 1 serves every index, an axis of G serves groups of heads: head h belongs to h·G // H.
    """
    lead = array.shape[:-2]
    places = zip(lead, index[len(index) - len(lead) :], shape[len(index) - len(lead) :], strict=False)
    return array[(*(at * size // whole for size, at, whole in places), ...)]
