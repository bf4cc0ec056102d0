"""Language modelling: each piece of a text from those before it."""

# B windows, N tokens

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from torch import Tensor

from ..objectives import IGNORED, judged, projected_loss
from .batch import ENCODED, Batch, by_the, padded
from .options import require_share
from .projection import projection

if TYPE_CHECKING:
    from ...text.bpe import Tokenizer


def encode_texts(examples: Iterable[dict[str, str]], tokenizer: "Tokenizer") -> Iterator[dict[str, list[int]]]:
    """Texts with their ends, to be laid one behind the other."""
    for some in by_the(ENCODED, examples):
        for text in tokenizer.ids([example["text"] for example in some]):
            yield {"text": [*text, tokenizer.last]}


@dataclass(frozen=True, kw_only=True)
class LanguageModelling:
    """What a language model learns. A window of n + 1 tokens has n to be said."""

    pad: int  # the id that fills up windows
    label_smoothing: float = 0.0
    longest: int | None = None  # tokens that the model takes: nothing is padded beyond

    fields: ClassVar[tuple[str, ...]] = ("text",)

    def __post_init__(self) -> None:
        require_share("label_smoothing", self.label_smoothing)

    def encode(self, examples: Iterable[dict[str, str]], tokenizer: "Tokenizer") -> Iterator[dict[str, list[int]]]:
        """Texts with their ends, to be laid one behind the other."""
        return encode_texts(examples, tokenizer)

    def collate(self, examples: Sequence[dict[str, Any]], draws: Sequence[np.random.Generator]) -> Batch:
        """Each window without its last token, and without its first. Padding stands behind, where nothing sees it."""
        texts = [example["text"] for example in examples]
        targets = [text[1:] for text in texts]
        tensors = {
            "ids": padded([text[:-1] for text in texts], self.pad, self.longest),
            "targets": padded(targets, IGNORED, self.longest),
        }  # fmt: skip
        return Batch(tensors, {"tokens": sum(map(len, targets))})

    def losses(self, model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The summed cross-entropy of the tokens."""
        vectors, targets = model.vectors(tensors["ids"]).flatten(0, 1), tensors["targets"].flatten()
        return {"tokens": projected_loss(vectors, *projection(model), targets, smoothing=self.label_smoothing)}

    def measures(self, model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Cross-entropy without smoothing, and how many tokens were the likeliest."""
        vectors, targets = model.vectors(tensors["ids"]).flatten(0, 1), tensors["targets"].flatten()
        loss, right = judged(vectors, *projection(model), targets)
        return {"tokens/loss": loss, "tokens/right": right}
