"""How good a trained model is on text that it has not seen: it is asked, and its answers are compared."""

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..predictions import Predictor, load
from ..text.corpora import Corpus
from ..text.store import TokenStore
from .engine import Engine
from .feeding import Feed
from .jobs import JOBS
from .measuring import measure as measure_all
from .metrics import agreement, answers, bleu, chrf, perplexity, rouge
from .ranks import Ranks
from .reading import corpus_of
from .recipes import TASKS
from .settings import DataSettings
from .tasks.batch import by_the

BATCH = 256  # examples that are asked about at once

Examples = Iterable[dict[str, str]]


@dataclass(frozen=True)
class Evaluation:
    """What was measured. signatures: how sacrebleu came by its scores, to be told along with them."""

    model: str
    examples: int
    numbers: Mapping[str, float]
    signatures: Mapping[str, str] = field(default_factory=dict)
    skipped: int = 0  # malformed examples

    def as_json(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return asdict(self)


def evaluate(folder: Path | str, data: DataSettings, *, trained_for: str = "") -> Evaluation:
    """The model of a folder, measured on the paths of `data`; what is held out of them plays no part.

    trained_for: the task, where somebody knows it: translations and summaries come of the same kind of model.
    """
    predictor = load(folder)
    task = KINDS[predictor.model.kind]
    wanted = list(JOBS[task].fields)
    missing = [name for name in wanted if data.fields and name not in data.fields]
    if missing:
        raise OptionError(f"fields has {', '.join(data.fields)}, and {', '.join(missing)} is needed as well.")
    read = replace(data, form=data.form or TASKS[task]().data.form)
    corpus = corpus_of(data.paths, data.fields or wanted, read)
    measure = _texts(trained_for) if task == "translation" else MEASURES[task]
    found = measure(predictor, corpus)
    return replace(found, model=predictor.name, skipped=corpus.skipped.count)


def _texts(task: str) -> Callable[[Any, Examples], Evaluation]:
    """Of translations: BLEU and chrF; of summaries: ROUGE; all of them where nobody says which they are."""

    def measure(predictor: Any, examples: Examples) -> Evaluation:
        def ask(some: list[dict[str, str]]) -> list[str]:
            return [one.text for one in predictor([example["source"] for example in some])]

        given, wanted = _asked(examples, ask, "target")
        scores = {} if task == "summarisation" else {"BLEU": bleu(given, wanted), "chrF": chrf(given, wanted)}
        numbers = {name: score.score for name, score in scores.items()}
        if task != "translation":
            words = rouge(given, wanted)
            numbers |= {"ROUGE-1": words.one, "ROUGE-2": words.two, "ROUGE-L": words.longest}
        return Evaluation("", len(given), numbers, {name: score.signature for name, score in scores.items()})

    return measure


def _labels(predictor: Any, examples: Examples) -> Evaluation:
    given, wanted = _asked(examples, lambda some: [one.label for one in predictor([e["text"] for e in some])], "label")
    known = predictor.model.config.labels
    foreign = sorted({*wanted} - {*known})
    if foreign:
        raise OptionError(
            f"the data has labels that {predictor.name} does not know: {', '.join(foreign[:5])}; it knows "
            f"{', '.join(known[:5])}. Is the right column taken for the label?"
        )
    found = agreement(given, wanted, known)
    each = {f"F1 of {one.label}": one.f1 for one in found.labels}
    return Evaluation("", len(given), {"accuracy": found.accuracy, "macro F1": found.macro, **each})


def _answers(predictor: Any, examples: Examples) -> Evaluation:
    def ask(some: list[dict[str, str]]) -> list[str]:
        return [one.text for one in predictor([(example["question"], example["context"]) for example in some])]

    given, wanted = _asked(examples, ask, "answers")
    found = answers(given, [json.loads(several) for several in wanted])
    return Evaluation("", len(given), {"exact match": found.exact, "F1": found.f1})


def _losses(task: str) -> Callable[[Predictor, Corpus], Evaluation]:
    """Of running text: how likely it is to the model, window by window as in training."""

    def measure(predictor: Predictor, corpus: Corpus) -> Evaluation:
        recipe, config = TASKS[task](), predictor.model.config
        model = {"next_sentence": True} if getattr(config, "next_sentence", False) else {}
        training = replace(recipe.training, tokens=max(recipe.training.tokens, config.longest))
        data = replace(recipe.data, longest=config.longest)
        settings = replace(recipe, data=data, model=model, training=training)
        job = JOBS[task](task, settings, predictor.tokenizer)
        ranks = Ranks(0, 1, next(predictor.model.parameters()).device)
        with tempfile.TemporaryDirectory() as folder:
            store = TokenStore.build(
                Path(folder) / "ids", job.encoded(corpus), job.task.fields, vocabulary=predictor.tokenizer.size,
                longest=job.limits(), too_long="cut",
            )  # fmt: skip
            feed = Feed(job.source(store), job.task.collate, ranks, seed=settings.training.seed)
            found = measure_all(Engine(predictor.model, job.task, ranks), feed)
            guessed = found.get("masked loss", found["loss"])  # not of whether one part follows another
            return Evaluation("", len(store), {**found, "perplexity": perplexity(guessed)})

    return measure


def _asked(
    examples: Examples, ask: Callable[[list[dict[str, str]]], list[str]], wanted: str
) -> tuple[list[str], list[str]]:
    """What the model says of each example, and what it should have said."""
    given, references = [], []
    for some in by_the(BATCH, examples):
        given += ask(some)
        references += [example[wanted] for example in some]
    return given, references


KINDS = {
    "regard.Translator": "translation", "regard.Classifier": "classification", "regard.Answerer": "question-answering",
    "regard.LanguageModel": "language-model", "regard.TextEncoder": "masked-language-model",
}  # fmt: skip
MEASURES: dict[str, Callable[[Any, Corpus], Evaluation]] = {
    "classification": _labels, "question-answering": _answers,
    "language-model": _losses("language-model"), "masked-language-model": _losses("masked-language-model"),
}  # fmt: skip
