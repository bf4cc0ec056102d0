"""The reader: token ids → each token in its context, the part that every model which reads a text begins with."""

# B batch, N tokens, E width

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import OptionError, ShapeError
from ..formula.masks import Mask
from .attention import Rotary
from .blocks import BlockConfig
from .embedding import entered, make_embedding, require_ids, require_known, require_padding
from .encoder import Encoder
from .options import require_count, require_rate, require_sizes

MOST_SEGMENTS = 2**10
# What two readers must have in common for the weights of one to mean the same in the other.
SHAPE = ("vocabulary", "width", "heads", "depth", "hidden", "activation", "norm", "rotary_base")


@dataclass(frozen=True, kw_only=True)
class ReaderConfig:
    """The shape of a reader, checked."""

    vocabulary: int  # pieces, special ones and all
    width: int = 256
    heads: int = 8
    depth: int = 6
    hidden: int = 512  # of the feed-forward part
    activation: str = "swiglu"
    norm: str = "layer"
    rotary_base: float = 10000.0
    longest: int = 512  # tokens of a text; what lies beyond was never trained
    dropout: float = 0.1
    segments: int = 0  # kinds of parts that a text may have, 2 for question and context; 0: no such thing
    tokenizer: str = ""  # the hash of the tokenizer whose ids it reads; "": not known

    def __post_init__(self) -> None:
        require_sizes(self)
        if self.segments != 0 and require_count("segments", self.segments) > MOST_SEGMENTS:
            raise OptionError(f"segments is {self.segments}; it must be at most {MOST_SEGMENTS:,}.")
        if not isinstance(self.tokenizer, str):
            raise OptionError(f"tokenizer is {self.tokenizer!r}; it must be the hash of a tokenizer, as text.")
        require_rate("dropout", self.dropout)
        self.block()

    def block(self) -> BlockConfig:
        """What its blocks are made of."""
        return BlockConfig(
            width=self.width, heads=self.heads, hidden=self.hidden, activation=self.activation, norm=self.norm,
            dropout=self.dropout, rotary=Rotary(base=self.rotary_base),
        )  # fmt: skip


class Reader(nn.Module):
    """Token ids → embedding → encoder: each token in its context.   `Reader(config).vectors(ids, mask)`

    Texts of differing length are padded, and `mask` says where they are texts: booleans, (B, N), True = a token. Where
    nothing is padded leave it out, which is faster. segments: the kind of part that each token belongs to, (B, N).
    """

    embedding: nn.Embedding
    segment_embedding: nn.Embedding | None
    encoder: Encoder

    def __init__(self, config: ReaderConfig) -> None:
        super().__init__()
        self.config: Any = config
        self.embedding = make_embedding(config.vocabulary, config.width)
        self.segment_embedding = None
        if config.segments:
            # Zeros: who was trained without segments reads as before, until there is something to be told apart.
            self.segment_embedding = nn.Embedding(config.segments, config.width)
            nn.init.zeros_(self.segment_embedding.weight)
        self.encoder = Encoder(config.block(), config.depth)

    def forward(self, ids: Tensor, mask: Mask | Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """The same as `vectors`.   (B, N) -> (B, N, E)"""
        return self.vectors(ids, mask, segments)

    def vectors(self, ids: Tensor, mask: Mask | Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Each token in its context.   (B, N) -> (B, N, E)"""
        require_ids("ids", ids, longest=self.config.longest)
        # Looking at numbers is waited for, so not in training.
        if not self.training and not torch.compiler.is_compiling():
            require_known("ids", ids, self.config.vocabulary)
        x = self._embedded(ids, segments) * math.sqrt(self.config.width)
        x = entered(x, self.config.dropout, self.training)
        return self.encoder(x, mask=over_heads(mask, ids))  # type: ignore[no-any-return]

    def start_from(self, other: "Reader") -> None:
        """Take over the weights of a reader that was trained, all that both have; segments may be new."""
        _require_same_tokenizer(self.config.tokenizer, other.config.tokenizer)
        _require_same_shape(self.config, other.config)
        own, found = self.state_dict(), other.state_dict()
        with torch.no_grad():
            for name in own.keys() & found.keys():
                own[name].copy_(found[name])

    def _embedded(self, ids: Tensor, segments: Tensor | None) -> Tensor:
        """(B, N) -> (B, N, E)"""
        x: Tensor = self.embedding(ids)
        if self.segment_embedding is None:
            if segments is not None:
                raise OptionError("segments are given, and this model has none; make it with segments=2 for two parts.")
            return x
        if segments is None:
            return x + self.segment_embedding.weight[0]
        if segments.shape != ids.shape:
            raise ShapeError(f"ids is {tuple(ids.shape)} and segments {tuple(segments.shape)}; each token has one.")
        if not self.training and not torch.compiler.is_compiling():
            require_known("segments", segments, self.config.segments)
        return x + functional.embedding(segments, self.segment_embedding.weight)


def over_heads(mask: Mask | Tensor | None, ids: Tensor) -> Mask | Tensor | None:
    """A mask of tokens as the layers take it, made once for all of them.   (B, N) -> (B, 1, 1, N)"""
    if not isinstance(mask, Tensor) or mask.ndim != 2:
        return mask
    require_padding("mask", mask, ids)
    return mask[:, None, None, :]


def _require_same_tokenizer(own: str, other: str) -> None:
    if own and other and own != other:
        raise OptionError(
            f"the model to begin with reads the pieces of another tokenizer: {other[:12]}… there, {own[:12]}… here. "
            "Use the tokenizer.json of its folder."
        )


def _require_same_shape(own: ReaderConfig, other: ReaderConfig) -> None:
    """Also what no shape of a weight tells, as the heads; segments may be new."""
    names = (*SHAPE, "segments") if other.segments else SHAPE
    wrong = [name for name in names if getattr(own, name) != getattr(other, name)]
    if wrong:
        here, there = (", ".join(f"{name}={getattr(config, name)!r}" for name in wrong) for config in (own, other))
        raise ShapeError(f"the model to begin with has {there}, and this one {here}; they must be the same.")
