"""A run → its file: described as JSON, then written piece by piece under a temporary name."""

import json
import math
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import OptionError
from ...formula.arrays import Array
from ..map import Map
from ..record import Layer, Run
from .contents import Contents, Tensor, writable
from .fitting import require_whole
from .format import ARRAYS, CODES, FORMAT, LARGEST_HEADER, VERSION, dtype_name, itemsize_of
from .replacing import target_of, write_whole

PIECE = 2**26  # bytes that are brought to the host and written at a time
WORTH_SUMMING = 2**41  # multiply-adds that `save` spends on log-sum-exps unless it is told otherwise


def save(run: Run, path: str | os.PathLike[str], *, lse: bool | None = None) -> None:
    """Write a run into one file. An older file of that name stays until the new one is complete.

    lse: whether each row's log-sum-exp is computed and written too; False writes what is known already, None computes
    it where the work is small.
    """
    if lse is not None and type(lse) is not bool:
        raise OptionError(f"lse is {lse!r}; it must be True, False or None.")
    target = target_of(path)
    contents = Contents()
    described = _described(run, contents, lse)
    ordered = sorted(contents.tensors, key=lambda tensor: -tensor.itemsize)  # so that each begins at a multiple of it
    header = _header(described, ordered)
    size = len(header) + sum(math.prod(tensor.shape) * tensor.itemsize for tensor in ordered)
    write_whole(target, _content(header, ordered), size)


def _described(run: Run, contents: Contents, lse: bool | None) -> dict[str, Any]:
    """The run as JSON, its arrays as names of tensors."""
    if not run.layers:
        raise OptionError("the run has no layers; there is nothing to save.")
    for layer in run.layers:
        require_whole(layer)
    if lse is None:
        unknown = (one for layer in run.layers for one in layer.maps if _known_sums(one) is None)
        lse = sum(math.prod(one.shape) * one.queries.shape[-1] for one in unknown) <= WORTH_SUMMING
    layers = [
        {
            "name": layer.name, "kind": layer.kind, "index": int(layer.index),
            "heads": [int(head) for head in layer.head_numbers],
            "items": [_item(layer, item, f"layers.{place}.items.{item}", contents, lse)
                      for item in range(len(layer.maps))],
        }
        for place, layer in enumerate(run.layers)
    ]  # fmt: skip
    return {"model": run.model, "layers": layers, **contents.tables}


def _item(layer: Layer, item: int, name: str, contents: Contents, lse: bool) -> dict[str, Any]:
    one = layer.maps[item]
    arrays = {field: getattr(one, field) for field in ARRAYS}
    arrays["lse"] = layer.item(item).log_sum_exp() if lse else _known_sums(one)
    return {
        **{field: None if array is None else contents.tensor(f"{name}.{field}", array)
           for field, array in arrays.items()},
        "scale": writable("scale", float(one.scale)),
        "softcap": None if one.softcap is None else writable("softcap", float(one.softcap)),
        "offset": writable("offset", int(one.offset)),
        "mask": contents.mask(one.mask),
        "bias": contents.bias(one.bias),
        "query_tokens": contents.side(layer.queries[item]),
        "key_tokens": contents.side(layer.keys[item]),
    }  # fmt: skip


def _known_sums(one: Map) -> Array | None:
    """The log-sum-exps of a map, if all of them are known."""
    known = one.kept.get("lse", one.lse)
    return None if known is None or bool((known != known).any()) else known  # noqa: PLR0124  NaN: not known


def _header(described: dict[str, Any], ordered: list[Tensor]) -> bytes:
    metadata = {"format": FORMAT, "version": str(VERSION), "record": json.dumps(described, separators=(",", ":"))}
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for tensor in ordered:
        begin, end = end, end + math.prod(tensor.shape) * tensor.itemsize
        header[tensor.name] = {"dtype": tensor.code, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > LARGEST_HEADER:
        raise OptionError(
            f"the tokens and layers of this record take {len(text):,} bytes of header, and a file has at most "
            f"{LARGEST_HEADER:,}; save fewer items: record.item(0).save(…)."
        )
    return len(text).to_bytes(8, "little") + text


def _content(header: bytes, ordered: list[Tensor]) -> Iterator[Any]:
    yield header
    for tensor in ordered:
        for piece in _pieces(tensor.array):
            yield _bytes(piece, tensor.packed)


def _pieces(array: Array) -> Iterator[Array]:
    """An array in pieces that are small enough to hold a copy of, in the order of the file."""
    size = math.prod(array.shape) * itemsize_of(CODES[dtype_name(array)])
    if size <= PIECE:
        yield array
    elif size // len(array) > PIECE:
        for place in range(len(array)):
            yield from _pieces(array[place])
    else:
        step = PIECE // (size // len(array))
        for first in range(0, len(array), step):
            yield array[first : first + step]


def _bytes(piece: Array, packed: bool) -> Any:
    """An array's bytes, little-endian, row after row."""
    host = _on_host(piece)
    host = np.packbits(host, axis=-1) if packed else host.astype(host.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(host).reshape(-1).view(np.uint8)


def _on_host(array: Array) -> Any:
    """An array of any library as NumPy's; bfloat16, which NumPy does not have, as whole numbers of the same bits."""
    if hasattr(array, "detach"):  # PyTorch's, wherever it is
        array = array.detach().cpu()
        half = dtype_name(array) == "bfloat16"
        return (array.view(sys.modules["torch"].int16) if half else array).numpy()
    host = np.asarray(array)
    return host.view(np.uint16) if dtype_name(host) == "bfloat16" else host
