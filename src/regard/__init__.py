"""Attention: computed from its formula, built into Transformers, and seen."""

from importlib import import_module
from types import ModuleType

from . import errors

__version__ = "0.1.0"
__all__ = ["__version__", "errors", "formula", "lessons", "model"]


def __getattr__(name: str) -> ModuleType:
    """The rooms, each opened when somebody enters it: `import regard` alone loads no library of arrays."""
    if name in ("formula", "lessons", "model"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
