"""The encoder in 8 bits: the tokens of all texts one behind the other, so that nothing is spent on padding."""

# B batch, N tokens of a padded text, T tokens of a piece, H query heads, G key heads, D head width, E width

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import torch
from torch import Tensor
from torch.nn import functional

from ..attention import MultiHeadAttention
from ..blocks import EncoderBlock
from ..encoder import Encoder
from .linear import MANY_ROWS, Linear8
from .parts import FeedForward8, scale_of, turned, with_residual

TOKENS = 1024  # read at once: more do not fit the processor's cache, fewer leave its cores waiting for each other


@dataclass(frozen=True)
class Piece:
    """Some texts of a batch, the shorter ones first: those of equal length are mixed at once, without a mask."""

    tokens: Tensor  # (T,) of B·N, where each token stands in the padded batch
    places: Tensor  # (T,) and in its text
    runs: tuple[tuple[int, int], ...]  # how many texts there are of which length


class Encoder8:
    """Vectors → vectors in context.   (B, N, E), and which are tokens, (B, N) -> (B, N, E), 0 where there is none"""

    def __init__(self, encoder: Encoder) -> None:
        self._blocks = [_Block(block) for block in encoder.blocks]  # type: ignore[arg-type]
        self._norm = encoder.norm

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        vectors, out = x.flatten(0, 1), x.new_zeros(x.shape)
        for piece in pieces(mask):
            read = vectors.index_select(0, piece.tokens)
            for block in self._blocks:
                read = block(read, piece)
            out.flatten(0, 1)[piece.tokens] = read if self._norm is None else self._norm(read)
        return out


def pieces(mask: Tensor) -> Iterator[Piece]:
    """The texts of a batch, sorted by length, about as many tokens at a time as are best read at once.   (B, N)"""
    counts = mask.sum(dim=1).tolist()
    standing = torch.arange(mask.numel()).view(mask.shape)
    for rows in _cut(sorted(range(len(counts)), key=counts.__getitem__), counts):
        tokens = standing[rows][mask[rows]]
        runs = tuple((len(list(same)), length) for length, same in groupby(counts[row] for row in rows))
        yield Piece(tokens, tokens % mask.shape[1], runs)


def _cut(order: Sequence[int], counts: Sequence[int]) -> Iterator[list[int]]:
    """Rows in their order, so many at a time that they hold no more than TOKENS, or one."""
    rows: list[int] = []
    for row in order:
        if rows and sum(counts[other] for other in rows) + counts[row] > TOKENS:
            yield rows
            rows = []
        rows.append(row)
    yield rows


class _Block:
    def __init__(self, block: EncoderBlock) -> None:
        self._first = block.config.norm_first
        self._attention, self._attention_norm = _Attention(block.attention), block.attention_norm
        self._fed = FeedForward8(block.feed_forward, engine=MANY_ROWS)
        self._feed_norm = block.feed_forward_norm

    def __call__(self, x: Tensor, piece: Piece) -> Tensor:
        x = with_residual(x, self._attention_norm, self._first, partial(self._attention, piece=piece))
        return with_residual(x, self._feed_norm, self._first, self._fed)


class _Attention:
    def __init__(self, layer: MultiHeadAttention) -> None:
        self._layer = layer
        self._project = Linear8.of(
            [layer.to_query, layer.to_key, layer.to_value], scales=[scale_of(layer), 1.0, 1.0], engine=MANY_ROWS
        )
        self._output = Linear8.of([layer.output], engine=MANY_ROWS)

    def __call__(self, x: Tensor, piece: Piece) -> Tensor:
        layer = self._layer
        heads = self._project(x).unflatten(-1, (-1, layer.head_width))  # (T, H + 2·G, D)
        if layer.rotary is not None:
            both = heads[:, : layer.heads + layer.key_heads]
            both.copy_(turned(layer, both.transpose(0, 1), piece.places).transpose(0, 1))
        runs = heads.split([count * length for count, length in piece.runs])
        mixed = [self._mixed(run.unflatten(0, sizes)) for run, sizes in zip(runs, piece.runs, strict=True)]
        return self._output(torch.cat(mixed))

    def _mixed(self, heads: Tensor) -> Tensor:
        """Texts of one length.   (B, N, H + 2·G, D) -> (B·N, E)"""
        layer = self._layer
        query, key, value = heads.transpose(1, 2).split((layer.heads, layer.key_heads, layer.key_heads), dim=1)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, scale=1.0, enable_gqa=layer.heads != layer.key_heads
        )
        return mixed.transpose(1, 2).flatten(0, 1).flatten(1)
