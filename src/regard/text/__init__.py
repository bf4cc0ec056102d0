"""Text → tokens, and tokens → vectors."""

from . import vectors
from .words import split

__all__ = ["split", "vectors"]
