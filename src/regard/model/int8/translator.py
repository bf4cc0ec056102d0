"""A translator in 8 bits, as decoding takes it: `greedy(quick, quick.begin(source, source_mask), start, limits)`."""

# B texts, R rows that are decoded at once, S tokens of the source, E width, V pieces of the target's vocabulary

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ...errors import OptionError, ShapeError
from ..cache import Readers
from ..embedding import require_ids, require_known, require_padding
from ..translator import Translator
from .decoder import Decoder8, Seen, Source
from .encoder import Encoder8
from .linear import FEW_ROWS, MANY_ROWS, Linear8

FROM_MANY = 64  # rows
STAY = 0.75  # sources that nobody looks at any more are dropped once no more than this share is looked at


@dataclass(frozen=True)
class QuickState:
    """Sources, each kept once, rows that look at them, and what these have written."""

    source: Source
    seen: Seen
    sources: Tensor  # (R,) the source of each row
    readers: Readers | None  # the same, as the layers want it


class QuickTranslator:
    """A copy of a translator with weights of 8 bits, which answers and is not trained; a Stepper.

    Embeddings, norms and the mixing of values stay in float32. Its logits are within a few hundredths of the model's,
    of their spread; where two pieces are nearly as likely it may choose the other.
    """

    def __init__(self, model: Translator) -> None:
        _require_ready(model)
        self.config = model.config
        self._embedding, self._positions = model.embedding.weight.detach(), model.positions
        target = model.embedding if model.target_embedding is None else model.target_embedding
        self._target_embedding, self._target_positions = target.weight.detach(), model.target_positions
        self._encoder, self._decoder = Encoder8(model.encoder), Decoder8(model.decoder)
        guess = target.weight if model.output is None else model.output.weight
        # The largest matrix by far: each engine is a fifth faster than the other on its side of 64 rows.
        self._guess, self._guess_many = (Linear8(guess, None, engine=engine) for engine in (FEW_ROWS, MANY_ROWS))
        self._scale = math.sqrt(model.config.width)

    @torch.inference_mode()
    def begin(self, source: Tensor, source_mask: Tensor | None = None) -> QuickState:
        """The state in which the sources are read, and nothing is written.   (B, S), (B, S) True = a token"""
        require_ids("source", source, longest=self.config.longest)
        require_known("source", source, self.config.vocabulary)
        mask = torch.ones_like(source, dtype=torch.bool) if source_mask is None else source_mask
        require_padding("source_mask", mask, source)
        _require_tokens(mask)
        x = self._positions(functional.embedding(source, self._embedding).mul_(self._scale))
        looked = self._decoder.look(self._encoder(x, mask), mask)
        return QuickState(looked, self._decoder.new_seen(len(source)), torch.arange(len(source)), None)

    @torch.inference_mode()
    def step(self, tokens: Tensor, state: QuickState) -> tuple[Tensor, QuickState]:
        """How well each piece would come next.   (R,) -> (R, V)"""
        require_ids("target", tokens[:, None], longest=self.config.longest, start=state.seen.length)
        x = functional.embedding(tokens[:, None], self._target_embedding).mul_(self._scale)
        x = self._target_positions(x, state.seen.length)[:, 0]
        guess = self._guess if len(x) < FROM_MANY else self._guess_many
        return guess(self._decoder.step(x, state.seen, state.source, state.readers)), state

    @torch.inference_mode()
    def reorder(self, state: QuickState, index: Tensor) -> QuickState:
        """Rows move; sources stay where they are, and leave several at a time, since leaving copies the others."""
        state.seen.reorder(index)
        sources = state.sources.index_select(0, index)
        if torch.equal(sources, state.sources):
            return state
        source = state.source
        looked_at, renumbered = torch.unique(sources, return_inverse=True)
        if len(looked_at) <= STAY * len(source):
            source, sources = source.of(looked_at), renumbered
        return QuickState(source, state.seen, sources, Readers.of(sources, len(source)))


def quantised(model: Translator) -> QuickTranslator:
    """The model in 8 bits, for a CPU. Where PyTorch lacks the kernels (`available`) it is in float32, and as right."""
    return QuickTranslator(model)


def _require_ready(model: Translator) -> None:
    weight = model.embedding.weight
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        raise OptionError(
            f"the model is {weight.dtype} on {weight.device}; 8 bits are made of float32 on a CPU: model.cpu().float()."
        )


def _require_tokens(mask: Tensor) -> None:
    empty = (~mask.any(dim=1)).nonzero()
    if len(empty):
        raise ShapeError(f"source {int(empty[0])} has no token, only padding; give each at least its end.")
