"""Attention as layers: one head with its matrices in the open, and many heads side by side."""

# B batch, H query heads, G key heads, Q queries, K keys, D head width, E width of the token vectors

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from .. import formula
from ..errors import OptionError, ShapeError
from ..formula import Attended, positions
from ..formula.masks import Mask
from .cache import KeyValueCache
from .mixing import Mixing, require_mask
from .options import head_width, require_count, require_rate, require_tensor, require_vectors
from .rotary import Rotary

__all__ = ["Attended", "MultiHeadAttention", "Rotary", "SelfAttention"]


class SelfAttention(nn.Module):
    """One head, as it is written on paper: softmax(X·W_q (X·W_k)ᵀ / √d_k) X·W_v.

    width: of the token vectors; key_width (d_k) and value_width (d_v) are the same unless given.
    """

    W_q: Tensor
    W_k: Tensor
    W_v: Tensor

    def __init__(self, width: int, *, key_width: int | None = None, value_width: int | None = None) -> None:
        super().__init__()
        require_count("width", width)
        for name, columns in (("W_q", key_width), ("W_k", key_width), ("W_v", value_width)):
            matrix = torch.empty(width, width if columns is None else require_count(f"the width of {name}", columns))
            self.register_parameter(name, nn.Parameter(nn.init.xavier_uniform_(matrix)))

    @classmethod
    def of(cls, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> "SelfAttention":
        """The layer with these matrices, (E, d_k) twice and (E, d_v). It trains copies; yours stay as they are."""
        matrices = {"W_q": W_q, "W_k": W_k, "W_v": W_v}
        for name, matrix in matrices.items():
            require_tensor(name, matrix)
        if any(matrix.ndim != 2 or len(matrix) != len(W_q) for matrix in matrices.values()) or W_q.shape != W_k.shape:
            shapes = ", ".join(f"{name} {tuple(matrix.shape)}" for name, matrix in matrices.items())
            raise ShapeError(f"{shapes}; they must be (width, d_k), (width, d_k) and (width, d_v).")
        layer = cls(W_q.shape[0], key_width=W_q.shape[1], value_width=W_v.shape[1])
        for name, matrix in matrices.items():
            setattr(layer, name, nn.Parameter(matrix.detach().clone()))
        return layer

    def forward(self, x: Tensor, *, mask: Mask | Tensor | None = None) -> Tensor:
        """(.., Q, E) -> (.., Q, d_v)"""
        query, key, value = self.project(x, mask=mask)
        return formula.attend(query, key, value, mask)  # type: ignore[no-any-return]

    def attend(self, x: Tensor, *, mask: Mask | Tensor | None = None) -> Attended:
        """The same, with the weights, (.., Q, K)."""
        query, key, value = self.project(x, mask=mask)
        return formula.attended(query, key, value, mask)

    def project(self, x: Tensor, *, mask: Mask | Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values as they enter the dot product: (.., Q, d_k) twice, (.., Q, d_v)."""
        require_tensor("x", x)
        if x.ndim < 2 or x.shape[-1] != len(self.W_q):
            raise ShapeError(f"x has shape {tuple(x.shape)}; it must be (.., tokens, {len(self.W_q)}).")
        require_mask(mask, (*x.shape[:-1], x.shape[-2]), x)
        return x @ self.W_q, x @ self.W_k, x @ self.W_v

    def extra_repr(self) -> str:
        """What `print` shows of it."""
        return ", ".join(f"{name} {tuple(matrix.shape)}" for name, matrix in self.named_parameters())


class MultiHeadAttention(nn.Module):
    """Attention by several heads side by side: to_query, to_key, to_value → mixing → output.

    `layer(x)` attends from x to itself, `layer(x, source)` from x to a source. key_heads: fewer heads for keys and
    values than for queries (grouped; 1 is multi-query). source_width: of the source's vectors, `width` unless given.
    dropout falls on the weights. rotary: positions, in self-attention only.

    A mask is a `regard.formula.masks` object or a boolean tensor that broadcasts to (B, H, Q, K), True = may attend.
    A query that may attend to nothing gets zeros from the heads, so the bias of `output` is all it says.
    """

    def __init__(
        self, width: int, heads: int, *, key_heads: int | None = None, source_width: int | None = None,
        bias: bool = True, dropout: float = 0.0, rotary: Rotary | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.width, self.heads, self.rotary = width, heads, _checked_rotary(rotary, source_width)
        self.key_heads = heads if key_heads is None else key_heads
        self.head_width = head_width(width, heads, self.key_heads)
        self.source_width = require_count("source_width", width if source_width is None else source_width)
        self._frequencies = None if rotary is None else tuple(rotary.frequencies(self.head_width))
        shared = self.key_heads * self.head_width
        self.to_query = nn.Linear(width, width, bias=bias)
        self.to_key = nn.Linear(self.source_width, shared, bias=bias)
        self.to_value = nn.Linear(self.source_width, shared, bias=bias)
        # √D is left to the kernel's own default, unless the positions ask for another temperature.
        scale = None if rotary is None or rotary.temperature == 1 else rotary.temperature / math.sqrt(self.head_width)
        self.mixing = Mixing(scale=scale, dropout=require_rate("dropout", dropout))
        self.output = nn.Linear(width, width, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform matrices, biases of 0."""
        for linear in (self.to_query, self.to_key, self.to_value, self.output):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def forward(
        self, x: Tensor, source: Tensor | None = None, *, mask: Mask | Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:  # fmt: skip
        """The answer alone, by PyTorch's fast kernel.   (B, Q, E), (B, K, source_width) -> (B, Q, E)

        cache: self-attention adds x's keys to it and sees all that it holds; cross-attention fills it from the source
        once and then no longer looks at the source.
        """
        query, key, value = self.project(x, source, mask=mask, cache=cache)
        mixed = self.mixing(query, key, value, mask)
        return self._joined(mixed if cache is None else cache.spread(mixed))

    def attend(
        self, x: Tensor, source: Tensor | None = None, *, mask: Mask | Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Attended:  # fmt: skip
        """The answer and each head's weights, (B, H, Q, K), by the formula; the arguments are those of the call."""
        query, key, value = self.project(x, source, mask=mask, cache=cache)
        mixed, found = self.mixing.attend(query, key, value, mask)
        if cache is not None:
            mixed, found = cache.spread(mixed), cache.spread(found)
        return Attended(self._joined(mixed), found)

    def project(
        self, x: Tensor, source: Tensor | None = None, *, mask: Mask | Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """Queries, keys and values as they enter the dot product: (B, H, Q, D), (B, G, K, D) twice."""
        looked_at = self.check(x, source, mask=mask, cache=cache)
        if source is not None and cache is not None and cache.length:
            return cache.grouped(self._split(self.to_query(x))), *cache.kept()
        if source is None:
            query, key, value = map(self._split, _side_by_side(x, self.to_query, self.to_key, self.to_value))
        else:
            query = self._split(self.to_query(x))
            key, value = map(self._split, _side_by_side(looked_at, self.to_key, self.to_value))
        query, key = self._turned(query, key, 0 if cache is None else cache.length)
        return (query, key, value) if cache is None else (cache.grouped(query), *cache.append(key, value))

    def _turned(self, query: Tensor, key: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Queries and keys with their places in them, counted from `start`; as they are where there is no rotary."""
        if self.rotary is None or self._frequencies is None:
            return query, key
        if self._traced(query):
            places = torch.arange(start, start + query.shape[2], device=query.device)
            cos, sin = positions.angles(places, list(self._frequencies))
        else:
            cos, sin = self.rotary.angles.at(start, query, self._frequencies)
        pairs = self.rotary.interleaved
        return positions.rotate(query, cos, sin, interleaved=pairs), positions.rotate(key, cos, sin, interleaved=pairs)

    @staticmethod
    def _traced(x: Tensor) -> bool:
        """Whether a graph is made: a table would be a constant of one length in it, and a pretended tensor none."""
        return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None or type(x) is not Tensor

    def _split(self, x: Tensor) -> Tensor:
        """(B, N, heads·D) -> (B, heads, N, D)"""
        return x.view(*x.shape[:2], x.shape[2] // self.head_width, self.head_width).transpose(1, 2)

    def _joined(self, mixed: Tensor) -> Tensor:
        """(B, H, Q, D) -> (B, Q, E)"""
        return self.output(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def check(
        self, x: Tensor, source: Tensor | None = None, *, mask: Mask | Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:  # fmt: skip
        """What is looked at, x itself or the source, once everything fits together. Nothing is computed before that."""
        require_vectors("x", x, self.width)
        before = 0 if cache is None else cache.length
        if source is not None:
            self._require_source(x, source, cache)
        elif self.source_width != self.width:
            raise ShapeError(
                f"this layer attends from vectors of {self.width} to a source of {self.source_width}; give it source=, "
                f"(batch, keys, {self.source_width}). x alone, {tuple(x.shape)}, cannot be both."
            )
        keys = x.shape[1] + before if source is None else source.shape[1]
        rows, queries = x.shape[:2] if cache is None else cache.grouped_shape(x)
        require_mask(mask, (rows, self.heads, queries, keys), x)
        return x if source is None else source

    def _require_source(self, x: Tensor, source: Tensor, cache: KeyValueCache | None) -> None:
        require_vectors("source", source, self.source_width)
        if self.rotary is not None:
            raise OptionError("rotary positions belong to one sequence; make cross-attention with rotary=None.")
        if source.shape[0] != (x.shape[0] if cache is None else cache.grouped_shape(x)[0]):
            raise ShapeError(f"x {tuple(x.shape)} and source {tuple(source.shape)} differ in their first axis, batch.")
        if cache is not None and cache.length:
            batch, _, tokens, _ = cache.kept()[0].shape
            if (batch, tokens) != tuple(source.shape[:2]):
                raise ShapeError(
                    f"the cache keeps a source of {batch} items and {tokens} tokens, and this one is "
                    f"{tuple(source.shape)}. A new source needs a new cache."
                )

    def extra_repr(self) -> str:
        """What `print` shows of it."""
        grouped = "" if self.key_heads == self.heads else f", key_heads={self.key_heads}"
        return f"heads={self.heads}{grouped}" + ("" if self.rotary is None else f", rotary={self.rotary}")


def _side_by_side(x: Tensor, *linears: nn.Linear) -> tuple[Tensor, ...]:
    """What each matrix makes of x: as one product in a compiled graph, which lays the matrices together for nothing."""
    if not torch.compiler.is_compiling():
        return tuple(linear(x) for linear in linears)
    bias = None if linears[0].bias is None else torch.cat([linear.bias for linear in linears])
    made = functional.linear(x, torch.cat([linear.weight for linear in linears]), bias)
    return tuple(made.split([linear.out_features for linear in linears], dim=-1))


def _checked_rotary(rotary: Rotary | None, source_width: int | None) -> Rotary | None:
    if rotary is not None and not isinstance(rotary, Rotary):
        raise OptionError(f"rotary is {rotary!r}; give Rotary() with the options you want, or None for no positions.")
    if rotary is not None and source_width is not None:
        raise OptionError(f"rotary positions belong to one sequence, and source_width={source_width} is of two.")
    return rotary
