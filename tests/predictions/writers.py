"""Small models that write, with tokenizers of their own, for the tests."""

import torch

from regard.model import LanguageModel, LanguageModelConfig, Translator, TranslatorConfig
from regard.text.bpe import Tokenizer

TEXTS = ["the cat sat on the mat", "a dog ran after the cat", "猫坐在垫子上", "good morning, good evening"]


def tokenizer(size=300, texts=TEXTS):
    return Tokenizer.train(texts * 4, size)


def sharpened(model, seed=0):
    """Guesses far apart, so that what is written takes turns, and ends."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                factor = 4.0 if "embedding" in name else 2.0
                weight.copy_(torch.randn(weight.shape, generator=generator) * factor * weight.shape[1] ** -0.5)
    return model.eval()


def translator(pieces, *, seed=0, **options):
    config = TranslatorConfig(
        vocabulary=pieces.size, width=32, heads=4, depth=2, decoder_depth=2, hidden=64, tokenizer=pieces.hash,
        **{"longest": 48, **options},
    )  # fmt: skip
    return sharpened(Translator(config), seed)


def language_model(pieces, *, seed=0, **options):
    config = LanguageModelConfig(
        vocabulary=pieces.size, width=32, heads=4, depth=2, hidden=64, tokenizer=pieces.hash,
        **{"longest": 32, **options},
    )  # fmt: skip
    return sharpened(LanguageModel(config), seed)
