"""Questions on a text and their answers in it: JSON as SQuAD has it, or JSON lines of a text and its questions."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from ...errors import FileError
from . import compressed
from .corpus import Bad, Corpus, Example, Malformed
from .lines import lines
from .objects import parsed

LARGEST = 2**30  # bytes of a SQuAD file; it is one JSON value, and so is held whole while it is read


@dataclass(frozen=True)
class Questions:
    """A file of questions."""

    path: Path

    def __iter__(self) -> Iterator[Example | Bad]:
        empty = True
        for found in _squad(self.path) if compressed.bare(self.path).suffix == ".json" else _lines(self.path):
            empty = False
            yield found
        if empty:
            raise FileError(f"There is no question in {self.path}.")


def questions(path: str | PathLike[str], *, most_bad: int = 100) -> Corpus:
    """An example for each question. Fields: question, context, answer, start, the character where the answer begins.

    The first answer that stands where it says is taken; "answers" has all of them, as a JSON list, to be measured by. A
    question without answers has the answer "" and the start -1.
    A .json file is as SQuAD has it; in any other, each line is {"context": …, "qas": [[question, answer, start], …]}.
    """
    compressed.require_file(Path(path))
    return Corpus(Questions(Path(path)), most_bad)


def _squad(path: Path) -> Iterator[Example | Bad]:
    number = 0
    for paragraph in _paragraphs(path):
        for asked in paragraph["qas"]:
            number += 1
            try:
                answers = [(answer["text"], int(answer["answer_start"])) for answer in asked["answers"]]
                yield _example(paragraph["context"], asked["question"], answers)
            except (KeyError, TypeError, ValueError, Malformed) as why:
                yield Bad(str(path), 1, f"question {number}: {_told(why)}")


def _paragraphs(path: Path) -> list[dict[str, Any]]:
    with compressed.opened(path) as file:
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise FileError(f"{path} is over {LARGEST} bytes; make JSON lines of it, a text and its questions each.")
    try:
        paragraphs = [paragraph for article in json.loads(raw)["data"] for paragraph in article["paragraphs"]]
        if all({"context", "qas"} <= paragraph.keys() for paragraph in paragraphs):
            return paragraphs
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileError(f"{path} is not as SQuAD has it: {_told(error)}.") from error
    raise FileError(f"{path} is not as SQuAD has it: a paragraph without context or qas.")


def _lines(path: Path) -> Iterator[Example | Bad]:
    with compressed.opened(path) as file:
        for line in lines(file, str(path)):
            if isinstance(line, Bad):
                yield line
                continue
            try:
                record = parsed(line)
                context = record["context"] if "context" in record else record["passage"]
                asked = [(question, [(answer, int(start))]) for question, answer, start in record["qas"]]
            except (KeyError, TypeError, ValueError, Malformed) as why:
                yield Bad(str(path), line.number, _told(why))
                continue
            for question, answers in asked:
                try:
                    yield _example(context, question, answers)
                except Malformed as why:
                    yield Bad(str(path), line.number, str(why))


def _example(context: Any, question: Any, answers: list[tuple[Any, int]]) -> Example:
    for name, text in (("context", context), ("question", question)):
        if not isinstance(text, str) or not text.strip():
            raise Malformed(f"{name} is empty or no text")
    answers = [(answer, start) for answer, start in answers if start >= 0]
    asked = {"question": question, "context": context}
    if not answers:
        return {**asked, "answer": "", "start": "-1", "answers": '[""]'}
    every = json.dumps(list(dict.fromkeys(str(answer) for answer, _ in answers)), ensure_ascii=False)
    for answer, start in answers:
        if isinstance(answer, str) and answer and context.startswith(answer, start):
            return {**asked, "answer": answer, "start": str(start), "answers": every}
    raise Malformed(f"the answer does not stand at character {answers[0][1]} of the context: {str(answers[0][0])[:80]}")


def _told(why: Exception) -> str:
    return f"no {why.args[0]}" if isinstance(why, KeyError) else str(why)
