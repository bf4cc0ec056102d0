"""Texts → labels, each with its probability."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from ..model.classifier import Classifier
from ..record import Record
from ..record.watching import watch
from ..text.bpe import Tokenizer
from .reading import asked, by_length, labels, padded, require_own, require_texts

__all__ = ["Classification", "Labelled"]


@dataclass(frozen=True)
class Labelled:
    """What a text was found to be."""

    label: str
    probability: float
    probabilities: dict[str, float]  # of every label
    cut: bool  # whether the text was longer than the model reads, and its end left out

    def as_json(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return asdict(self)


class Classification:
    """A trained classifier, texts in, labels out.   `Classification(model, tokenizer, "mine")(["So good!"])`"""

    def __init__(self, model: Classifier, tokenizer: Tokenizer, name: str) -> None:
        reader = model.config.reader
        require_own(name, reader.tokenizer, reader.vocabulary, tokenizer)
        self.name, self.model, self.tokenizer = name, model, tokenizer

    def __call__(self, texts: Sequence[str]) -> list[Labelled]:
        """Each text's label. They are read in batches of like length; the results are in the order of the texts."""
        require_texts(texts, "text")
        rows = self.tokenizer.ids(texts, ends=True)
        found: list[Labelled | None] = [None] * len(rows)
        with asked(self.model) as device:
            for numbers in by_length([len(self._kept(row)) for row in rows]):
                ids, mask = padded([self._kept(rows[number]) for number in numbers], self.tokenizer.pad, device)
                shares = self.model(ids, mask).double().softmax(dim=-1).tolist()
                for number, share in zip(numbers, shares, strict=True):
                    found[number] = self._labelled(share, cut=len(rows[number]) > self._longest)
        return [one for one in found if one is not None]

    def look(self, text: str, *, values: bool = False) -> Record:
        """What each token looks at while the model makes up its mind about a text."""
        require_texts([text], "text")
        ids = self._kept(self.tokenizer.encode(text).ids)
        with asked(self.model) as device, watch(self.model, values=values) as record:
            self.model(torch.tensor([ids], device=device))
        return record.labelled(labels(self.tokenizer, ids))

    @property
    def _longest(self) -> int:
        return self.model.config.reader.longest

    def _kept(self, ids: list[int]) -> list[int]:
        """As much as the model reads, the end mark kept."""
        return ids if len(ids) <= self._longest else [*ids[: self._longest - 1], self.tokenizer.last]

    def _labelled(self, shares: list[float], *, cut: bool) -> Labelled:
        by_label = dict(zip(self.model.config.labels, shares, strict=True))
        label = max(by_label, key=by_label.__getitem__)
        return Labelled(label, by_label[label], by_label, cut)
