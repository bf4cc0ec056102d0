"""Question answering: where in a context the answer to a question begins and ends."""

# B windows, N tokens

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...errors import FileError, OptionError
from ...text.overlapping import begins
from ..objectives import IGNORED, smoothed
from .batch import Batch, padded, there

if TYPE_CHECKING:
    from ...text.bpe import Encoded, Tokenizer

NOWHERE = (0, 0)  # the span of a window that does not hold the answer: it points at [first]


class Asked(NamedTuple):
    """A question, its context in pieces, and which of them are the answer; None where there is no answer."""

    question: list[int]
    context: list[int]
    answer: tuple[int, int] | None  # the first and the last piece


@dataclass(frozen=True, kw_only=True)
class Answering:
    """What an answerer learns. A context that is too long becomes several windows, each `overlap` into the last."""

    pad: int
    longest: int = 384  # tokens of a window with its question and ends
    overlap: int = 128
    most_bad: int = 100  # malformed examples that are skipped

    fields: ClassVar[tuple[str, ...]] = ("ids", "segment", "span")

    def __post_init__(self) -> None:
        if self.longest < 16 or not 0 <= self.overlap < self.longest // 2 - 3:
            raise OptionError(
                f"longest is {self.longest} and overlap {self.overlap}; a window takes 16 tokens or more, and its "
                "overlap must be less than half of it, 3 more taken off for the ends."
            )

    def encode(
        self, examples: Iterable[dict[str, str]], tokenizer: "Tokenizer", told: Counter[str] | None = None
    ) -> Iterator[dict[str, list[int]]]:
        """Windows of each example.

        told: counts are added to it: "windows", "without answer" among them, "questions cut" and "malformed" ones,
        whose answer does not stand where it should.
        """
        told = Counter() if told is None else told
        for number, example in enumerate(examples, 1):
            try:
                asked = self._asked(example, tokenizer, told)
            except ValueError as why:
                told["malformed"] += 1
                if told["malformed"] > self.most_bad:
                    raise FileError(
                        f"question {number}: {why}. {self.most_bad} malformed ones were skipped before it, as many as "
                        "most_bad allows. Mend the file, or raise most_bad."
                    ) from None
                continue
            for window in self._windows(asked, tokenizer):
                told["windows"] += 1
                told["without answer"] += tuple(window["span"]) == NOWHERE
                yield window

    def collate(self, examples: Sequence[dict[str, Any]], draws: Sequence[np.random.Generator]) -> Batch:
        """The windows, which part of them is question and which context, and where the answers are."""
        ids = [example["ids"] for example in examples]
        segments = [np.arange(len(example["ids"])) >= int(example["segment"][0]) for example in examples]
        spans = np.array([example["span"] for example in examples] or [(IGNORED, IGNORED)], dtype=np.int64)
        tensors = {
            "ids": padded(ids, self.pad, self.longest), "mask": there(ids, self.longest),
            "segments": padded([part.astype(np.int64) for part in segments], 0, self.longest),
            "starts": torch.from_numpy(spans[:, 0].copy()), "ends": torch.from_numpy(spans[:, 1].copy()),
        }  # fmt: skip
        return Batch(tensors, {"answers": len(examples)})

    def losses(self, model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The summed cross-entropy of where answers begin and where they end, the mean of both."""
        start, end = model(tensors["ids"], tensors["mask"], tensors["segments"])
        return {"answers": (smoothed(start, tensors["starts"]) + smoothed(end, tensors["ends"])) / 2}

    def measures(self, model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The same, and how many answers have both ends right."""
        start, end = model(tensors["ids"], tensors["mask"], tensors["segments"])
        right = (start.argmax(-1) == tensors["starts"]) & (end.argmax(-1) == tensors["ends"])
        loss = (smoothed(start, tensors["starts"]) + smoothed(end, tensors["ends"])) / 2
        return {"answers/loss": loss, "answers/right": right.sum()}

    def _asked(self, example: dict[str, str], tokenizer: "Tokenizer", told: Counter[str]) -> Asked:
        question = tokenizer.encode(example["question"], ends=False).ids
        most = self.longest // 2
        told["questions cut"] += len(question) > most
        context = tokenizer.encode(example["context"], ends=False)
        if not context.ids:
            raise ValueError("the context is empty")
        start, answer = int(example["start"]), example["answer"]
        if start < 0 or not answer:
            return Asked(question[:most], context.ids, None)
        if not example["context"].startswith(answer, start):
            raise ValueError(f"the answer does not stand at character {start} of the context: {answer[:80]}")
        begins = start + len(answer) - len(answer.lstrip())
        return Asked(question[:most], context.ids, _pieces(context, begins, start + len(answer.rstrip())))

    def _windows(self, asked: Asked, tokenizer: "Tokenizer") -> Iterator[dict[str, list[int]]]:
        head = [tokenizer.first, *asked.question, tokenizer.last]
        room = self.longest - len(head) - 1
        for begin in begins(len(asked.context), room, self.overlap):
            part = asked.context[begin : begin + room]
            span = NOWHERE
            if asked.answer and begin <= asked.answer[0] and asked.answer[1] < begin + len(part):
                shift = len(head) - begin
                span = asked.answer[0] + shift, asked.answer[1] + shift
            yield {"ids": [*head, *part, tokenizer.last], "segment": [len(head)], "span": [*span]}


def _pieces(context: "Encoded", start: int, end: int) -> tuple[int, int]:
    """The first and the last piece that have a part in the characters from start to end."""
    touched = [place for place, (left, right) in enumerate(context.offsets) if max(left, start) < min(right, end)]
    if not touched:
        raise ValueError(f"the answer at character {start} of the context is white space alone")
    return touched[0], touched[-1]
