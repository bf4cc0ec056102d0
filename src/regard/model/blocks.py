"""Encoder and decoder blocks: attention and feed-forward, each with its residual and its norm."""

# B batch, N tokens, S tokens of the source, E width

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..formula import masks
from ..formula.masks import Mask
from .attention import MultiHeadAttention, Rotary
from .cache import BlockCache
from .feed_forward import ACTIVATIONS, FeedForward
from .norm import NORMS, make_norm, normed
from .options import head_width, require_count, require_name, require_positive, require_rate, require_vectors

CAUSAL = masks.causal()


@dataclass(frozen=True, kw_only=True)
class BlockConfig:
    """What a block is made of, checked. The block of Vaswani et al. 2017 is the default with norm_first=False."""

    width: int
    heads: int
    key_heads: int | None = None  # as many as heads
    hidden: int | None = None  # of the feed-forward part, 4·width
    activation: str = "relu"  # or "gelu", "swiglu"
    norm: str = "layer"  # or "rms"
    norm_first: bool = True  # pre-norm: x + part(norm(x)); else post-norm: norm(x + part(x))
    eps: float = 1e-5
    bias: bool = True
    dropout: float = 0.0  # on the weights, on the hidden columns, and on what each part adds to the residual
    hidden_dropout: float | None = None  # on the hidden columns, where it is to be another
    rotary: Rotary | None = None

    def __post_init__(self) -> None:
        head = head_width(self.width, self.heads, self.heads if self.key_heads is None else self.key_heads)
        if self.rotary is not None:
            self.rotary.frequencies(head)
        if self.hidden is not None:
            require_count("hidden", self.hidden)
        require_name("activation", self.activation, ACTIVATIONS)
        require_name("norm", self.norm, NORMS)
        require_positive("eps", self.eps)
        require_rate("dropout", self.dropout)
        if self.hidden_dropout is not None:
            require_rate("hidden_dropout", self.hidden_dropout)

    def make_attention(self) -> MultiHeadAttention:
        """Self-attention."""
        return self._attention(rotary=self.rotary)

    def make_cross_attention(self, source_width: int | None) -> MultiHeadAttention:
        """Attention to a source, whose places rotary positions say nothing about."""
        return self._attention(source_width=source_width)

    def _attention(self, *, rotary: Rotary | None = None, source_width: int | None = None) -> MultiHeadAttention:
        return MultiHeadAttention(
            self.width, self.heads, key_heads=self.key_heads, source_width=source_width, bias=self.bias,
            dropout=self.dropout, rotary=rotary,
        )  # fmt: skip

    def make_feed_forward(self) -> FeedForward:
        """The part that treats each token by itself."""
        dropout = self.dropout if self.hidden_dropout is None else self.hidden_dropout
        return FeedForward(self.width, self.hidden, activation=self.activation, bias=self.bias, dropout=dropout)

    def make_norm(self) -> nn.Module:
        """One of the block's norms."""
        return make_norm(self.norm, self.width, eps=self.eps, bias=self.bias)


class Block(nn.Module):
    """What both kinds of block share: how a part is joined to the residual."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.config = config

    def _residual(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        if self.config.norm_first:
            return x + part(normed(norm, x))
        return normed(norm, x + part(x))

    def _fed(self, x: Tensor, feed_forward: FeedForward) -> Tensor:
        return functional.dropout(feed_forward(x), self.config.dropout, self.training)

    def _dropped(self, attended: Tensor) -> Tensor:
        """Dropout drawn token by token across the batch, as nn.Transformer does: one seed then means one model.

        Compiled, random numbers are others anyway, and nothing is moved about for their sake.
        """
        if not self.training or self.config.dropout == 0:
            return attended
        if torch.compiler.is_compiling():
            return functional.dropout(attended, self.config.dropout)
        by_token = attended.transpose(0, 1).contiguous()
        return functional.dropout(by_token, self.config.dropout).transpose(0, 1)


class EncoderBlock(Block):
    """Self-attention, then feed-forward. With mask=masks.causal() it is the block of a GPT."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__(config)
        self.attention, self.attention_norm = config.make_attention(), config.make_norm()
        self.feed_forward, self.feed_forward_norm = config.make_feed_forward(), config.make_norm()

    def forward(self, x: Tensor, *, mask: Mask | Tensor | None = None, cache: BlockCache | None = None) -> Tensor:
        """(B, N, E) -> (B, N, E)"""
        require_vectors("x", x, self.config.width)
        own = None if cache is None else cache.own
        x = self._residual(x, self.attention_norm, lambda x: self._dropped(self.attention(x, mask=mask, cache=own)))
        return self._residual(x, self.feed_forward_norm, lambda x: self._fed(x, self.feed_forward))


class DecoderBlock(Block):
    """Masked self-attention, then cross-attention to a source, then feed-forward.

    source_width: of the source's vectors, the block's own width unless given.
    """

    def __init__(self, config: BlockConfig, *, source_width: int | None = None) -> None:
        super().__init__(config)
        self.attention, self.attention_norm = config.make_attention(), config.make_norm()
        self.cross_attention, self.cross_norm = config.make_cross_attention(source_width), config.make_norm()
        self.feed_forward, self.feed_forward_norm = config.make_feed_forward(), config.make_norm()

    def forward(
        self, x: Tensor, source: Tensor, *, mask: Mask | Tensor | None = CAUSAL,
        cross_mask: Mask | Tensor | None = None, cache: BlockCache | None = None,
    ) -> Tensor:  # fmt: skip
        """(B, N, E), (B, S, source_width) -> (B, N, E). Causal unless another mask is given; None is no mask at all."""
        require_vectors("x", x, self.config.width)
        own, other = (None, None) if cache is None else (cache.own, cache.source)
        self.cross_attention.check(x, source, mask=cross_mask, cache=other)  # before self-attention fills its cache
        x = self._residual(x, self.attention_norm, lambda x: self._dropped(self.attention(x, mask=mask, cache=own)))
        x = self._residual(
            x, self.cross_norm, lambda x: self._dropped(self.cross_attention(x, source, mask=cross_mask, cache=other))
        )
        return self._residual(x, self.feed_forward_norm, lambda x: self._fed(x, self.feed_forward))
