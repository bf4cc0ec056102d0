"""Good settings to begin with, a function for each task: a small model that learns on a laptop."""

# A recipe is called with what is to be other: translation(width=512, data={"paths": ["train.tsv"]}).
# The warm-up and the looks at held-out text are shares of the run, for an epoch may have 30 steps or 30,000.

from collections.abc import Callable
from typing import Any

from .changes import SECTIONS, Change, changed, of_name
from .settings import DataSettings, Settings, TokenizerSettings, TrainingSettings


def translation(**changes: Any) -> Settings:
    """Sentences into another language."""
    return _changed(
        Settings(
            data=DataSettings(longest=128),  # nearly every sentence; a few long ones would fill most of a batch
            tokenizer=TokenizerSettings(size=8000),  # shared, so that names and numbers are copied as they are
            # A deep encoder runs once for a sentence, a decoder once for every token: put the layers into the former.
            model={"width": 256, "heads": 4, "depth": 6, "decoder_depth": 2, "hidden": 1024, "dropout": 0.1},
            training=TrainingSettings(
                epochs=20, tokens=4096, learning_rate=1e-3, schedule="inverse-sqrt", warmup=0.1, evaluate_every=0.05,
                label_smoothing=0.1,  # there are many right translations, and the data has one of them
                ema=0.999,  # the mean of late weights translates better than the last ones
            ),
        ),
        changes,
    )  # fmt: skip


def summarisation(**changes: Any) -> Settings:
    """Long texts into short ones: the model of translation, on longer sources."""
    return _changed(
        Settings(
            data=DataSettings(longest=512),
            tokenizer=TokenizerSettings(size=8000),
            model={"width": 256, "heads": 4, "depth": 4, "decoder_depth": 2, "hidden": 1024, "dropout": 0.1},
            training=TrainingSettings(
                epochs=10, tokens=8192, learning_rate=7e-4, schedule="inverse-sqrt", warmup=0.1, evaluate_every=0.05,
                label_smoothing=0.1, ema=0.999,
            ),
        ),
        changes,
    )  # fmt: skip


def classification(**changes: Any) -> Settings:
    """A label for a text."""
    return _changed(
        Settings(
            data=DataSettings(longest=256, held_out=0.1),  # small data sets need a larger part to measure by
            tokenizer=TokenizerSettings(size=8000),
            # Few examples, so few weights and much dropout.
            model={"width": 128, "heads": 4, "depth": 2, "hidden": 256, "dropout": 0.3, "pooling": "mean"},
            training=TrainingSettings(
                epochs=10, tokens=4096, learning_rate=5e-4, warmup=0.1, weight_decay=0.05, evaluate_every=0.05,
                patience=8,  # of twenty; it begins to learn by heart long before it is through
            ),
        ),
        changes,
    )  # fmt: skip


def language_model(**changes: Any) -> Settings:
    """What comes next in running text."""
    return _changed(
        Settings(
            data=DataSettings(longest=256),  # the window
            tokenizer=TokenizerSettings(size=8000),
            model={"width": 256, "heads": 4, "depth": 6, "hidden": 768, "dropout": 0.1},
            training=TrainingSettings(
                epochs=5, tokens=8192, learning_rate=1e-3, warmup=0.05, evaluate_every=0.05, betas=(0.9, 0.95),
                eps=1e-8, weight_decay=0.1,
            ),
        ),
        changes,
    )  # fmt: skip


def masked_language_model(**changes: Any) -> Settings:
    """Words that were hidden in running text."""
    return _changed(
        Settings(
            data=DataSettings(longest=128),
            tokenizer=TokenizerSettings(size=8000),
            model={"width": 256, "heads": 8, "depth": 6, "hidden": 512, "dropout": 0.1},
            # Only one place in seven is guessed at, so it takes more passes than a language model.
            training=TrainingSettings(
                epochs=20, tokens=8192, learning_rate=1e-3, warmup=0.05, evaluate_every=0.05, eps=1e-8,
                weight_decay=0.01,
            ),
        ),
        changes,
    )  # fmt: skip


def question_answering(**changes: Any) -> Settings:
    """Where in a text the answer stands. It wants a model that can read already: regard train … --from FOLDER."""
    return _changed(
        Settings(
            data=DataSettings(longest=384, form="questions"),  # question and a window of the text
            tokenizer=TokenizerSettings(size=8000),
            model={"width": 256, "heads": 8, "depth": 6, "hidden": 512, "dropout": 0.1},
            training=TrainingSettings(
                epochs=5, tokens=8192, learning_rate=3e-4, warmup=0.1, eps=1e-8, evaluate_every=0.05, patience=8
            ),
        ),
        changes,
    )


TASKS: dict[str, Callable[..., Settings]] = {
    "translation": translation,
    "classification": classification,
    "language-model": language_model,
    "masked-language-model": masked_language_model,
    "question-answering": question_answering,
    "summarisation": summarisation,
}


def _changed(settings: Settings, changes: dict[str, Any]) -> Settings:
    """By section, data={"paths": …}, or by the name alone, steps=100, where one section has it."""
    made = [
        Change(name, value, "recipe") if name in SECTIONS else Change(of_name(name, settings), {name: value}, "recipe")
        for name, value in changes.items()
    ]
    return changed(settings, made, model=changes.get("model", {}))
