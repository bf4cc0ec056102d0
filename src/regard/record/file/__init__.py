"""The record's file: one safetensors file, written tensor after tensor, opened as a map of the disk.

docs/record-file.md says what stands in it, byte by byte. Nothing in a file is ever run: kinds of masks and biases are
looked up in the tables of `forms`, everything else is numbers and text that are checked before they are believed.
"""

from .reading import open
from .writing import save

__all__ = ["open", "save"]
