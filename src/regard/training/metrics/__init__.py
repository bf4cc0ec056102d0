"""How good a trained model is: BLEU, chrF, ROUGE, accuracy, F1, exact match, perplexity."""

from .agreement import Agreement, OfLabel, agreement
from .bleu import Score, bleu, chrf
from .perplexity import bits_per_character, perplexity
from .rouge import Rouge, rouge
from .spans import Answers, answers

__all__ = [
    "Agreement", "Answers", "OfLabel", "Rouge", "Score", "agreement", "answers", "bits_per_character", "bleu", "chrf",
    "perplexity", "rouge",
]  # fmt: skip
