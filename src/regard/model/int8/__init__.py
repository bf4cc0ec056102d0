"""Translators whose matrices are whole numbers of 8 bits, for decoding on a CPU several times as fast."""

from .linear import available
from .translator import QuickState, QuickTranslator, quantised

__all__ = ["QuickState", "QuickTranslator", "available", "quantised"]
