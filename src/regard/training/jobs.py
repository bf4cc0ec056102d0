"""What each task is put together of: its text, its tokenizers, its batches, its model and what the model learns."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..errors import OptionError
from ..model.answerer import Answerer
from ..model.classifier import Classifier
from ..model.language_model import LanguageModel
from ..model.saved import Saved, kind_of
from ..model.text_encoder import TextEncoder
from ..model.translator import Translator
from ..predictions.reading import require_own
from ..text.batches import Bucketed, Source
from ..text.bpe import Tokenizer
from ..text.store import TokenStore
from ..text.windows import Windows
from . import tasks
from .settings import Settings
from .shape import shaped

Examples = Iterable[dict[str, str]]
Encoded = Iterator[dict[str, list[int]]]


@dataclass(frozen=True)
class Job:
    """One task with its settings. The subclasses say what differs from one task to another."""

    name: str
    settings: Settings
    tokenizer: Tokenizer
    target: Tokenizer | None = None  # of the target, where the vocabularies are two
    labels: tuple[str, ...] = ()

    fields: ClassVar[tuple[str, ...]]  # of an example of the corpus
    spoken: ClassVar[tuple[str, ...]]  # those that the tokenizer learns its pieces from
    sized: ClassVar[tuple[str, ...]]  # of an example in ids: what batches are cut by
    Model: ClassVar[type[Saved]]
    varied: ClassVar[bool] = True  # batches are of many shapes
    goal: ClassVar[str] = "loss"  # what is to be best on held-out text: the least loss, or the most of what it names

    @property
    def task(self) -> Any:
        """What the model learns."""
        raise NotImplementedError

    def encoded(self, examples: Examples, told: Counter[str] | None = None) -> Encoded:
        """Examples as ids, as the store keeps them. told: what was lost on the way is counted in it."""
        return self.task.encode(examples, self.tokenizer)  # type: ignore[no-any-return]

    def limits(self) -> dict[str, int]:
        """The most ids that a field may have."""
        return dict.fromkeys(self.sized, self.settings.data.longest)

    def source(self, store: TokenStore) -> Source:
        """Batches of a store."""
        training = self.settings.training
        return Bucketed(store, tokens=training.tokens, seed=training.seed, fields=self.sized)

    def model(self, pretrained: Path | None) -> Saved:
        """A new one of the shape that [model] says; or one that was trained, to go on with."""
        if pretrained is None:
            return self.Model(shaped(self.Model.Config, self.settings.model, **self._given()))
        if kind_of(pretrained) != self.Model.kind:
            raise OptionError(
                f"{pretrained} holds a {kind_of(pretrained)}; {self.name} goes on with a {self.Model.kind}."
            )
        model = self.Model.load(pretrained)
        require_own(str(pretrained), model.config.tokenizer, model.config.vocabulary, self.tokenizer)
        return model

    def _given(self) -> Mapping[str, Any]:
        """What the config of the model takes from the data and the tokenizer."""
        return {
            "vocabulary": self.tokenizer.size, "tokenizer": self.tokenizer.hash,
            "longest": self.settings.data.longest,
        }  # fmt: skip


class Translating(Job):
    """Translation, and summarisation: a text for a text."""

    fields = spoken = sized = ("source", "target")
    Model = Translator

    @property
    def task(self) -> tasks.Translation:
        training = self.settings.training
        written = self.target or self.tokenizer
        return tasks.Translation(
            pad=self.tokenizer.pad,
            first=written.first,
            label_smoothing=training.label_smoothing,
            r_drop=training.r_drop,
            longest=self.settings.data.longest,
        )

    def encoded(self, examples: Examples, told: Counter[str] | None = None) -> Encoded:
        return self.task.encode(examples, self.tokenizer, self.target)

    def model(self, pretrained: Path | None) -> Saved:
        model = super().model(pretrained)
        vocabulary = model.config.target_vocabulary
        if (vocabulary is None) != (self.target is None):
            has = "one vocabulary for both texts" if vocabulary is None else "a vocabulary for each text"
            raise OptionError(f"the model of {pretrained} has {has}; its folder must have as many tokenizers.")
        if self.target is not None:
            require_own(f"{pretrained}'s target", model.config.target_tokenizer, vocabulary, self.target)
        return model

    def _given(self) -> Mapping[str, Any]:
        other = self.target
        two = {} if other is None else {"target_vocabulary": other.size, "target_tokenizer": other.hash}
        return {**super()._given(), **two}


class Classifying(Job):
    """A label for a text."""

    fields, spoken, sized = ("text", "label"), ("text",), ("text",)
    Model = Classifier
    goal = "accuracy"

    @property
    def task(self) -> tasks.Classification:
        training = self.settings.training
        return tasks.Classification(
            pad=self.tokenizer.pad, labels=self.labels, label_smoothing=training.label_smoothing,
            r_drop=training.r_drop, longest=self.settings.data.longest,
        )  # fmt: skip

    def model(self, pretrained: Path | None) -> Saved:
        if pretrained is None:
            return super().model(None)
        chosen = {name: self.settings.model[name] for name in ("pooling", "dropout") if name in self.settings.model}
        return Classifier.of(pretrained, labels=self.labels, tokenizer=self.tokenizer.hash, **chosen)

    def _given(self) -> Mapping[str, Any]:
        return {**super()._given(), "labels": self.labels, "segments": 0}


class Continuing(Job):
    """A language model: what comes next in running text."""

    fields = spoken = sized = ("text",)
    varied = False
    Model: ClassVar[type[Saved]] = LanguageModel

    @property
    def task(self) -> tasks.LanguageModelling:
        return tasks.LanguageModelling(
            pad=self.tokenizer.pad, label_smoothing=self.settings.training.label_smoothing,
            longest=self.settings.data.longest,
        )  # fmt: skip

    def limits(self) -> dict[str, int]:
        return {}  # running text is cut into windows, and nothing of it is lost

    def source(self, store: TokenStore) -> Source:
        training = self.settings.training
        return Windows(store, length=self.settings.data.longest, tokens=training.tokens, seed=training.seed)


class Unmasking(Continuing):
    """A masked language model: what was hidden in running text."""

    Model = TextEncoder

    @property
    def task(self) -> Any:
        return tasks.MaskedModelling(
            pad=self.tokenizer.pad, first=self.tokenizer.first, last=self.tokenizer.last, mask=self.tokenizer.mask,
            vocabulary=self.tokenizer.size, share=self.settings.training.masked_share,
            next_sentence=self._next_sentence, longest=self.settings.data.longest,
        )  # fmt: skip

    def source(self, store: TokenStore) -> Source:
        training = self.settings.training
        length = self.settings.data.longest - self.task.added
        windows = Windows(store, length=length, tokens=training.tokens, seed=training.seed)
        if not self._next_sentence:
            return windows
        return tasks.Paired(windows, total=store.total("text"), length=length, seed=training.seed)

    def _given(self) -> Mapping[str, Any]:
        return {**super()._given(), "segments": 2 if self._next_sentence else 0}

    @property
    def _next_sentence(self) -> bool:
        return bool(self.settings.model.get("next_sentence", False))


class Answering(Job):
    """Where in a text the answer to a question stands."""

    fields, spoken, sized = ("question", "context", "answer", "start"), ("question", "context"), ("ids",)
    Model = Answerer

    @property
    def task(self) -> tasks.Answering:
        data = self.settings.data
        return tasks.Answering(
            pad=self.tokenizer.pad,
            longest=data.longest,
            overlap=min(data.longest // 3, max(data.longest // 2 - 4, 0)),
            most_bad=data.most_bad,
        )

    def encoded(self, examples: Examples, told: Counter[str] | None = None) -> Encoded:
        return self.task.encode(examples, self.tokenizer, told)

    def model(self, pretrained: Path | None) -> Saved:
        if pretrained is None:
            return super().model(None)
        return Answerer.of(pretrained, tokenizer=self.tokenizer.hash)

    def _given(self) -> Mapping[str, Any]:
        return {**super()._given(), "segments": 2}


JOBS: dict[str, type[Job]] = {
    "translation": Translating,
    "summarisation": Translating,
    "classification": Classifying,
    "language-model": Continuing,
    "masked-language-model": Unmasking,
    "question-answering": Answering,
}
