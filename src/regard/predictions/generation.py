"""Beginnings of texts → how they go on, whole or piece by piece as it is written."""

# B prompts

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from ..errors import DtypeError
from ..model.decoding import Decoded, Limits, Sampling, greedy, sample
from ..model.decoding import stream as steps_of
from ..model.language_model import LanguageModel
from ..model.options import require_count
from ..model.stepping import LanguageModelStepper
from ..record import Record
from ..record.watching import watch
from ..text.bpe import Tokenizer
from ..text.pieces import spelt
from .reading import TOKENS, asked, by_length, drawing, labels, require_own

__all__ = ["Generated", "Generation"]


@dataclass(frozen=True)
class Generated:
    """How a text goes on: prompt + text is the whole. score: the sum of the logarithms of its tokens' probabilities."""

    prompt: str
    text: str
    score: float
    ended: bool  # False where it was stopped at the longest length
    cut: bool  # whether the prompt was longer than the model reads, and its beginning left out

    def as_json(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return asdict(self)


class Generation:
    """A trained language model.   `Generation(model, tokenizer, "mine")(["Once upon a time"])`

    Each prompt is read behind the mark that ends a text, since that is where texts began when the model was trained;
    so an empty prompt is one too.
    """

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, name: str) -> None:
        require_own(name, model.config.tokenizer, model.config.vocabulary, tokenizer)
        self.name, self.model, self.tokenizer = name, model, tokenizer

    def __call__(
        self, prompts: Sequence[str], *, longest: int = 100, sampling: Sampling | None = None, seed: int | None = None
    ) -> list[Generated]:
        """How each prompt goes on, in their order, by at most `longest` tokens and what the model can hold.

        sampling: how to draw; without it the likeliest token is taken. seed: makes what is drawn repeatable.
        """
        _require_prompts(prompts)
        rows = [self._read(ids, require_count("longest", longest)) for ids in self.tokenizer.ids(prompts)]
        found: list[Generated | None] = [None] * len(rows)
        with asked(self.model) as device:
            generator = drawing(seed, device)
            for numbers in by_length([len(row.ids) + longest for row in rows], tokens=TOKENS):
                batch = [rows[number] for number in numbers]
                stepper = LanguageModelStepper(self.model)
                state, start = stepper.begin([row.ids for row in batch])
                limits = self._limits(batch)
                if sampling is None:
                    decoded = greedy(stepper, state, start, limits)
                else:
                    decoded = sample(stepper, state, start, limits, sampling, generator=generator)
                for number, one in zip(numbers, decoded, strict=True):
                    found[number] = self._generated(prompts[number], one, rows[number].cut)
        return [one for one in found if one is not None]

    def stream(
        self, prompt: str, *, longest: int = 100, sampling: Sampling | None = None, seed: int | None = None
    ) -> Iterator[str]:
        """The text as it is written, in whole signs: bytes of a sign wait until it is whole."""
        _require_prompts([prompt])
        row = self._read(self.tokenizer.ids([prompt])[0], require_count("longest", longest))
        stepper, spelling = LanguageModelStepper(self.model), _Spelling(self.tokenizer, begins=not prompt)
        with asked(self.model) as device:
            state, start = stepper.begin([row.ids])
            generator = drawing(seed, device)
        steps = steps_of(stepper, state, start, self._limits([row]), sampling=sampling, generator=generator)
        while True:
            with asked(self.model):  # anew at each step: the caller may do with the model what it likes between them
                step = next(steps, None)
            text = spelling.last() if step is None or step.ended[0] else spelling.add(step.tokens[0])
            if text:
                yield text
            if step is None or step.ended[0]:
                return

    def cuts(self, prompt: str, *, longest: int = 100) -> bool:
        """Whether a prompt is longer than the model reads if it is to write so many tokens; its beginning is lost."""
        _require_prompts([prompt])
        return self._read(self.tokenizer.ids([prompt])[0], require_count("longest", longest)).cut

    def look(self, prompt: str, text: str | None = None, *, longest: int = 100, values: bool = False) -> Record:
        """What each token of a prompt, and of how it goes on, looks at.

        text: how the prompt goes on; what the model writes by itself unless given, "" for the prompt alone.
        """
        _require_prompts([prompt] if text is None else [prompt, text])
        row = self._read(self.tokenizer.ids([prompt + (text or "")])[0], longest if text is None else 1)
        ids, written = row.ids, None
        with asked(self.model) as device:
            if text is None:
                stepper, written = LanguageModelStepper(self.model), len(ids)
                (found,) = greedy(stepper, *stepper.begin([ids]), self._limits([row]))
                ids = [*ids, *found.tokens][: self.model.config.longest]
            with watch(self.model, values=values) as record:
                self.model(torch.tensor([ids], device=device))
        return record.labelled(replace(labels(self.tokenizer, ids), generated=written))

    def _read(self, ids: list[int], longest: int) -> "_Prompt":
        """What the model reads of a prompt: its last tokens, and as many as leave room to go on, half of it at least.

        It reads what it wrote but for the last token, so one more can be written than there is room.
        """
        most = self.model.config.longest
        room = max(most - longest + 1, most - most // 2)
        whole = [self.tokenizer.last, *ids]
        kept = whole[-room:]
        return _Prompt(kept, len(kept) < len(whole), min(longest, most - len(kept) + 1))

    def _limits(self, rows: list["_Prompt"]) -> Limits:
        marks = self.tokenizer
        longest = tuple(row.longest for row in rows)
        return Limits(end=marks.last, longest=longest, forbidden=(marks.pad, marks.first, marks.mask))

    def _generated(self, prompt: str, found: Decoded, cut: bool) -> Generated:
        spelling = _Spelling(self.tokenizer, begins=not prompt)
        text = "".join(map(spelling.add, found.tokens)) + spelling.last()
        return Generated(prompt, text, found.score, found.ended, cut)


@dataclass(frozen=True)
class _Prompt:
    """What is read of a prompt, and how many tokens may follow."""

    ids: list[int]
    cut: bool
    longest: int


class _Spelling:
    """Pieces → text, piece by piece. Pieces are bytes, and a sign may have several: it waits for the last of them.

    begins: whether it begins a text, before whose first word a space is only thought.
    """

    def __init__(self, tokenizer: Tokenizer, *, begins: bool) -> None:
        self._tokenizer, self._begins = tokenizer, begins
        self._signs = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token: int) -> str:
        """What can be said now that a token has come; "" while a sign is not whole."""
        return self._shown(self._signs.decode(spelt(self._tokenizer.piece(token))))

    def last(self) -> str:
        """What is left when no more tokens come: U+FFFD for a sign that was never finished."""
        return self._shown(self._signs.decode(b"", final=True))

    def _shown(self, text: str) -> str:
        if self._begins and text:
            text, self._begins = text.removeprefix(" "), False
        return text


def _require_prompts(prompts: Sequence[str]) -> None:
    if isinstance(prompts, str):
        raise DtypeError(f"one prompt is given; give a list of them, [{prompts[:20]!r}].")
    for number, prompt in enumerate(prompts, start=1):
        if not isinstance(prompt, str):
            raise DtypeError(f"prompt {number} is a {type(prompt).__name__}; it must be a text.")
