"""The language model: token ids → what comes next, by an encoder in which each token sees those before it (GPT)."""

# B batch, N tokens, K tokens with those of the cache, E width, V pieces of the vocabulary

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..formula.masks import Mask
from .blocks import CAUSAL, BlockConfig
from .cache import StackCache
from .embedding import POSITIONS, Positions, entered, make_embedding, require_ids, require_known
from .encoder import Encoder
from .initialisation import initialise
from .options import require_name, require_rate, require_sizes
from .rotary import Rotary
from .saved import Saved


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig:
    """The shape of a language model, checked. The default is a modern one.

    GPT-2 is `activation="gelu", norm="layer", bias=True, positions="learned", hidden_dropout=0.0`.
    """

    vocabulary: int  # pieces, special ones and all
    width: int = 256
    heads: int = 8
    key_heads: int | None = None  # as many as heads
    depth: int = 6
    hidden: int | None = None  # of the feed-forward part, 4·width
    activation: str = "swiglu"
    norm: str = "rms"
    norm_first: bool = True
    bias: bool = False
    positions: str = "rotary"  # or "learned", "sinusoidal"
    rotary_base: float = 10000.0
    longest: int = 512  # tokens of a text; what lies beyond was never trained
    dropout: float = 0.1
    hidden_dropout: float | None = None  # on the hidden columns of the feed-forward part, where it is to be another
    tied: bool = True  # one matrix for tokens that come in and tokens that are guessed
    tokenizer: str = ""  # the hash of the tokenizer that it was trained with

    def __post_init__(self) -> None:
        require_sizes(self)
        require_name("positions", self.positions, POSITIONS)
        require_rate("dropout", self.dropout)
        self.block()

    def block(self) -> BlockConfig:
        """What its blocks are made of."""
        return BlockConfig(
            width=self.width, heads=self.heads, key_heads=self.key_heads, hidden=self.hidden,
            activation=self.activation, norm=self.norm, norm_first=self.norm_first, bias=self.bias,
            dropout=self.dropout, hidden_dropout=self.hidden_dropout,
            rotary=Rotary(base=self.rotary_base) if self.positions == "rotary" else None,
        )  # fmt: skip


class LanguageModel(Saved):
    """Token ids → embedding → encoder under a causal mask → how well each piece would come next.

    Texts padded on the right need no mask: a token never sees what stands behind it.
    """

    kind: ClassVar[str] = "regard.LanguageModel"
    Config: ClassVar[type] = LanguageModelConfig
    config: LanguageModelConfig

    def __init__(self, config: LanguageModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = make_embedding(config.vocabulary, config.width)
        self.positions = Positions(config.positions, config.longest, config.width)
        self.encoder = Encoder(config.block(), config.depth)
        initialise(self.encoder)
        self.output = None if config.tied else nn.Linear(config.width, config.vocabulary, bias=False)
        if self.output is not None:
            nn.init.normal_(self.output.weight, std=config.width**-0.5)

    def new_cache(self) -> StackCache:
        """An empty cache, for reading a text piece by piece: each call then gives its new tokens alone."""
        return self.encoder.new_cache()

    def forward(self, ids: Tensor, cache: StackCache | None = None) -> Tensor:
        """How well each piece would come after each token, as logits.   (B, N) -> (B, N, V)"""
        return self.guess(self.vectors(ids, cache))

    def vectors(self, ids: Tensor, cache: StackCache | None = None, *, padding: Tensor | None = None) -> Tensor:
        """Each token in the context of those before it.   (B, N) -> (B, N, E)

        padding: how many places at the left of each row, counted from the beginning of the cache, are no tokens, (B,).
        """
        start = 0 if cache is None else cache.length
        # Rows that begin with padding have fewer tokens than places, and who padded them knows how many.
        require_ids("ids", ids, longest=self.config.longest, start=start if padding is None else 0)
        # Not in training, which must not wait for an answer; and what is chosen step by step is of the vocabulary.
        if not self.training and not start and not torch.compiler.is_compiling():
            require_known("ids", ids, self.config.vocabulary)
        mask, places = (CAUSAL, None) if padding is None else _padded(start, ids.shape[1], padding)
        x = self.positions(self.embedding(ids) * math.sqrt(self.config.width), start, places)
        x = entered(x, self.config.dropout, self.training)
        return self.encoder(x, mask=mask, cache=cache)  # type: ignore[no-any-return]

    def guess(self, vectors: Tensor) -> Tensor:
        """Which piece comes after a vector of `vectors`, as logits.   (.., E) -> (.., V)"""
        return functional.linear(vectors, (self.embedding if self.output is None else self.output).weight)


def _padded(start: int, tokens: int, padding: Tensor) -> tuple[Mask | Tensor, Tensor]:
    """Who sees whom, (B, 1, N, K), and where each token stands, (B, N), in rows that begin with padding."""
    keys = torch.arange(start + tokens, device=padding.device)
    queries = keys[start:]
    allowed = (keys >= padding[:, None, None, None]) & (keys <= queries[:, None])
    return allowed, (queries - padding[:, None]).clamp(min=0)
