"""Running model → record: watching, the record itself, its file, its statistics, its measures."""

from .record import Head, Layer, Mean, Record, Run
from .sight import Sight, Top
from .tokens import Tokens

__all__ = ["Head", "Layer", "Mean", "Record", "Run", "Sight", "Tokens", "Top"]
