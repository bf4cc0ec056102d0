"""What else shapes a weight, as a page keeps it: a mask as a range for each row or as bits, a bias by the distance."""

# H heads, Q queries, K keys; R rows and C columns of a tile

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import OptionError
from ...formula.positions.bias import Given
from ...formula.tiled import as_slice, blocks
from ...record.map import Map
from .coding import Numbers, host

__all__ = ["Ranges", "bias_by_distance", "bits_of", "ranges_of", "same_for_all_heads"]

ROWS, COLS = 1024, 2048  # of a tile
LARGEST_BITS = 2**27  # bytes of a mask with holes


class Ranges(NamedTuple):
    """The first and the last key that each query may see; last < first where it may see nothing."""

    first: NDArray[np.int32]
    last: NDArray[np.int32]

    @property
    def content(self) -> bytes:
        """As a block of the page."""
        return self.first.astype("<i4").tobytes() + self.last.astype("<i4").tobytes()


def same_for_all_heads(found: Map) -> bool:
    """Whether the mask is one for all heads, as a page has it."""
    if found.mask is None:
        return True
    heads, *_ = found.shape
    corner = found.mask.tile(slice(0, 1), slice(0, 1), found.shape, like=found.queries)
    if heads == 1 or corner.ndim < 3 or corner.shape[-3] == 1:
        return True
    return all(bool((tile == tile[:1]).all()) for _, _, tile in _tiles(found))


def ranges_of(found: Map) -> Ranges | None:
    """The mask as a range for each row, read only where a tile of it is neither all yes nor all no; None for holes."""
    _, queries, keys = found.shape
    first, last = np.full(queries, keys, dtype=np.int32), np.full(queries, -1, dtype=np.int32)
    count = np.zeros(queries, dtype=np.int64)
    for rows, cols, tile in _tiles(found):
        part, seen = as_slice(rows), tile[0]
        some = np.broadcast_to(seen.any(axis=-1), len(rows))
        begin = cols.start + seen.argmax(axis=-1)
        end = cols.stop - 1 - seen[:, ::-1].argmax(axis=-1)
        first[part] = np.where(some, np.minimum(first[part], begin), first[part])
        last[part] = np.where(some, np.maximum(last[part], end), last[part])
        count[part] += np.count_nonzero(seen, axis=-1)
        if cols.stop == keys and bool((count[part] != np.maximum(last[part] - first[part] + 1, 0)).any()):
            return None
    whole = bool((count == np.maximum(last.astype(np.int64) - first + 1, 0)).all())
    return Ranges(np.where(last < 0, 0, first).astype(np.int32), last) if whole else None


def bits_of(found: Map) -> bytes:
    """The mask eight keys to a byte, the first in the highest bit.   -> Q × ⌈K/8⌉ bytes"""
    _, queries, keys = found.shape
    size = queries * -(-keys // 8)
    if size > LARGEST_BITS:
        raise OptionError(
            f"the mask of this map of {queries:,} × {keys:,} has holes, and as bits it takes {size:,} bytes of a page; "
            "look at the record with regard serve."
        )
    lines = []
    for rows in blocks(queries, ROWS):
        seen = np.zeros((len(rows), keys), dtype=np.bool_)
        for cols, tile in _row_of_tiles(found, rows):
            seen[:, as_slice(cols)] = tile[0]
        lines.append(np.packbits(seen, axis=-1).tobytes())
    return b"".join(lines)


def bias_by_distance(found: Map) -> Numbers | None:
    """The bias of each distance, from that of the last query to the first key on; None where that is not all.

    -> (H, Q + K − 1), float32
    """
    bias, (heads, queries, keys), shape = found.bias, found.shape, found.shape
    if bias is None:
        return None
    everything = slice(None)
    down, across = (
        np.broadcast_to(host(bias.tile(rows, cols, shape, like=found.queries)), (heads, *size)).astype(np.float32)
        for rows, cols, size in ((everything, slice(0, 1), (queries, 1)), (slice(0, 1), everything, (1, keys)))
    )
    numbers = np.concatenate((down[:, ::-1, 0], across[:, 0, 1:]), axis=-1)
    if isinstance(bias, Given):  # any array; T5's comes as one from some models
        for block in blocks(queries, max(1, 2**22 // max(1, heads * keys))):
            tile = host(bias.tile(as_slice(block), everything, shape, like=found.queries)).astype(np.float32)
            places = np.arange(keys) - np.arange(block.start, block.stop)[:, None] + queries - 1
            if not np.array_equal(np.broadcast_to(tile, (heads, len(block), keys)), numbers[:, places]):
                return None
    return numbers


def _tiles(found: Map) -> Iterator[tuple[range, range, NDArray[np.bool_]]]:
    """The mask in tiles, row of tiles after row, without those that nobody sees any of.   -> (H or 1, R or 1, C)"""
    for rows in blocks(found.shape[1], ROWS):
        for cols, tile in _row_of_tiles(found, rows):
            yield rows, cols, tile


def _row_of_tiles(found: Map, rows: range) -> Iterator[tuple[range, NDArray[np.bool_]]]:
    mask, shape = found.mask, found.shape
    for cols in blocks(shape[2], COLS):
        seen = True if mask is None else mask.sees(rows, cols, shape)
        if mask is None or seen is True:
            yield cols, np.ones((1, 1, len(cols)), dtype=np.bool_)
        elif seen is None:
            tile = host(mask.tile(as_slice(rows), as_slice(cols), shape, like=found.queries))
            tile = tile.reshape((1,) * (3 - tile.ndim) + tile.shape)
            yield cols, np.broadcast_to(tile, (*tile.shape[:2], len(cols)))
