"""Attention: computed from its formula, built into Transformers, and seen."""

from importlib import import_module
from typing import Any

from . import errors

__version__ = "0.1.0"
__all__ = ["__version__", "errors", "formula", "lessons", "model", "models", "open", "record", "watch", "without"]

_ROOMS = ("formula", "lessons", "model", "models", "record")
_NAMES = {"watch": ".record.watching", "without": ".record.watching", "open": ".record.file"}


def __getattr__(name: str) -> Any:
    """The rooms and what is used most, opened when asked for: `import regard` alone loads no library of arrays."""
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    if name in _NAMES:
        return getattr(import_module(_NAMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
