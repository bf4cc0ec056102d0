"""The models that can be kept in a folder, by the kind that its config.json names."""

from importlib import import_module
from pathlib import Path

from ..errors import FileError
from .saved import CONFIG, Saved, kind_of

# kind → the file of this room, and the class in it; read only when it is asked for
KINDS = {
    "regard.Translator": ("translator", "Translator"),
    "regard.LanguageModel": ("language_model", "LanguageModel"),
    "regard.Classifier": ("classifier", "Classifier"),
    "regard.TextEncoder": ("text_encoder", "TextEncoder"),
    "regard.Answerer": ("answerer", "Answerer"),
}


def load(folder: Path | str) -> Saved:
    """The model of a folder, of whatever kind, in float32 and ready to be asked."""
    return model_of(folder).load(folder)


def model_of(folder: Path | str) -> type[Saved]:
    """The class of the model of a folder."""
    kind = kind_of(folder)
    if kind not in KINDS:
        known = ", ".join(one.removeprefix("regard.") for one in KINDS)
        path = Path(folder) / CONFIG
        raise FileError(f"{path} has kind {kind!r}, which this Regard does not know; it knows {known}.")
    file, name = KINDS[kind]
    found: type[Saved] = getattr(import_module(f".{file}", __package__), name)
    return found
