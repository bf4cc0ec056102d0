"""The folder of a trained model → what predicts with it, by the kind that its config.json names."""

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from ..errors import FileError, MissingExtra, OptionError
from ..models import folder as shipped
from ..models import names

try:
    import torch
except ImportError as missing:
    raise MissingExtra("predictions need PyTorch: pip install regard[torch]") from missing

from ..model.kinds import load as load_model
from ..model.saved import CONFIG
from ..record import Record
from ..text.bpe import FILE, TARGET, Tokenizer

__all__ = ["Predictor", "load"]

# The kind of a model → the file of this room that predicts with it, and the class in it.
PREDICTORS = {
    "regard.Translator": ("translation", "Translation"),
    "regard.LanguageModel": ("generation", "Generation"),
    "regard.Classifier": ("classification", "Classification"),
    "regard.TextEncoder": ("filling", "Filling"),
    "regard.Answerer": ("answering", "Answering"),
}


class Predictor(Protocol):
    """A trained model made usable. Called with a list of texts it gives as many results, in their order."""

    name: str
    model: Any
    tokenizer: Tokenizer

    def __call__(self, texts: Any, /) -> list[Any]:
        """A result for each text, with `as_json()`."""
        ...

    def look(self, text: str, /) -> Record:
        """The attention of what it does with a text."""
        ...


def load(folder: Path | str, *, device: str = "auto") -> Predictor:
    """What predicts with the model of a folder; or with one that ships with Regard, by its name.

    device: "cpu", "cuda", …; "auto" takes a GPU where there is one.
    """
    path = _found(folder)
    model = load_model(path).to(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
    file, predictor = PREDICTORS[model.kind]
    made: type[Any] = getattr(import_module(f".{file}", __package__), predictor)
    tokenizer, name = _tokenizer(path, FILE), str(folder)
    try:
        if getattr(model.config, "target_vocabulary", None) is not None:
            return made(model, tokenizer, name, target_tokenizer=_tokenizer(path, TARGET))  # type: ignore[no-any-return]
        return made(model, tokenizer, name)  # type: ignore[no-any-return]
    except OptionError as error:  # a tokenizer that is not the model's is a fault of the folder
        raise FileError(str(error)) from None


def _found(folder: Path | str) -> Path:
    path = Path(folder)
    if path.is_dir():
        return path
    if str(folder) in names():
        return shipped(str(folder))
    if path.exists():
        raise FileError(f"{path} is a file; give the folder of a trained model, with {CONFIG} in it.")
    raise FileError(f"there is no folder {path}, and of that name no model ships with Regard ({', '.join(names())}).")


def _tokenizer(path: Path, name: str) -> Tokenizer:
    if not (path / name).exists():
        raise FileError(f"{path} has no {name}; put the tokenizer there that the model was trained with.")
    return Tokenizer.load(path, name)
