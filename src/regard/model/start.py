"""The trained model that another begins with: its reader, whatever it was trained to say."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import nn

from ..errors import OptionError
from .reader import Reader, ReaderConfig
from .saved import Saved, kind_of

__all__ = ["reader_config", "reader_of"]


def reader_of(trained: nn.Module | Path | str) -> Reader:
    """The reader of a model, or of the folder that one was saved in."""
    model = trained if isinstance(trained, nn.Module) else _loaded(trained)
    found = model if isinstance(model, Reader) else getattr(model, "reader", None)
    if not isinstance(found, Reader):
        raise OptionError(f"a {type(model).__name__} has no reader to begin with; give a {_names()}.")
    return found


def reader_config(reader: Reader, **changes: Any) -> ReaderConfig:
    """The shape of a reader, without what a model around it adds."""
    return ReaderConfig(**{field.name: getattr(reader.config, field.name) for field in fields(ReaderConfig)} | changes)


def _loaded(folder: Path | str) -> Saved:
    kind = kind_of(folder)
    for model in _reading():
        if model.kind == kind:
            return model.load(folder)
    raise OptionError(f"{folder} holds a {kind.removeprefix('regard.')}, which has no reader; give a {_names()}.")


def _reading() -> tuple[type[Saved], ...]:
    from .answerer import Answerer
    from .classifier import Classifier
    from .text_encoder import TextEncoder

    return TextEncoder, Classifier, Answerer


def _names() -> str:
    *names, last = (model.__name__ for model in _reading())
    return f"{', '.join(names)} or {last}"
