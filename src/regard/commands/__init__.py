"""The command line: a file for each command, or for a few that are alike, and what they share."""

# What a command needs is imported inside it, so that `regard --help` is there at once. The order is that of the help.

# isort: off
from . import explain, see, serve
from . import train, translate, classify, generate, fill, answer, evaluate, export

# isort: on
from .app import main

__all__ = [
    "answer", "classify", "evaluate", "explain", "export", "fill", "generate", "main", "see", "serve", "train",
    "translate",
]  # fmt: skip
