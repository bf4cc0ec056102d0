"""Keys and values of tokens already seen, kept from one step of decoding to the next."""

# B batch, G key heads, K keys, D head width; where rows share a source: R rows, S sources, M most rows of one source

from collections.abc import Sequence

import torch
from torch import Tensor

from ..errors import DtypeError, OptionError, ShapeError
from .options import require_count


class KeyValueCache:
    """The keys and values of one attention layer; empty at first.

    Their room grows by doubling, so that n steps copy O(n) tokens and not O(n²). Where gradients are on, the room is
    made anew each time instead, since autograd forbids writing into what it has kept: decode under torch.no_grad().
    """

    def __init__(self) -> None:
        self.length = 0
        self.readers: Readers | None = None  # of a source that several rows look at
        self._rooms: tuple[Tensor, Tensor] | None = None  # keys and values, (B, G, room, D)

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the keys and values of further tokens; all that are kept so far come back.   (B, G, K, D) twice"""
        self._require_fitting(key, value)
        if self._rooms is None:
            self._rooms = (key, value)
        else:
            old, length = self._rooms, self.length
            self._rooms = (_extended(old[0], length, key), _extended(old[1], length, value))
        self.length += key.shape[2]
        return self.kept()

    def kept(self) -> tuple[Tensor, Tensor]:
        """The keys and values kept so far, (B, G, length, D) each."""
        if self._rooms is None:
            raise ShapeError("the cache is empty: nothing was appended to it yet.")
        keys, values = self._rooms
        return keys[:, :, : self.length], values[:, :, : self.length]

    def reorder(self, index: Tensor) -> None:
        """Item i becomes a copy of item index[i], as in beam search, where some beams go on twice and others end."""
        if not isinstance(index, Tensor) or index.ndim != 1 or index.dtype not in (torch.int64, torch.int32):
            given = f"{index.dtype} {tuple(index.shape)}" if isinstance(index, Tensor) else f"a {type(index).__name__}"
            raise DtypeError(f"index is {given}; it must be a tensor of whole numbers, (batch,): whom to go on from.")
        if self._rooms is not None:
            keys, values = self._rooms
            try:  # asked of the tensors themselves: looking at the index would be waited for on a GPU
                self._rooms = (keys.index_select(0, index), values.index_select(0, index))
            except IndexError:
                batch = keys.shape[0]
                raise ShapeError(
                    f"index is {index.tolist()} and the cache keeps {batch} items, 0 to {batch - 1}."
                ) from None

    def grouped(self, query: Tensor) -> Tensor:
        """Queries beside the keys they look at; as they are unless rows share a source."""
        return query if self.readers is None else self.readers.grouped(query)

    def spread(self, mixed: Tensor) -> Tensor:
        """What the grouped queries got, row by row again."""
        return mixed if self.readers is None else self.readers.spread(mixed)

    def grouped_shape(self, x: Tensor) -> tuple[int, int]:
        """How many items and queries there are of rows x, (R, N, E), once they are grouped."""
        return (x.shape[0], x.shape[1]) if self.readers is None else self.readers.shape(x)

    def _require_fitting(self, key: Tensor, value: Tensor) -> None:
        if key.ndim != 4 or key.shape[:3] != value.shape[:3]:
            raise ShapeError(
                f"key {tuple(key.shape)}, value {tuple(value.shape)}; both must be (batch, key heads, tokens, width)."
            )
        for name, new, room in zip(("key", "value"), (key, value), self._rooms or (), strict=False):
            if (*new.shape[:2], new.shape[3]) != (*room.shape[:2], room.shape[3]):
                raise ShapeError(
                    f"{name} {tuple(new.shape)} does not continue what the cache keeps, "
                    f"{(*room.shape[:2], self.length, room.shape[3])}; only the tokens may differ. Start a new cache."
                )
            if new.dtype != room.dtype or new.device != room.device:
                raise DtypeError(
                    f"{name} is {new.dtype} on {new.device} and the cache keeps {room.dtype} on {room.device}. Start a "
                    "new cache, or go on as it was begun."
                )


class Readers:
    """Which source each row looks at, where several rows, as the beams of one text, look at the same.

    The keys of a source are then kept once, however many rows there are: its rows stand side by side on the axis of the
    queries, in a rectangle of sources × most rows of any. Copying the keys for each row and step costs far more than
    the few places of the rectangle that stay empty.
    """

    def __init__(self, sources: Tensor, count: int) -> None:
        """sources: the number of each row's source, (R,); count: how many sources are kept."""
        rows = torch.bincount(sources, minlength=count)
        if len(rows) > count:
            raise ShapeError(f"a row looks at source {len(rows) - 1} and {count} are kept, 0 to {count - 1}.")
        self.count, self.most = count, int(rows.max())
        order = sources.argsort(stable=True)
        first = rows.cumsum(0) - rows  # the place of each source's first row in that order
        places = torch.empty_like(sources)
        places[order] = torch.arange(len(sources), device=sources.device) - first[sources[order]]
        places += sources * self.most
        whole = len(sources) == count * self.most
        plain = whole and bool((places == torch.arange(len(places), device=places.device)).all())
        self.places = None if plain else places  # (R,) in the rectangle; None: row after row

    @staticmethod
    def of(sources: Tensor, count: int) -> "Readers | None":
        """Readers where there is something to say: None where row i looks at source i."""
        readers = Readers(sources, count)
        return None if readers.most == 1 and readers.places is None else readers

    def grouped(self, query: Tensor) -> Tensor:
        """(R, H, N, D) -> (S, H, M·N, D)"""
        _, heads, tokens, width = query.shape
        if self.places is not None:
            whole = query.new_zeros((self.count * self.most, heads, tokens, width))
            query = whole.index_copy(0, self.places, query)
        rows = query.reshape(self.count, self.most, heads, tokens, width)
        return rows.transpose(1, 2).reshape(self.count, heads, self.most * tokens, width)

    def spread(self, mixed: Tensor) -> Tensor:
        """(S, H, M·N, D) -> (R, H, N, D)"""
        _, heads, queries, width = mixed.shape
        rows = mixed.reshape(self.count, heads, self.most, queries // self.most, width).transpose(1, 2).flatten(0, 1)
        return rows if self.places is None else rows.index_select(0, self.places)

    def shape(self, x: Tensor) -> tuple[int, int]:
        """(R, N, E) -> S, M·N"""
        return self.count, self.most * x.shape[1]


class BlockCache:
    """What one block keeps: of its own tokens, and of the source it looks at (computed once)."""

    def __init__(self) -> None:
        self.own, self.source = KeyValueCache(), KeyValueCache()

    def reorder(self, index: Tensor) -> None:
        """Item i becomes a copy of item index[i]."""
        self.own.reorder(index)
        self.source.reorder(index)


class StackCache:
    """What a whole encoder or decoder keeps, block by block."""

    def __init__(self, depth: int) -> None:
        self.blocks: Sequence[BlockCache] = tuple(BlockCache() for _ in range(require_count("depth", depth)))

    @staticmethod
    def of(cache: "StackCache | None", depth: int) -> Sequence[BlockCache | None]:
        """One cache for each of `depth` blocks, or none for any."""
        if cache is None:
            return (None,) * depth
        if not isinstance(cache, StackCache) or len(cache.blocks) != depth:
            given = f"for {len(cache.blocks)} blocks" if isinstance(cache, StackCache) else f"a {type(cache).__name__}"
            raise OptionError(f"the cache is {given} and there are {depth} blocks; make it with new_cache().")
        return cache.blocks

    @property
    def length(self) -> int:
        """How many tokens it has seen, which is the place of the next one."""
        return self.blocks[0].own.length

    def reorder(self, index: Tensor) -> None:
        """Item i becomes a copy of item index[i]."""
        for block in self.blocks:
            block.reorder(index)

    def reorder_rows(self, index: Tensor, readers: Readers | None, sources: Tensor | None = None) -> None:
        """Row i becomes a copy of row index[i], and looks at the source that `readers` say (its own where None).

        sources: those that stay, in their new order; all of them unless given.
        """
        for block in self.blocks:
            block.own.reorder(index)
            if sources is not None:
                block.source.reorder(sources)
            block.source.readers = readers


def _extended(room: Tensor, length: int, new: Tensor) -> Tensor:
    """The room with `new` behind its first `length` tokens; a room twice as large where it is full."""
    total = length + new.shape[2]
    if torch.is_grad_enabled() or (room.is_inference() and not torch.is_inference_mode_enabled()):
        return torch.cat((room[:, :, :length], new), dim=2)
    if total > room.shape[2]:
        larger = room.new_empty((*room.shape[:2], max(total, 2 * length), room.shape[3]))
        larger[:, :, :length] = room[:, :, :length]
        room = larger
    room[:, :, length:total] = new
    return room
