"""Folders of small models that were never trained, each as a training leaves it."""

from regard.model.answerer import Answerer, AnswererConfig
from regard.model.classifier import Classifier, ClassifierConfig
from regard.model.language_model import LanguageModel, LanguageModelConfig
from regard.model.reader import ReaderConfig
from regard.model.translator import Translator, TranslatorConfig
from regard.text.bpe import Tokenizer

TEXTS = ["the cat sat on the mat", "a dog ran in the park", "who sat on the mat?", "猫坐在垫子上"]
SMALL = {"width": 16, "heads": 2, "depth": 1, "hidden": 32, "longest": 32}


def save_all(root):
    """A folder for each kind of model."""
    import torch

    torch.manual_seed(0)
    tokenizer = Tokenizer.train(TEXTS * 3, 280)
    known = {"vocabulary": tokenizer.size, "tokenizer": tokenizer.hash}
    reader = ReaderConfig(**known, **SMALL)
    models = {
        "translator": Translator(TranslatorConfig(**known, **SMALL, decoder_depth=1)),
        "classifier": Classifier(ClassifierConfig(reader=reader, labels=("good", "bad"))),
        "language-model": LanguageModel(LanguageModelConfig(**known, **SMALL)),
        "answerer": Answerer(AnswererConfig(reader=ReaderConfig(**known, **SMALL, segments=2))),
    }
    for name, model in models.items():
        model.save(root / name)
        tokenizer.save(root / name)
    return {name: root / name for name in models}
