"""Texts → their translations, or summaries: whatever an encoder-decoder was trained to make of them."""

# B texts of a batch, S tokens of the source, N tokens of the target

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from ..errors import DtypeError, OptionError
from ..model.decoding import GNMT, Decoded, LengthPenalty, Limits, Sampling, Stepper, beam, greedy, sample
from ..model.options import require_count
from ..model.stepping import TranslatorStepper
from ..model.translator import Translator
from ..record import Record
from ..record.watching import watch
from ..text.bpe import Tokenizer
from .alignment import Alignment, Link
from .reading import TOKENS, asked, by_length, drawing, labels, padded, require_own

__all__ = ["Alignment", "Alternative", "Translated", "Translation"]


@dataclass(frozen=True)
class Alternative:
    """Another translation, by its score."""

    text: str
    score: float


@dataclass(frozen=True)
class Translated:
    """A translation.

    score: the sum of the logarithms of its tokens' probabilities, divided by the length penalty.
    """

    text: str
    score: float
    alternatives: tuple[Alternative, ...] = ()  # the next best, the best first
    cut: bool = False  # whether the source was longer than the model reads, and its end left out
    ended: bool = True  # False where the translation was stopped at the longest length
    alignment: tuple[Link, ...] | None = None  # which words of the source its words looked at, where that was asked

    def as_json(self) -> dict[str, Any]:
        """The same as JSON has it; what was not asked is left out."""
        told = asdict(self)
        return told if self.alignment is not None else {name: told[name] for name in told if name != "alignment"}


