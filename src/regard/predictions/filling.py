"""Texts with [MASK] in them → the words that fit there best."""

# R gaps of a batch, N tokens, V pieces of the vocabulary

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import OptionError
from ..model.options import require_count
from ..model.text_encoder import TextEncoder
from ..record import Record
from ..record.watching import watch
from ..text.bpe import MASK, Encoded, Tokenizer
from ..text.pieces import readable
from .reading import asked, by_length, labels, padded, require_own, require_texts

__all__ = ["Filled", "Filling", "Gap", "Guess"]


@dataclass(frozen=True)
class Guess:
    """A piece that may stand in a gap."""

    text: str  # with the blank before it, where it begins a word
    probability: float
    id: int


@dataclass(frozen=True)
class Gap:
    """A [MASK] of a text, text[start:end], and what would fit there, the best first."""

    start: int
    end: int
    guesses: tuple[Guess, ...]


@dataclass(frozen=True)
class Filled:
    """A text with the best guess in each gap, and what else would fit."""

    text: str
    gaps: tuple[Gap, ...]
    cut: bool  # whether the text was longer than the model reads: each gap was then seen with what is around it alone

    def as_json(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return asdict(self)


@dataclass(frozen=True)
class _Row:
    """What the model reads at once: a text or a part of it, and where which gaps of the text are."""

    text: int
    ids: list[int]
    gaps: tuple[tuple[int, int], ...]  # number of the gap in the text, its place in ids


class Filling:
    """A trained text encoder, gaps in, words out.   `Filling(model, tokenizer, "encoder")(["The [MASK] sat."])`"""

    def __init__(self, model: TextEncoder, tokenizer: Tokenizer, name: str) -> None:
        require_own(name, model.config.tokenizer, model.config.vocabulary, tokenizer)
        self.name, self.model, self.tokenizer = name, model, tokenizer

    def __call__(self, texts: Sequence[str], *, best: int = 5) -> list[Filled]:
        """The `best` pieces for each gap. Texts are read in batches of like length; results are in their order."""
        require_texts(texts, "text")
        require_count("best", best)
        encoded = [self.tokenizer.encode(text) for text in texts]
        rows = [row for number, one in enumerate(encoded) for row in self._rows(number, one)]
        guesses: dict[tuple[int, int], tuple[Guess, ...]] = {}
        with asked(self.model) as device:
            for numbers in by_length([len(row.ids) for row in rows]):
                batch = [rows[number] for number in numbers]
                ids, mask = padded([row.ids for row in batch], self.tokenizer.pad, device)
                places = [(line, place) for line, row in enumerate(batch) for _, place in row.gaps]
                logits = self.model.guess(_picked(self.model.vectors(ids, mask), places))
                owners = [(row.text, gap) for row in batch for gap, _ in row.gaps]
                guesses |= zip(owners, self._guesses(logits, best), strict=True)
        return [self._filled(number, one, guesses) for number, one in enumerate(encoded)]

    def look(self, text: str, *, values: bool = False) -> Record:
        """What each token looks at; of a text that is longer than the model reads, around the first gap."""
        require_texts([text], "text")
        encoded = self.tokenizer.encode(text)
        fits = len(encoded.ids) <= self.model.config.longest
        ids = encoded.ids if fits else next(iter(self._rows(0, encoded))).ids
        with asked(self.model) as device, watch(self.model, values=values) as record:
            self.model(torch.tensor([ids], device=device))
        return record.labelled(labels(self.tokenizer, ids))

    def _gaps(self, encoded: Encoded) -> list[int]:
        return [place for place, number in enumerate(encoded.ids) if number == self.tokenizer.mask]

    def _rows(self, number: int, encoded: Encoded) -> Iterator[_Row]:
        """The text as a whole where the model can read it, else what is around each gap."""
        gaps, ids, room = self._gaps(encoded), encoded.ids, self.model.config.longest - 2
        if not gaps:
            raise OptionError(f"text {number + 1} has no {MASK}; write it where a word is to be guessed.")
        if len(ids) - 2 <= room:
            yield _Row(number, ids, tuple(enumerate(gaps)))
            return
        for gap, place in enumerate(gaps):
            begin = min(max(place - room // 2, 1), len(ids) - 1 - room)
            part = [self.tokenizer.first, *ids[begin : begin + room], self.tokenizer.last]
            yield _Row(number, part, ((gap, place - begin + 1),))

    def _guesses(self, logits: Tensor, best: int) -> Iterator[tuple[Guess, ...]]:
        """The best pieces of each gap, marks such as [SEP] left out: they are never in a text.   (R, V)"""
        marks = {self.tokenizer.pad, self.tokenizer.first, self.tokenizer.last, self.tokenizer.mask}
        shares = logits.double().softmax(dim=-1)[:, : self.tokenizer.size]
        top = shares.topk(min(best + len(marks), shares.shape[-1]), dim=-1)
        for ids, probabilities in zip(top.indices.tolist(), top.values.tolist(), strict=True):
            pairs = [(number, share) for number, share in zip(ids, probabilities, strict=True) if number not in marks]
            yield tuple(Guess(self._text(number), share, number) for number, share in pairs[:best])

    def _text(self, number: int) -> str:
        return readable(["Ġ", self.tokenizer.piece(number)])[1].text

    def _filled(self, number: int, encoded: Encoded, guesses: dict[tuple[int, int], tuple[Guess, ...]]) -> Filled:
        ids, gaps = list(encoded.ids), []
        for gap, place in enumerate(self._gaps(encoded)):
            found = guesses[number, gap]
            gaps.append(Gap(*encoded.offsets[place], found))
            ids[place] = found[0].id
        return Filled(self.tokenizer.decode(ids), tuple(gaps), len(encoded.ids) > self.model.config.longest)


def _picked(vectors: Tensor, places: Sequence[tuple[int, int]]) -> Tensor:
    """The vectors of some places.   (B, N, E) -> (R, E)"""
    lines, columns = torch.tensor(places, device=vectors.device).T
    return vectors[lines, columns]
