"""The classifier: token ids → reader → one vector for the text → how well each label fits."""

# B batch, N tokens, L labels

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional

from ..errors import OptionError
from .options import require_name, require_rate
from .pooling import POOLINGS, Pooled, Pooling
from .reader import Reader, ReaderConfig
from .saved import Saved
from .start import reader_config, reader_of


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig:
    """What a classifier reads with, and what it can say, checked."""

    reader: ReaderConfig
    labels: tuple[str, ...]
    pooling: str = "mean"  # or "attention", "first"
    dropout: float = 0.1  # on the one vector of a text

    def __post_init__(self) -> None:
        if not isinstance(self.reader, ReaderConfig):
            raise OptionError(f"reader is {self.reader!r}; it must be a ReaderConfig.")
        object.__setattr__(self, "labels", _checked(self.labels))
        require_name("pooling", self.pooling, POOLINGS)
        require_rate("dropout", self.dropout)

    @property
    def tokenizer(self) -> str:
        """The hash of the tokenizer whose ids it reads."""
        return self.reader.tokenizer


class Classifier(Saved):
    """Token ids → reader → pooling → label.   `Classifier(config)(ids, mask)`; mask: (B, N), True = a token."""

    kind: ClassVar[str] = "regard.Classifier"
    Config: ClassVar[type] = ClassifierConfig
    config: ClassifierConfig

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.reader = Reader(config.reader)
        self.pooling = Pooling(config.pooling, config.reader.width)
        self.label = nn.Linear(config.reader.width, len(config.labels))

    @classmethod
    def of(
        cls, trained: nn.Module | Path | str, *, labels: Sequence[str], pooling: str = "mean", dropout: float = 0.1,
        tokenizer: str = "",
    ) -> "Classifier":  # fmt: skip
        """One whose reader is that of a trained model, or of its folder. tokenizer: the hash of that to be used."""
        reader = reader_of(trained)
        shape = reader_config(reader, tokenizer=tokenizer or reader.config.tokenizer)
        model = cls(ClassifierConfig(reader=shape, labels=_checked(labels), pooling=pooling, dropout=dropout))
        model.reader.start_from(reader)
        return model

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """How well each label fits each text, as logits.   (B, N) -> (B, L)"""
        return self.judge(self.pooled(ids, mask).vectors)

    def pooled(self, ids: Tensor, mask: Tensor | None = None) -> Pooled:
        """Each text in one vector, and how much each token counted for it.   (B, N) -> (B, E), (B, N)"""
        return self.pooling(self.reader(ids, mask), mask)  # type: ignore[no-any-return]

    def judge(self, vectors: Tensor) -> Tensor:
        """Which label the vector of a text speaks of, as logits.   (B, E) -> (B, L)"""
        return self.label(functional.dropout(vectors, self.config.dropout, self.training))  # type: ignore[no-any-return]


def _checked(labels: Sequence[str]) -> tuple[str, ...]:
    if isinstance(labels, str) or not all(isinstance(label, str) and label for label in labels):
        raise OptionError(f"labels are {labels!r}; give names, such as ('good', 'bad').")
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise OptionError(f"labels are {tuple(labels)!r}; there must be 2 or more, each once.")
    return tuple(labels)
