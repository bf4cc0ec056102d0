"""The decoder in 8 bits, a token at a time: few calls, and keys and values as they are multiplied."""

# R rows, B sources, M most rows of a source, H query heads, G key heads, S tokens of the source, D head width, E width

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ..attention import MultiHeadAttention
from ..blocks import DecoderBlock
from ..cache import Readers
from ..decoder import Decoder
from .linear import FEW_ROWS, MANY_ROWS, Linear8
from .parts import FeedForward8, scale_of, turned, with_residual

ROOM = 32  # tokens that there is room for at first


class Seen:
    """What the rows have written so far, as keys and values of each block, in rooms that grow by doubling.

    Each has a second room, into which rows move and back: fresh memory at each step would cost more than the copying,
    since the system hands it out page by page.
    """

    def __init__(self, rooms: list[Tensor]) -> None:
        """rooms: of each block, (2, R, G, room, D)."""
        self.length = 0
        self._rooms, self._spares = rooms, [room[:, :0] for room in rooms]

    def add(self, block: int, pair: Tensor) -> tuple[Tensor, Tensor]:
        """Keep a token's keys and values, (2, R, G, D); all so far, (R·G, length + 1, D) twice."""
        room = self._rooms[block]
        if self.length == room.shape[3]:
            larger = room.new_empty((*room.shape[:3], 2 * room.shape[3], room.shape[4]))
            larger[:, :, :, : self.length] = room
            room = self._rooms[block] = larger
        room[:, :, :, self.length] = pair
        keys, values = room.flatten(1, 2)[:, :, : self.length + 1]
        return keys, values

    def reorder(self, index: Tensor) -> None:
        """Row i becomes a copy of row index[i]; only what is written is copied."""
        rows = len(index)
        for block, (room, spare) in enumerate(zip(self._rooms, self._spares, strict=True)):
            fits = spare.shape[1] >= rows and spare.shape[3] == room.shape[3]
            moved = spare[:, :rows] if fits else room.new_empty((2, rows, *room.shape[2:]))
            torch.index_select(room[:, :, :, : self.length], 1, index, out=moved[:, :, :, : self.length])
            self._rooms[block], self._spares[block] = moved, room


@dataclass(frozen=True)
class Source:
    """The sources as the blocks look at them, each kept once however many rows look at it."""

    keys: tuple[Tensor, ...]  # of each block, (B, G, D, S)
    values: tuple[Tensor, ...]  # (B, G, S, D)
    bias: Tensor | None  # (B, 1, 1, S): −inf where a source is padded; None: none is

    def __len__(self) -> int:
        return len(self.keys[0])

    def of(self, index: Tensor) -> "Source":
        """Some of the sources, in this order."""
        keys, values = (tuple(one.index_select(0, index) for one in many) for many in (self.keys, self.values))
        return Source(keys, values, None if self.bias is None else self.bias.index_select(0, index))


class Decoder8:
    """A vector per row → what the decoder makes of it.   (R, E) -> (R, E)"""

    def __init__(self, decoder: Decoder) -> None:
        self._blocks = [_Block(block) for block in decoder.blocks]  # type: ignore[arg-type]
        self._norm = decoder.norm

    def look(self, vectors: Tensor, mask: Tensor) -> Source:
        """The keys and values of the sources, computed once.   (B, S, E), and which are tokens, (B, S)"""
        pairs = [block.cross.look(vectors) for block in self._blocks]
        bias = None
        if not bool(mask.all()):
            bias = torch.zeros_like(mask, dtype=vectors.dtype).masked_fill_(~mask, -torch.inf)[:, None, None]
        return Source(tuple(keys for keys, _ in pairs), tuple(values for _, values in pairs), bias)

    def new_seen(self, rows: int) -> Seen:
        """Rooms with nothing in them."""
        layers = [block.own.layer for block in self._blocks]
        return Seen([torch.empty(2, rows, layer.key_heads, ROOM, layer.head_width) for layer in layers])

    def step(self, x: Tensor, seen: Seen, source: Source, readers: Readers | None) -> Tensor:
        """Each row goes on by a token; `readers` say who looks at which source, None: row i at source i."""
        for number, block in enumerate(self._blocks):
            x = block(x, number, seen, source, readers)
        seen.length += 1
        return x if self._norm is None else self._norm(x)


