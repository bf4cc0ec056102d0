"""Models of our own: the one that ships with the package, and folders that were saved."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..errors import OptionError
from ..models import folder
from ..record import Record
from ..record.watching import watch
from ..text.pieces import joined
from . import BUILT_IN, Seen

if TYPE_CHECKING:
    from ..predictions import Predictor

__all__ = ["OwnReader", "OwnWriter", "folder_of", "load_own"]

READS = {"regard.TextEncoder", "regard.Classifier", "regard.Answerer"}


def folder_of(name: str) -> Path | None:
    """The folder of a model of ours, if a name means one."""
    if name == BUILT_IN:
        return folder(name)
    try:
        with open(Path(name) / "config.json", encoding="utf-8") as file:
            return Path(name) if str(json.load(file).get("kind", "")).startswith("regard.") else None
    except (OSError, ValueError, AttributeError):
        return None


def load_own(name: str, path: Path) -> "OwnReader | OwnWriter":
    """A model of ours with its tokenizer, whatever it was trained for."""
    from ..predictions import load

    predictor = load(path)
    return OwnReader(name, predictor) if predictor.model.kind in READS else OwnWriter(name, predictor)


class OwnReader:
    """A text encoder, a classifier or an answerer of ours that can be looked at while it reads."""

    def __init__(self, name: str, predictor: "Predictor") -> None:
        self.name, self.model, self.tokenizer = name, predictor.model, predictor.tokenizer

    def look(self, text: str, *, pair: str | None = None, generate: int = 0, values: bool = False) -> Seen:
        """Let it read a text, or two of them one behind the other: for an answerer, question and context."""
        from ..predictions.reading import asked, labels

        if generate:
            raise OptionError(f"{self.name} only reads; leave --generate out, or take a model that writes, as smollm2.")
        ids = self.tokenizer.encode(text).ids
        segments = [0] * len(ids)
        if pair is not None:
            second = self.tokenizer.encode(pair).ids[1:]
            ids, segments = [*ids, *second], [*segments, *[1] * len(second)]
        self._require_able(pair, len(ids))
        with asked(self.model) as device, watch(self.model, values=values) as record:
            self.model(*self._inputs(ids, segments, device))
        return Seen(record=record.labelled(labels(self.tokenizer, ids, None if pair is None else segments)))

    def _inputs(self, ids: list[int], segments: list[int], device: torch.device) -> tuple[Any, ...]:
        """What the model takes; a classifier, or one that was made without segments, does not ask for them."""
        rows = [torch.tensor([row], device=device) for row in (ids, segments)]
        takes = self.model.kind != "regard.Classifier" and self._shape.segments > 1
        return (rows[0], None, rows[1]) if takes else (rows[0],)

    @property
    def _shape(self) -> Any:
        return getattr(self.model.config, "reader", self.model.config)

    def _require_able(self, pair: str | None, tokens: int) -> None:
        if pair is None and self.model.kind == "regard.Answerer":
            raise OptionError(f"{self.name} answers questions; give the question as the text and --pair its context.")
        longest = self._shape.longest
        if tokens > longest:
            raise OptionError(f"{tokens:,} tokens, and {self.name} takes at most {longest:,}; give a shorter text.")


class OwnWriter:
    """A translator or a language model of ours that can be looked at while it reads and writes."""

    def __init__(self, name: str, predictor: "Predictor") -> None:
        self.name, self.model, self.tokenizer = name, predictor.model, predictor.tokenizer
        self._predictor: Any = predictor

    def look(self, text: str, *, pair: str | None = None, generate: int = 0, values: bool = False) -> Seen:
        """Let a language model read a text and write so many tokens; a translator always writes, all that it has to."""
        if pair is not None:
            raise OptionError(f"{self.name} takes one text; leave --pair out.")
        if self.model.kind == "regard.Translator":
            if generate:
                raise OptionError(f"{self.name} writes until its text is whole; leave --generate out.")
            return _wrote(self._predictor.look(text, values=values))
        if generate:
            return _wrote(self._predictor.look(text, longest=generate, values=values))
        return Seen(record=self._predictor.look(text, "", values=values))


def _wrote(record: Record) -> Seen:
    """With the text of the tokens that the model wrote itself."""
    tokens = record.layers[-1].queries[0]
    return Seen(record=record, wrote=joined(tokens.texts[tokens.generated :]))
