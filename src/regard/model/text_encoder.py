"""The text encoder: token ids → a guess for each masked word, by an encoder between one embedding used twice."""

# B batch, N tokens, E width, V pieces of the vocabulary

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import OptionError
from ..formula.masks import Mask
from .reader import Reader, ReaderConfig
from .saved import Saved


@dataclass(frozen=True, kw_only=True)
class TextEncoderConfig(ReaderConfig):
    """The shape of a text encoder, checked."""

    next_sentence: bool = False  # whether it also says if the second part of a text follows the first

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.next_sentence, bool):
            raise OptionError(f"next_sentence is {self.next_sentence!r}; it must be True or False.")


class TextEncoder(Reader, Saved):
    """Token ids → embedding → encoder → the embedding once more: how well each piece fits each place.

    `TextEncoder.load(regard.models.folder("encoder"))` is one that was trained. Texts of differing length are padded,
    and the padding kept out by a mask: `model(ids, mask=ids != tokenizer.pad)`.
    """

    kind: ClassVar[str] = "regard.TextEncoder"
    Config: ClassVar[type] = TextEncoderConfig
    config: TextEncoderConfig

    def __init__(self, config: TextEncoderConfig) -> None:
        super().__init__(config)
        # One matrix serves both ends (Press and Wolf 2017): at the output its rows of length 1 keep first guesses mild.
        self.bias = nn.Parameter(torch.zeros(config.vocabulary))
        self.following = nn.Linear(config.width, 2) if config.next_sentence else None

    def forward(self, ids: Tensor, mask: Mask | Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """How well each piece would fit at each place, as logits.   (B, N) -> (B, N, V)"""
        return self.guess(self.vectors(ids, mask, segments))

    def guess(self, vectors: Tensor) -> Tensor:
        """Which piece a vector of `vectors` speaks of, as logits.   (.., E) -> (.., V)"""
        return functional.linear(vectors, self.embedding.weight, self.bias)

    def follows(self, vectors: Tensor) -> Tensor:
        """Whether the second part follows the first (1) or not (0), by the first token.   (B, N, E) -> (B, 2)"""
        if self.following is None:
            raise OptionError("this encoder was not made to tell what follows; give its config next_sentence=True.")
        return self.following(vectors[:, 0])  # type: ignore[no-any-return]
