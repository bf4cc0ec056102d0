"""A trained folder → what people want of it: text in, labels, words, answers, translations and texts out."""

from .loading import Predictor, load

__all__ = ["Predictor", "load"]
