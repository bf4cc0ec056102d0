"""Models of our own: the one that ships with the package, and folders that were saved."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ..errors import OptionError
from ..models import folder
from ..record.tokens import Tokens
from ..record.watching import watch
from ..text.pieces import readable
from . import BUILT_IN, Seen

if TYPE_CHECKING:
    from ..model.text_encoder import TextEncoder
    from ..text.bpe import Tokenizer

__all__ = ["OwnSubject", "folder_of", "load_own"]


def folder_of(name: str) -> Path | None:
    """The folder of a model of ours, if a name means one."""
    if name == BUILT_IN:
        return folder(name)
    try:
        with open(Path(name) / "config.json", encoding="utf-8") as file:
            return Path(name) if str(json.load(file).get("kind", "")).startswith("regard.") else None
    except (OSError, ValueError, AttributeError):
        return None


def load_own(name: str, path: Path) -> "OwnSubject":
    """A text encoder and its tokenizer."""
    from ..model.text_encoder import TextEncoder
    from ..text.bpe import Tokenizer

    return OwnSubject(name, TextEncoder.load(path), Tokenizer.load(path))


class OwnSubject:
    """A text encoder of ours that can be looked at while it reads."""

    def __init__(self, name: str, model: "TextEncoder", tokenizer: "Tokenizer") -> None:
        self.name, self.model, self.tokenizer = name, model, tokenizer

    def look(self, text: str, *, pair: str | None = None, generate: int = 0, values: bool = False) -> Seen:
        """Let it read a text, or two of them one behind the other."""
        if generate:
            raise OptionError(f"{self.name} only reads; leave --generate out, or take a model that writes, as smollm2.")
        first = self.tokenizer.encode(text)
        ids, pieces = list(first.ids), list(first.pieces)
        segments = [0] * len(ids)
        if pair is not None:
            second = self.tokenizer.encode(pair)
            ids, pieces = ids + second.ids[1:], pieces + second.pieces[1:]
            segments += [1] * (len(ids) - len(segments))
        longest = self.model.config.longest
        if len(ids) > longest:
            raise OptionError(f"{len(ids):,} tokens, and {self.name} takes at most {longest:,}; give a shorter text.")
        with torch.no_grad(), watch(self.model, values=values) as record:
            self.model(torch.tensor([ids]))
        specials = {self.tokenizer.pad, self.tokenizer.first, self.tokenizer.last, self.tokenizer.mask}
        read = readable(pieces, [number in specials for number in ids])
        tokens = Tokens(
            tuple(piece.text for piece in read), tuple(piece.begins for piece in read),
            None if pair is None else tuple(segments),
        )  # fmt: skip
        return Seen(record=record.labelled(tokens))
