"""Corpora: files, folders, pairs of files and hub data sets → examples, one by one, whatever their size."""

from .corpus import Bad, Corpus, Example, Skipped
from .held_out import Parts, split
from .hub import hub, rows
from .pairs import parallel
from .questions import questions
from .reading import read

__all__ = ["Bad", "Corpus", "Example", "Parts", "Skipped", "hub", "parallel", "questions", "read", "rows", "split"]
