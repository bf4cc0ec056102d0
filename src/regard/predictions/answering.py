"""Questions and contexts → answers, each a part of its context."""

# B rows of a batch, N tokens

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..errors import DtypeError, OptionError
from ..model.answerer import Answerer
from ..model.options import require_count
from ..record import Record
from ..record.watching import watch
from ..text.bpe import Encoded, Tokenizer
from ..text.overlapping import begins
from .reading import asked, by_length, labels, padded, require_own, require_texts

__all__ = ["Answer", "Answering", "Spans", "best_spans"]


@dataclass(frozen=True)
class Answer:
    """The part of a context that answers a question: context[start:end]. "" where the context says nothing of it."""

    text: str
    start: int
    end: int
    probability: float
    windows: int  # how many parts the context was read in, all of it in any case

    def as_json(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return asdict(self)


class Spans(NamedTuple):
    """The best span of each row, by the logarithm of its probability."""

    score: Tensor  # (B,)
    first: Tensor  # (B,) places, both inclusive
    last: Tensor


@dataclass(frozen=True)
class _Window:
    """A question and a part of its context, as the model reads them."""

    pair: int
    ids: list[int]
    question: int  # tokens of the first part, marks and all
    begin: int  # the token of the context that the second part begins with

    @property
    def segments(self) -> list[int]:
        return [0] * self.question + [1] * (len(self.ids) - self.question)


@dataclass(frozen=True)
class _Found:
    """What a window says: the best span, in tokens of the context, and how likely there is none."""

    window: _Window
    probability: float
    first: int
    last: int
    none: float


class Answering:
    """A trained answerer.   `Answering(model, tokenizer, "mine")([("Who sat?", "The cat sat on the mat.")])`

    longest_answer: in tokens.
    """

    def __init__(self, model: Answerer, tokenizer: Tokenizer, name: str, *, longest_answer: int = 30) -> None:
        reader = model.config.reader
        require_own(name, reader.tokenizer, reader.vocabulary, tokenizer)
        self.name, self.model, self.tokenizer = name, model, tokenizer
        self.longest_answer = require_count("longest_answer", longest_answer)

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[Answer]:
        """The answer to each (question, context), in their order.

        A context that is longer than the model reads is read in windows that overlap. Where even the window that says
        so least says that there is no answer, and says it louder than any span, there is none.
        """
        _require_pairs(pairs)
        contexts = [self.tokenizer.encode(context, ends=False) for _, context in pairs]
        windows = [
            window
            for number, (question, _) in enumerate(pairs)
            for window in self._windows(number, question, contexts[number])
        ]
        by_pair: list[list[_Found]] = [[] for _ in pairs]
        for one in self._read(windows):
            by_pair[one.window.pair].append(one)
        return [
            _answer(context, encoded, found)
            for (_, context), encoded, found in zip(pairs, contexts, by_pair, strict=True)
        ]

    def look(self, question: str, context: str, *, values: bool = False) -> Record:
        """What each token looks at; of a long context, in the window that holds the best span."""
        _require_pairs([(question, context)])
        found = self._read(list(self._windows(0, question, self.tokenizer.encode(context, ends=False))))
        window = max(found, key=lambda one: one.probability).window
        with asked(self.model) as device, watch(self.model, values=values) as record:
            ids, segments = (torch.tensor([row], device=device) for row in (window.ids, window.segments))
            self.model(ids, None, segments)
        return record.labelled(labels(self.tokenizer, window.ids, window.segments))

    def _windows(self, number: int, question: str, context: Encoded) -> Iterator[_Window]:
        """The question with each part of the context; parts overlap by what an answer may be long."""
        asks = self.tokenizer.encode(question).ids
        longest = self.model.config.reader.longest
        room = longest - len(asks) - 1
        if room < len(context.ids) and 2 * len(asks) > longest:
            raise OptionError(
                f"question {number + 1} has {len(asks):,} tokens and {self.name} reads {longest:,} at once, "
                "the context with them; ask in fewer words."
            )
        overlap = min(max(self.longest_answer, room // 4), room // 2)
        for begin in begins(len(context.ids), room, overlap):
            yield _Window(number, [*asks, *context.ids[begin : begin + room], self.tokenizer.last], len(asks), begin)

    def _read(self, windows: list[_Window]) -> list[_Found]:
        found: list[_Found] = []
        with asked(self.model) as device:
            for numbers in by_length([len(window.ids) for window in windows]):
                found += self._read_batch([windows[number] for number in numbers], device)
        return found

    def _read_batch(self, batch: list[_Window], device: torch.device) -> Iterator[_Found]:
        ids, mask = padded([window.ids for window in batch], self.tokenizer.pad, device)
        segments, _ = padded([window.segments for window in batch], 0, device)
        start, end = (edge.double().log_softmax(dim=-1) for edge in self.model(ids, mask, segments))
        inside = (segments == 1) & (torch.arange(ids.shape[1], device=device) < _ends(batch, device))
        spans = best_spans(start, end, inside, self.longest_answer)
        none = (start[:, 0] + end[:, 0]).exp().tolist()
        for row, window in enumerate(batch):
            shift = window.begin - window.question
            yield _Found(
                window, float(spans.score[row].exp()), int(spans.first[row]) + shift, int(spans.last[row]) + shift,
                none[row],
            )  # fmt: skip


def best_spans(start: Tensor, end: Tensor, inside: Tensor, longest: int) -> Spans:
    """The span of at most `longest` tokens, inside, that begins and ends best.   (B, N) thrice

    start, end: logarithms of probabilities. Spans are tried by their length, so that nothing of N×N is held.
    """
    start, end = (edge.masked_fill(~inside, float("-inf")) for edge in (start, end))
    best = Spans(start.new_full((len(start),), float("-inf")), *(start.new_zeros(len(start)).long() for _ in "12"))
    for more in range(min(longest, start.shape[1])):
        score, first = (start[:, : start.shape[1] - more] + end[:, more:]).max(dim=-1)
        better = score > best.score
        best = Spans(
            *(torch.where(better, new, old) for new, old in zip((score, first, first + more), best, strict=True))
        )
    return best


def _ends(batch: list[_Window], device: torch.device) -> Tensor:
    """Where the context of each window ends: its last token is a mark.   -> (B, 1)"""
    return torch.tensor([[len(window.ids) - 1] for window in batch], device=device)


def _answer(context: str, encoded: Encoded, found: list[_Found]) -> Answer:
    best, none = max(found, key=lambda one: one.probability), min(one.none for one in found)
    if none > best.probability:
        return Answer("", 0, 0, none, len(found))
    start, end = encoded.offsets[best.first][0], encoded.offsets[best.last][1]
    text = context[start:end]
    start += len(text) - len(text.lstrip())
    return Answer(text.strip(), start, start + len(text.strip()), best.probability, len(found))


def _require_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    for number, pair in enumerate(pairs, start=1):
        if isinstance(pair, str) or len(pair) != 2:
            raise DtypeError(f"pair {number} is {pair!r}; give (question, context).")
    for place, what in enumerate(("question", "context")):
        require_texts([pair[place] for pair in pairs], what)
