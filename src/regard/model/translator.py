"""The translator: token ids of one text → those of another, by an encoder read by a decoder; a summariser as well."""

# B batch, S tokens of the source, N tokens of the target, E width, V pieces of the target's vocabulary

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import OptionError
from .blocks import BlockConfig
from .cache import StackCache
from .decoder import Decoder
from .embedding import POSITIONS, Positions, entered, make_embedding, require_ids, require_known, require_padding
from .encoder import Encoder
from .initialisation import initialise
from .options import require_name, require_rate, require_sizes
from .rotary import Rotary
from .saved import Saved


@dataclass(frozen=True, kw_only=True)
class TranslatorConfig:
    """The shape of a translator, checked.

    The default reads with many blocks and writes with few: what is read is read once, all tokens at a time, and each
    token that is written passes all blocks of the decoder (Kasai et al. 2021). The Transformer of Vaswani et al. 2017
    is `depth=6, decoder_depth=6, norm_first=False, positions="sinusoidal"`.
    """

    vocabulary: int  # pieces of the source, special ones and all
    target_vocabulary: int | None = None  # of the target; None: both share one vocabulary
    width: int = 512
    heads: int = 8
    key_heads: int | None = None  # as many as heads
    depth: int = 12  # blocks of the encoder
    decoder_depth: int = 2
    hidden: int | None = None  # of the encoder's feed-forward parts, 4·width
    decoder_hidden: int | None = None  # of the decoder's, as the encoder's
    activation: str = "relu"
    norm: str = "layer"
    norm_first: bool = True
    bias: bool = True
    positions: str = "rotary"  # or "learned", "sinusoidal"
    rotary_base: float = 10000.0
    dropout: float = 0.1
    longest: int = 512  # tokens of a source or a target; what lies beyond was never trained
    tied: bool = True  # one matrix for target tokens that come in and those that are guessed
    tokenizer: str = ""  # the hash of the tokenizer that it was trained with
    target_tokenizer: str = ""  # of the target's, where the vocabularies are two

    def __post_init__(self) -> None:
        require_sizes(self)
        if self.target_tokenizer and self.target_vocabulary is None:
            raise OptionError("target_tokenizer is given and target_vocabulary is not; a shared vocabulary has one.")
        require_name("positions", self.positions, POSITIONS)
        require_rate("dropout", self.dropout)
        self.block()
        self.decoder_block()

    def block(self) -> BlockConfig:
        """What the encoder's blocks are made of."""
        return self._block(self.hidden)

    def decoder_block(self) -> BlockConfig:
        """What the decoder's blocks are made of."""
        return self._block(self.hidden if self.decoder_hidden is None else self.decoder_hidden)

    def _block(self, hidden: int | None) -> BlockConfig:
        return BlockConfig(
            width=self.width, heads=self.heads, key_heads=self.key_heads, hidden=hidden, activation=self.activation,
            norm=self.norm, norm_first=self.norm_first, bias=self.bias, dropout=self.dropout,
            rotary=Rotary(base=self.rotary_base) if self.positions == "rotary" else None,
        )  # fmt: skip


@dataclass(frozen=True)
class Memory:
    """A source as the decoder sees it: a vector for each token, and which are tokens where some are padding."""

    vectors: Tensor  # (B, S, E)
    mask: Tensor | None = None  # (B, 1, 1, S), True = a token; None: nothing is padded

    def __len__(self) -> int:
        return len(self.vectors)

    def of(self, index: Tensor) -> "Memory":
        """Some of its sources, in this order."""
        mask = None if self.mask is None else self.mask.index_select(0, index)
        return Memory(self.vectors.index_select(0, index), mask)


class Translator(Saved):
    """Source ids → encoder → a memory; target ids → decoder, which looks at the memory → what comes next.

    Both ends, and the guess, use one embedding where the vocabulary is shared. The target is padded on the right and
    needs no mask: under the causal one a token never sees what stands behind it, and what padding guesses counts for
    nothing.
    """

    kind: ClassVar[str] = "regard.Translator"
    Config: ClassVar[type] = TranslatorConfig
    config: TranslatorConfig

    def __init__(self, config: TranslatorConfig) -> None:
        super().__init__()
        self.config = config
        written = config.target_vocabulary
        self.embedding = make_embedding(config.vocabulary, config.width)
        self.target_embedding = None if written is None else make_embedding(written, config.width)
        self.positions = Positions(config.positions, config.longest, config.width)
        self.target_positions = Positions(config.positions, config.longest, config.width)
        self.encoder = Encoder(config.block(), config.depth)
        self.decoder = Decoder(config.decoder_block(), config.decoder_depth)
        for stack in (self.encoder, self.decoder):
            initialise(stack)
        self.output = None if config.tied else nn.Linear(config.width, written or config.vocabulary, bias=False)
        if self.output is not None:
            nn.init.normal_(self.output.weight, std=config.width**-0.5)

    def new_cache(self) -> StackCache:
        """An empty cache, for writing step by step: each call of `vectors` then gives its new tokens alone."""
        return self.decoder.new_cache()

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """How well each piece would come after each token of the target, as logits.   (B, S), (B, N) -> (B, N, V)"""
        return self.guess(self.vectors(target, self.encode(source, source_mask)))

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Memory:
        """The source, read. source_mask: True = a token, False = padding, (B, S); None where nothing is padded."""
        require_ids("source", source, longest=self.config.longest)
        mask = None
        if source_mask is not None:
            require_padding("source_mask", source_mask, source)
            mask = source_mask[:, None, None]
        if self._may_look():
            require_known("source", source, self.config.vocabulary)
            mask = None if mask is None or bool(mask.all()) else mask  # the kernels are faster without one
        x = self._entered(self.embedding(source), self.positions, 0)
        return Memory(self.encoder(x, mask=mask), mask)

    def vectors(self, target: Tensor, memory: Memory, cache: StackCache | None = None) -> Tensor:
        """Each token of the target in the context of those before it and of the source.   (B, N) -> (B, N, E)"""
        start = 0 if cache is None else cache.length
        require_ids("target", target, longest=self.config.longest, start=start)
        embedding = self._target_embedding
        if not start and self._may_look():  # what is chosen step by step is of the vocabulary
            require_known("target", target, embedding.num_embeddings)
        x = self._entered(embedding(target), self.target_positions, start)
        return self.decoder(x, memory.vectors, cross_mask=memory.mask, cache=cache)  # type: ignore[no-any-return]

    def guess(self, vectors: Tensor) -> Tensor:
        """Which piece comes after a vector of `vectors`, as logits.   (.., E) -> (.., V)"""
        return functional.linear(vectors, (self._target_embedding if self.output is None else self.output).weight)

    @property
    def _target_embedding(self) -> nn.Embedding:
        return self.embedding if self.target_embedding is None else self.target_embedding

    def _entered(self, embedded: Tensor, positions: Positions, start: int) -> Tensor:
        x = positions(embedded * math.sqrt(self.config.width), start)
        return entered(x, self.config.dropout, self.training)

    def _may_look(self) -> bool:
        """Whether numbers may be looked at: not in training, which must not wait for a GPU's answer."""
        return not self.training and not torch.compiler.is_compiling()
