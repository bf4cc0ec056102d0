"""The answerer: a question and a context → where in the context the answer begins, and where it ends."""

# B batch, N tokens

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from torch import Tensor, nn

from ..errors import OptionError, ShapeError
from .reader import Reader, ReaderConfig
from .saved import Saved
from .start import reader_config, reader_of

PARTS = 2  # segment 0 is the question, segment 1 the context


@dataclass(frozen=True, kw_only=True)
class AnswererConfig:
    """What an answerer reads with, checked."""

    reader: ReaderConfig

    def __post_init__(self) -> None:
        if not isinstance(self.reader, ReaderConfig):
            raise OptionError(f"reader is {self.reader!r}; it must be a ReaderConfig.")
        if self.reader.segments != PARTS:
            raise OptionError(f"segments is {self.reader.segments}; an answerer has {PARTS}, question and context.")

    @property
    def tokenizer(self) -> str:
        """The hash of the tokenizer whose ids it reads."""
        return self.reader.tokenizer


class Answerer(Saved):
    """Question and context in one row → how well the answer begins, and ends, at each place.

    `start, end = model(ids, mask, segments)`; segments: 0 for the question, 1 for the context. An answer lies in the
    context, so every other place has −inf, save place 0, which says that there is none.
    """

    kind: ClassVar[str] = "regard.Answerer"
    Config: ClassVar[type] = AnswererConfig
    config: AnswererConfig

    def __init__(self, config: AnswererConfig) -> None:
        super().__init__()
        self.config = config
        self.reader = Reader(config.reader)
        self.edges = nn.Linear(config.reader.width, 2)

    @classmethod
    def of(cls, trained: nn.Module | Path | str, *, tokenizer: str = "") -> "Answerer":
        """One whose reader is that of a trained model, or of its folder. tokenizer: the hash of that to be used."""
        reader = reader_of(trained)
        shape = reader_config(reader, segments=PARTS, tokenizer=tokenizer or reader.config.tokenizer)
        model = cls(AnswererConfig(reader=shape))
        model.reader.start_from(reader)
        return model

    def forward(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The logits of beginning and end.   (B, N) -> (B, N), (B, N)"""
        if segments is None:
            raise ShapeError("segments are missing; give 0 for each token of the question and 1 for the context's.")
        edges = self.edges(self.reader(ids, mask, segments))
        allowed = segments == 1 if mask is None else (segments == 1) & mask
        edges = edges.masked_fill(~_with_first(allowed)[..., None], float("-inf"))
        return edges[..., 0], edges[..., 1]


def _with_first(allowed: Tensor) -> Tensor:
    """Place 0 as well, so that there is always one to choose."""
    first = allowed.new_zeros(allowed.shape[1])
    first[0] = True
    return allowed | first
