"""Weights that ship with the package, each folder with its card (README.md)."""

from importlib.resources import files
from pathlib import Path

from ..errors import FileError, OptionError

__all__ = ["folder", "names"]


def names() -> list[str]:
    """The models that are here, each one the name of its folder."""
    return sorted(path.parent.name for path in _home().glob("*/config.json"))


def folder(name: str) -> Path:
    """Where the files of a model lie, as `TextEncoder.load` and `Tokenizer.load` take it.   folder("encoder")"""
    if name not in names():
        raise OptionError(f"no model {name!r} ships with Regard; there is {', '.join(names()) or 'none'}.")
    return _home() / name


def _home() -> Path:
    here = files(__name__)
    if not isinstance(here, Path):
        raise FileError(f"Regard is imported out of {here}; its models need an installation that is unpacked.")
    return here
