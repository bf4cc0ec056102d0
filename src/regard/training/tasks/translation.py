"""Translation and summarisation: a source is read, a target is said, each piece from those before it."""

# B examples, S tokens of the source, N tokens of the target, E width

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..objectives import IGNORED, judged, projected_loss, twice_drawn
from .batch import ENCODED, Batch, by_the, padded, there
from .options import require_not_negative, require_share
from .projection import projection

if TYPE_CHECKING:
    from ...text.bpe import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Translation:
    """What a translator learns. r_drop: the α of R-Drop, for which each batch is gone through twice; 0 is without."""

    pad: int  # the id that fills up sources
    first: int  # the id that begins a target
    label_smoothing: float = 0.1
    r_drop: float = 0.0
    longest: int | None = None  # tokens that the model takes: nothing is padded beyond

    fields: ClassVar[tuple[str, ...]] = ("source", "target")

    def __post_init__(self) -> None:
        require_share("label_smoothing", self.label_smoothing)
        require_not_negative("r_drop", self.r_drop)

    def encode(
        self, examples: Iterable[dict[str, str]], tokenizer: "Tokenizer", target: "Tokenizer | None" = None
    ) -> Iterator[dict[str, list[int]]]:
        """Examples as ids, each text with its end. target: the tokenizer of the targets, where it is another."""
        other = tokenizer if target is None else target
        for some in by_the(ENCODED, examples):
            sources = tokenizer.ids([example["source"] for example in some])
            targets = other.ids([example["target"] for example in some])
            for source, said in zip(sources, targets, strict=True):
                yield {"source": [*source, tokenizer.last], "target": [*said, other.last]}

    def collate(self, examples: Sequence[dict[str, Any]], draws: Sequence[np.random.Generator]) -> Batch:
        """What is read, and what is to be said behind [first] and what was said before it."""
        sources, targets = ([example[field] for example in examples] for field in self.fields)
        # What the padding of a target says is never asked, and nothing before it sees it: any id will do.
        said = padded(targets, IGNORED, self.longest)
        given = torch.full_like(said, self.first)
        given[:, 1:] = torch.where(said[:, 1:] == IGNORED, self.first, said[:, :-1])
        tensors = {
            "source": padded(sources, self.pad, self.longest), "source_mask": there(sources, self.longest),
            "given": given, "targets": said,
        }  # fmt: skip
        return Batch(tensors, {"tokens": sum(map(len, targets))})

    def losses(self, model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The summed cross-entropy of the targets' tokens."""
        targets = tensors["targets"].flatten()
        if not self.r_drop:
            vectors = _vectors(model, tensors).flatten(0, 1)
            return {"tokens": projected_loss(vectors, *projection(model), targets, smoothing=self.label_smoothing)}
        doubled = {name: torch.cat([tensor, tensor]) for name, tensor in tensors.items()}
        first, second = (draw.flatten(0, 1) for draw in _vectors(model, doubled).chunk(2))
        loss = twice_drawn(
            first, second, *projection(model), targets, smoothing=self.label_smoothing, alpha=self.r_drop
        )  # fmt: skip
        return {"tokens": loss}

    def measures(self, model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Cross-entropy without smoothing, and how many tokens were the likeliest."""
        loss, right = judged(_vectors(model, tensors).flatten(0, 1), *projection(model), tensors["targets"].flatten())
        return {"tokens/loss": loss, "tokens/right": right}


def _vectors(model: Any, tensors: dict[str, Tensor]) -> Tensor:
    """What the decoder makes of each place of the target.   -> (B, N, E)"""
    memory = model.encode(tensors["source"], tensors["source_mask"])
    return model.vectors(tensors["given"], memory)  # type: ignore[no-any-return]
