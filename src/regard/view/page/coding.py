"""Numbers ↔ the bytes of a page: 16 bits in two planes, thumbnails in 8, and a weight read back out of them."""

# Q queries, K keys, D width, R rows that are chosen

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["decoded", "dtype_for", "encoded", "halves", "host", "read_weights", "thumbnail_bytes", "thumbnail_values"]

Numbers = NDArray[Any]
LARGEST = 32767  # of a 16-bit whole number
FAINTEST, DECADES = 1e-5, 5  # the lowest share that a thumbnail tells from 0, and how far it lies below 1


def host(array: Any) -> Numbers:
    """An array of any library and device as NumPy's; bfloat16, which NumPy does not have, as float32, exactly."""
    if hasattr(array, "detach"):  # PyTorch's, wherever it is
        array = array.detach().cpu()
        array = array.float() if "bfloat16" in str(array.dtype) else array
    numbers = np.asarray(array)
    return numbers.astype(np.float32) if numbers.dtype.name == "bfloat16" else numbers


def dtype_for(*arrays: Any) -> str:
    """How arrays are written: half precision as it is, all else as whole numbers with a scale for each column."""
    kinds = {str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.") for array in arrays}
    return {"float16": "f16", "bfloat16": "bf16"}.get(kinds.pop(), "i16") if len(kinds) == 1 else "i16"


def encoded(numbers: Numbers, dtype: str) -> bytes:
    """A matrix as bytes.   (Q, D) -> for i16 the D scales first, then the numbers"""
    if dtype == "f16":
        return halves(numbers)
    if dtype == "bf16":
        return _planes((numbers.astype("<f4").view("<u4") >> 16).astype("<u2"))
    # What is not finite makes its whole row NaN in the record, and in the page by way of the row's sum.
    finite = np.where(np.isfinite(numbers), numbers, 0.0)
    scales = (np.abs(finite).max(axis=0, initial=0.0) / LARGEST).astype("<f4")
    steps = np.rint(finite / np.where(scales > 0, scales, 1.0))
    content: bytes = scales.tobytes()
    return content + _planes(np.clip(steps, -LARGEST, LARGEST).astype("<i2"))


def decoded(content: bytes, dtype: str, width: int) -> Numbers:
    """The matrix that was encoded.   -> (Q, D), float32"""
    begin = 4 * width if dtype == "i16" else 0
    pairs: Numbers = np.frombuffer(content, np.uint8, offset=begin).reshape(2, -1).T.copy()
    bits: Numbers = pairs.view("<u2").reshape(-1, width)
    if dtype == "f16":
        return bits.view("<f2").astype(np.float32)
    if dtype == "bf16":
        wide: Numbers = (bits.astype("<u4") << 16).view("<f4")
        return wide
    scales = np.frombuffer(content, "<f4", count=width)
    numbers: Numbers = bits.view("<i2") * scales
    return numbers


def halves(numbers: Numbers) -> bytes:
    """Numbers in half precision, their low bytes first and then their high ones."""
    return _planes(numbers.astype("<f2"))


def thumbnail_bytes(shares: Numbers) -> bytes:
    """Shares from 0 to 1 by their logarithm, 8 bits each."""
    levels = 1 + np.log10(np.clip(np.nan_to_num(shares), FAINTEST, 1.0)) / DECADES
    return np.where(shares > 0, np.rint(255 * levels), 0).astype(np.uint8).tobytes()


def thumbnail_values(levels: Numbers) -> Numbers:
    """The shares that bytes of a thumbnail stand for."""
    return np.where(levels > 0, 10.0 ** (DECADES * (levels / 255 - 1)), 0.0)


def read_weights(
    described: Mapping[str, Any], head: int, rows: Sequence[int], shape: tuple[int, int], read: Callable[[str], bytes]
) -> Numbers:
    """Some rows of a head as the page has them.   -> (R, K)

    described: the layer, as in the description. head: its place there. shape: (Q, K). read: a block by its name.
    """
    layer, packed, (queries, keys) = described["id"], described["packed"], shape
    chosen = np.asarray(rows, dtype=np.int64)
    weights: Numbers
    if packed["form"] == "weights":
        return decoded(read(f"weights:{layer}:{head}"), "f16", keys)[chosen]
    width, dtype = packed["width"], packed["dtype"]
    query = decoded(read(f"queries:{layer}:{head}"), dtype, width)[chosen]
    key = decoded(read(f"keys:{layer}:{packed['groups'][head]}"), dtype, width)
    with np.errstate(invalid="ignore", over="ignore"):  # masked keys may hold anything
        scores = np.float32(packed["scale"]) * query @ key.T
        if packed["softcap"] is not None:
            scores = packed["softcap"] * np.tanh(scores / packed["softcap"])
        if packed["bias"] is not None:
            distances = np.arange(keys) - (chosen[:, None] + described["offset"]) - packed["bias"]["first"]
            scores = scores + np.frombuffer(read(f"bias:{layer}:{head}"), "<f4")[distances]
        weights = np.exp(scores - np.frombuffer(read(f"sums:{layer}:{head}"), "<f4")[chosen, None])
    if packed["mask"] == "ranges":
        first, last = np.frombuffer(read(f"ranges:{layer}"), "<i4").reshape(2, queries)[:, chosen, None]
        weights = np.where((first <= np.arange(keys)) & (np.arange(keys) <= last), weights, 0.0)
    elif packed["mask"] == "bits":
        bits = np.frombuffer(read(f"bits:{layer}"), np.uint8).reshape(queries, math.ceil(keys / 8))
        weights = np.where(np.unpackbits(bits[chosen], axis=-1, count=keys), weights, 0.0)
    return weights


def _planes(numbers: Numbers) -> bytes:
    """16-bit numbers, all low bytes and then all high ones: those are alike, and deflate well."""
    pairs: Numbers = np.ascontiguousarray(numbers).reshape(-1).view(np.uint8).reshape(-1, 2)
    return pairs.T.tobytes()
