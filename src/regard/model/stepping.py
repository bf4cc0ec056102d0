"""Models that write, as decoding sees them: a token in, logits out, and a state that rows are copied and dropped in."""

# B texts, R rows that are decoded at once, S tokens of the source, N tokens, V pieces of the vocabulary

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import OptionError
from .cache import Readers, StackCache
from .language_model import LanguageModel
from .translator import Memory, Translator

STAY = 0.75  # sources that nobody reads any more are dropped once no more than this share is read


@dataclass(frozen=True)
class TranslatorState:
    """Sources, each kept once, and rows that look at them."""

    memory: Memory
    cache: StackCache
    sources: Tensor  # (R,) the source of each row


class TranslatorStepper:
    """`beam(stepper, stepper.begin(source, source_mask), start, limits)` with `stepper = TranslatorStepper(model)`"""

    def __init__(self, model: Translator) -> None:
        self.model = model

    @torch.no_grad()
    def begin(self, source: Tensor, source_mask: Tensor | None = None) -> TranslatorState:
        """The state in which the sources are read, and nothing is written.   (B, S)"""
        memory = self.model.encode(source, source_mask)
        rows = torch.arange(len(source), device=source.device)
        return TranslatorState(memory, self.model.new_cache(), rows)

    def step(self, tokens: Tensor, state: TranslatorState) -> tuple[Tensor, TranslatorState]:
        """How well each piece would come next.   (R,) -> (R, V)"""
        vectors = self.model.vectors(tokens[:, None], state.memory, state.cache)
        return self.model.guess(vectors[:, 0]), state

    def reorder(self, state: TranslatorState, index: Tensor) -> TranslatorState:
        """Rows move; sources stay where they are, and leave several at a time, since leaving copies the others."""
        memory, sources, stay = state.memory, state.sources.index_select(0, index), None
        read, renumbered = torch.unique(sources, return_inverse=True)
        if len(read) <= STAY * len(memory):
            memory, sources, stay = memory.of(read), renumbered, read
        state.cache.reorder_rows(index, Readers.of(sources, len(memory)), stay)
        return TranslatorState(memory, state.cache, sources)


@dataclass(frozen=True)
class LanguageModelState:
    """What was read so far; rows with shorter prompts begin with places that are no tokens."""

    cache: StackCache
    padding: Tensor | None  # (R,) how many such places; None: no row has any


class LanguageModelStepper:
    """`state, start = stepper.begin(prompts)`, then `sample(stepper, state, start, limits)` or any other way.

    Shorter prompts are padded on the left, so that all rows go on at the same place of the cache; rotary positions
    depend on distances alone, and others are given to each row as its own.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model

    @torch.no_grad()
    def begin(self, prompts: Sequence[Sequence[int]]) -> tuple[LanguageModelState, Tensor]:
        """The state in which all prompts are read but their last tokens, in one forward, and these tokens, (B,)."""
        if not prompts or not all(prompts):
            raise OptionError("a prompt without tokens; give each one at least, such as that which begins a text.")
        longest = max(map(len, prompts))
        missing = [longest - len(prompt) for prompt in prompts]
        device = self.model.embedding.weight.device
        rows = [[0] * less + list(prompt) for less, prompt in zip(missing, prompts, strict=True)]
        ids = torch.tensor(rows, device=device)
        padding = torch.tensor(missing, device=device) if any(missing) else None
        cache = self.model.new_cache()
        if longest > 1:
            self.model.vectors(ids[:, :-1], cache, padding=padding)
        return LanguageModelState(cache, padding), ids[:, -1]

    def step(self, tokens: Tensor, state: LanguageModelState) -> tuple[Tensor, LanguageModelState]:
        """How well each piece would come next.   (R,) -> (R, V)"""
        vectors = self.model.vectors(tokens[:, None], state.cache, padding=state.padding)
        return self.model.guess(vectors[:, 0]), state

    def reorder(self, state: LanguageModelState, index: Tensor) -> LanguageModelState:
        """Row i goes on from what row index[i] was."""
        state.cache.reorder(index)
        padding = None if state.padding is None else state.padding.index_select(0, index)
        return LanguageModelState(state.cache, padding)