class _Block:
    def __init__(self, block: DecoderBlock) -> None:
        self._first = block.config.norm_first
        self.own, self._own_norm = _Own(block.attention), block.attention_norm
        self.cross, self._cross_norm = _Cross(block.cross_attention), block.cross_norm
        self._fed, self._feed_norm = FeedForward8(block.feed_forward, engine=FEW_ROWS), block.feed_forward_norm

    def __call__(self, x: Tensor, number: int, seen: Seen, source: Source, readers: Readers | None) -> Tensor:
        own = partial(self.own, number=number, seen=seen)
        x = with_residual(x, self._own_norm, self._first, own)
        cross = partial(self.cross, number=number, source=source, readers=readers)
        x = with_residual(x, self._cross_norm, self._first, cross)
        return with_residual(x, self._feed_norm, self._first, self._fed)


class _Own:
    """What a row looks at of its own."""

    def __init__(self, layer: MultiHeadAttention) -> None:
        self.layer = layer
        self._project = Linear8.of(
            [layer.to_query, layer.to_key, layer.to_value], scales=[scale_of(layer), 1.0, 1.0], engine=FEW_ROWS
        )
        self._output = Linear8.of([layer.output], engine=FEW_ROWS)

    def __call__(self, x: Tensor, number: int, seen: Seen) -> Tensor:
        layer = self.layer
        heads = self._project(x).view(len(x), -1, layer.head_width)  # (R, H + 2·G, D)
        if layer.rotary is not None:
            both = heads[:, : layer.heads + layer.key_heads, None]
            both.copy_(turned(layer, both, torch.tensor([seen.length])))
        query, pair = heads.split((layer.heads, 2 * layer.key_heads), dim=1)
        keys, values = seen.add(number, pair.unflatten(1, (2, layer.key_heads)).transpose(0, 1))
        query = query.reshape(len(keys), -1, layer.head_width)  # heads that share keys are queries of one product
        mixed = torch.bmm(torch.bmm(query, keys.transpose(1, 2)).softmax(dim=-1), values)
        return self._output(mixed.view(len(x), -1))


class _Cross:
    """What a row looks at of its source."""

    def __init__(self, layer: MultiHeadAttention) -> None:
        self._heads, self._key_heads, self._width = layer.heads, layer.key_heads, layer.head_width
        self._to_query = Linear8.of([layer.to_query], scales=[scale_of(layer)], engine=FEW_ROWS)
        self._to_pair = Linear8.of([layer.to_key, layer.to_value], engine=MANY_ROWS)
        self._output = Linear8.of([layer.output], engine=FEW_ROWS)

    def look(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the sources.   (B, S, E) -> (B, G, D, S), (B, G, S, D)"""
        pair = self._to_pair(vectors).unflatten(-1, (2, self._key_heads, self._width))
        keys, values = pair.unbind(2)
        return keys.permute(0, 2, 3, 1).contiguous(), values.transpose(1, 2).contiguous()

    def __call__(self, x: Tensor, number: int, source: Source, readers: Readers | None) -> Tensor:
        query = self._to_query(x).view(len(x), self._heads, 1, self._width)
        if readers is not None:
            query = readers.grouped(query)  # (B, H, M, D)
        keys, values = source.keys[number].flatten(0, 1), source.values[number].flatten(0, 1)
        scores = torch.bmm(query.reshape(len(keys), -1, self._width), keys)
        if source.bias is not None:
            scores.view(len(source), -1, 1, scores.shape[-1]).add_(source.bias)
        mixed = torch.bmm(scores.softmax(dim=-1), values).view(len(source), self._heads, -1, self._width)
        if readers is not None:
            mixed = readers.spread(mixed)
        return self._output(mixed.reshape(len(x), -1))
