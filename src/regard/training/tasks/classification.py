"""Classification: a text is read and one of some labels said of it."""

# B examples, N tokens, L labels

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ...errors import OptionError
from ..objectives import IGNORED, r_drop, right, smoothed
from .batch import ENCODED, Batch, by_the, padded, there
from .options import require_not_negative, require_share

if TYPE_CHECKING:
    from ...text.bpe import Tokenizer

NAMED = 10  # labels that a message names


@dataclass(frozen=True, kw_only=True)
class Classification:
    """What a classifier learns. r_drop: the α of R-Drop, for which each batch is gone through twice; 0 is without."""

    pad: int  # the id that fills up texts
    labels: tuple[str, ...]
    label_smoothing: float = 0.0
    r_drop: float = 0.0
    longest: int | None = None  # tokens that the model takes: nothing is padded beyond

    fields: ClassVar[tuple[str, ...]] = ("text", "label")

    def __post_init__(self) -> None:
        require_share("label_smoothing", self.label_smoothing)
        require_not_negative("r_drop", self.r_drop)
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise OptionError(f"labels are {_few(self.labels)}; there must be 2 or more, each once.")

    def encode(self, examples: Iterable[dict[str, str]], tokenizer: "Tokenizer") -> Iterator[dict[str, list[int]]]:
        """Texts between their ends, and the number of each label."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        for some in by_the(ENCODED, examples):
            for example in some:
                if example["label"] not in numbers:
                    raise OptionError(
                        f"the label {example['label']!r} is none of those of the training data: {_few(self.labels)}."
                    )
            texts = tokenizer.ids([example["text"] for example in some], ends=True)
            for text, example in zip(texts, some, strict=True):
                yield {"text": text, "label": [numbers[example["label"]]]}

    def collate(self, examples: Sequence[dict[str, Any]], draws: Sequence[np.random.Generator]) -> Batch:
        """The texts, and the label of each."""
        texts = [example["text"] for example in examples]
        labels = [int(example["label"][0]) for example in examples] or [IGNORED]
        tensors = {
            "ids": padded(texts, self.pad, self.longest), "mask": there(texts, self.longest),
            "targets": torch.tensor(labels),
        }  # fmt: skip
        return Batch(tensors, {"labels": len(examples)})

    def losses(self, model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The summed cross-entropy of the labels."""
        ids, mask, targets = tensors["ids"], tensors["mask"], tensors["targets"]
        if not self.r_drop:
            return {"labels": smoothed(model(ids, mask), targets, self.label_smoothing)}
        first, second = model(torch.cat([ids, ids]), torch.cat([mask, mask])).chunk(2)
        losses = (smoothed(logits, targets, self.label_smoothing) for logits in (first, second))
        return {"labels": (sum(losses) + r_drop(first, second, targets, self.r_drop)) / 2}

    def measures(self, model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Cross-entropy without smoothing, and how many labels were the likeliest."""
        logits = model(tensors["ids"], tensors["mask"])
        targets = tensors["targets"]
        return {"labels/loss": smoothed(logits, targets), "labels/right": right(logits, targets)}


def labels_of(corpus: Iterable[dict[str, str]], most: int = 1000) -> tuple[str, ...]:
    """The labels that a corpus has, in order of their names, `most` at most."""
    found: set[str] = set()
    for example in corpus:
        found.add(example["label"])
        if len(found) > most:
            raise OptionError(
                f"there are more than {most} labels: {_few(sorted(found))}. Is the right column taken for them? If so, "
                "allow for more."
            )
    if len(found) < 2:
        raise OptionError(f"the labels are {_few(sorted(found)) or 'none'}; there must be 2 or more to tell apart.")
    return tuple(sorted(found))


def _few(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - NAMED} more" if len(labels) > NAMED else ""
    return ", ".join(map(repr, labels[:NAMED])) + more
