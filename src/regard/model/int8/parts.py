"""What the blocks of a quantised encoder and decoder share: feed-forward, residual, and places in queries and keys."""

# N tokens, D head width, E width

from collections.abc import Callable

from torch import Tensor

from ...formula import positions
from ..attention import MultiHeadAttention
from ..feed_forward import ACTIVATIONS, FeedForward
from .linear import Linear8


class FeedForward8:
    """The feed-forward part; its first matrices in one.   (.., E) -> (.., E)"""

    def __init__(self, part: FeedForward, *, engine: str) -> None:
        first = [part.to_hidden] if part.to_gated is None else [part.to_hidden, part.to_gated]
        self._gated = part.to_gated is not None
        rectified = part.activation == "relu"
        self._activation = None if rectified else ACTIVATIONS[part.activation]
        self._to_hidden = Linear8.of(first, engine=engine, relu=rectified)
        self._output = Linear8.of([part.output], engine=engine)

    def __call__(self, x: Tensor) -> Tensor:
        hidden = self._to_hidden(x)
        if self._gated and self._activation is not None:
            hidden, gate = hidden.chunk(2, dim=-1)
            hidden = self._activation(hidden).mul_(gate)
        elif self._activation is not None:
            hidden = self._activation(hidden)
        return self._output(hidden)


def with_residual(x: Tensor, norm: Callable[[Tensor], Tensor], first: bool, part: Callable[[Tensor], Tensor]) -> Tensor:
    """x and what a part adds to it, in x's own memory; normed before the part (`first`) or after."""
    return x.add_(part(norm(x))) if first else norm(x.add_(part(x)))


def scale_of(attention: MultiHeadAttention) -> float:
    """What its scores are multiplied by. It goes into the matrix of the queries, and no score is scaled."""
    scale = attention.mixing.scale
    return attention.head_width**-0.5 if scale is None else scale


def turned(attention: MultiHeadAttention, heads: Tensor, places: Tensor) -> Tensor:
    """Queries and keys, side by side, with the places of their tokens in them.   (.., N, D), (N,) -> (.., N, D)"""
    rotary = attention.rotary
    if rotary is None:
        return heads
    stop = int(places[-1] if len(places) == 1 else places.max()) + 1
    cos, sin = rotary.angles.at(0, heads.new_empty((stop, 0)), tuple(rotary.frequencies(attention.head_width)))
    return positions.rotate(heads, cos[places], sin[places], interleaved=rotary.interleaved)  # type: ignore[no-any-return]
