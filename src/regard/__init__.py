"""Attention: computed from its formula, built into Transformers, and seen."""

from . import errors

__version__ = "0.1.0"
__all__ = ["__version__", "errors"]
