"""What is learned: each task makes ids of texts, batches of ids, and losses and measures of a model's answers."""

from .answering import Answering
from .batch import Batch
from .classification import Classification, labels_of
from .language_model import LanguageModelling
from .masked import MaskedModelling, Paired
from .translation import Translation

__all__ = [
    "Answering", "Batch", "Classification", "LanguageModelling", "MaskedModelling", "Paired", "Translation",
    "labels_of",
]  # fmt: skip