class Translation:
    """A trained translator, or summariser.   `Translation(model, tokenizer, "mine")(["Good morning."])`

    target_tokenizer: where the vocabularies are two.
    """

    def __init__(
        self, model: Translator, tokenizer: Tokenizer, name: str, *, target_tokenizer: Tokenizer | None = None
    ) -> None:
        config = model.config
        if (config.target_vocabulary is None) != (target_tokenizer is None):
            wants = "shares one vocabulary" if target_tokenizer is not None else "has two vocabularies"
            raise OptionError(f"{name} {wants}; give as many tokenizers.")
        require_own(name, config.tokenizer, config.vocabulary, tokenizer)
        if target_tokenizer is not None and config.target_vocabulary is not None:
            require_own(f"{name}'s target", config.target_tokenizer, config.target_vocabulary, target_tokenizer)
        self.name, self.model, self.tokenizer = name, model, tokenizer
        self.target_tokenizer = tokenizer if target_tokenizer is None else target_tokenizer
        self._stepper: Any = TranslatorStepper(model)

    def quick(self) -> "Translation":
        """The same on a CPU several times as fast, by matrices of 8 bits; now and then it says a thing another way."""
        from ..model.int8 import quantised

        other = copy(self)
        other._stepper = quantised(self.model)
        return other

    def __call__(
        self, texts: Sequence[str], *, width: int = 4, n_best: int = 1, penalty: LengthPenalty = GNMT,
        sampling: Sampling | None = None, seed: int | None = None, longest: int | None = None,
        align: bool = False,
    ) -> list[Translated]:  # fmt: skip
        """Each text's translation. They are read in batches of like length; results are in the order of the texts.

        width: of the beam; 1 is greedy. n_best: how many translations of each. sampling: draw instead, `seed` making it
        repeatable. longest: of a translation, in tokens; 2·source + 32 unless given, and never more than the model
        writes. align: also which words of the source each word of the translation looked at. An empty text has an empty
        translation.
        """
        _require_texts(texts)
        if longest is not None:
            require_count("longest", longest)
        if require_count("n_best", n_best) > 1 and sampling is not None:
            raise OptionError(f"n_best is {n_best} and sampling is given; of what is drawn there is no best.")
        rows = self.tokenizer.ids(texts)
        lengths = {number: len(row) for number, row in enumerate(rows) if texts[number].strip()}
        found = [Translated("", 0.0, alignment=() if align else None)] * len(rows)
        full, order = list(lengths), list(lengths.values())
        with asked(self.model) as device:
            generator = drawing(seed, device)
            for places in by_length(order, tokens=max(TOKENS // (2 * require_count("width", width)), 1)):
                numbers = [full[place] for place in places]
                search = _Search(width, n_best, penalty, sampling, generator, longest)
                sources = [self._source(rows[number]) for number in numbers]
                decoded = self._decode(sources, search, device)
                for number, source, best in zip(numbers, sources, decoded, strict=True):
                    one = self._translated(best, cut=len(rows[number]) >= self.model.config.longest)
                    links = self._alignment(source, self._written(best[0])).links() if align else None
                    found[number] = replace(one, alignment=links)
        return found

    def look(self, text: str, translation: str | None = None, *, values: bool = False) -> Record:
        """What each token looks at: of the source, of the translation, and from the translation to the source.

        translation: what the model is thought to have written; what it writes by itself unless given.
        """
        source, written = self._both(text, translation)
        record = self._watched(source, written, values=values)
        keys = labels(self.tokenizer, source)
        read = labels(self.target_tokenizer, self._before(written))
        queries = replace(read, generated=1 if translation is None else None)
        named = record.labelled(keys, kind="encoder").labelled(queries, kind="decoder")
        return named.labelled(queries, keys, kind="cross")

    def alignment(self, text: str, translation: str | None = None) -> Alignment:
        """Which tokens of the source each token of the translation looked at, the moment it was chosen."""
        return self._alignment(*self._both(text, translation))

    def _alignment(self, source: list[int], written: list[int]) -> Alignment:
        weights = torch.as_tensor(self._watched(source, written).mean(kind="cross").weights()).float().cpu().numpy()
        ended = written[-1] == self.target_tokenizer.last
        return Alignment(labels(self.tokenizer, source), labels(self.target_tokenizer, written), weights, ended)

    def _watched(self, source: list[int], written: list[int], *, values: bool = False) -> Record:
        """The attention of a source that is read and a target that is written, all of it at once."""
        with asked(self.model) as device, watch(self.model, values=values) as record:
            ids = (torch.tensor([row], device=device) for row in (source, self._before(written)))
            self.model(*ids)
        return record

    def _before(self, written: list[int]) -> list[int]:
        """What the decoder has read last when it writes each token."""
        return [self.target_tokenizer.first, *written[:-1]]

    def _both(self, text: str, translation: str | None) -> tuple[list[int], list[int]]:
        """The ids of a source, and of what is written: the end mark among it, where it comes to an end."""
        _require_texts([text] if translation is None else [text, translation])
        if not text.strip():
            raise OptionError("the text is empty; there is nothing to look at.")
        source, last = self._source(self.tokenizer.ids([text])[0]), self.target_tokenizer.last
        if translation is not None:
            target = self.target_tokenizer.ids([translation])[0]
            if len(target) == self.model.config.longest:
                return source, target  # stopped there: one that ends has its end mark among so many
            if len(target) > self.model.config.longest:
                raise OptionError(
                    f"the translation has {len(target)} tokens and {self.name} writes at most "
                    f"{self.model.config.longest - 1}; give a shorter one."
                )
            return source, [*target, last]
        with asked(self.model) as device:
            ((best, *_),) = self._decode([source], _Search(4, 1, GNMT, None, None, None), device)
        return source, self._written(best)

    def _written(self, found: Decoded) -> list[int]:
        """What was written, with the end mark where it came to an end."""
        return [*found.tokens, *([self.target_tokenizer.last] if found.ended else [])]

    def _source(self, ids: list[int]) -> list[int]:
        """As much as the model reads, with the end mark."""
        return [*ids[: self.model.config.longest - 1], self.tokenizer.last]

    def _decode(self, sources: list[list[int]], search: "_Search", device: torch.device) -> list[list[Decoded]]:
        """The best translations of each source."""
        ids, mask = padded(sources, self.tokenizer.pad, device)
        written, most = self.target_tokenizer, self.model.config.longest
        limits = Limits(
            end=written.last, forbidden=(written.pad, written.first, written.mask),
            longest=tuple(min(search.longest or 2 * len(source) + 32, most) for source in sources),
        )  # fmt: skip
        start = torch.full((len(sources),), written.first, device=device)
        return search.run(self._stepper, self._stepper.begin(ids, mask), start, limits)

    def _translated(self, best: list[Decoded], *, cut: bool) -> Translated:
        first, *others = (Alternative(self.target_tokenizer.decode(one.tokens), one.score) for one in best)
        return Translated(first.text, first.score, tuple(others), cut, best[0].ended)


@dataclass(frozen=True)
class _Search:
    """How translations are looked for."""

    width: int
    n_best: int
    penalty: LengthPenalty
    sampling: Sampling | None
    generator: torch.Generator | None
    longest: int | None

    def run(self, stepper: Stepper[Any], state: Any, start: torch.Tensor, limits: Limits) -> list[list[Decoded]]:
        """The best of each row; what is greedy or drawn is scored as a beam's is."""
        if self.sampling is None and self.width > 1:
            return beam(stepper, state, start, limits, width=self.width, n_best=self.n_best, penalty=self.penalty)
        if self.n_best > 1:
            raise OptionError(f"n_best is {self.n_best} and the beam is 1 wide; give width={self.n_best} or more.")
        if self.sampling is None:
            found = greedy(stepper, state, start, limits)
        else:
            found = sample(stepper, state, start, limits, self.sampling, generator=self.generator)
        return [[replace(one, score=one.score / float(self.penalty.of(_length(one))))] for one in found]


def _length(text: Decoded) -> int:
    return max(len(text.tokens) + text.ended, 1)


def _require_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise DtypeError(f"one text is given; give a list of them, [{texts[:20]!r}].")
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DtypeError(f"text {number} is a {type(text).__name__}; it must be a text.")
