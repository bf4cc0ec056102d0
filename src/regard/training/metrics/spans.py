"""How good answers to questions are: exact match and F1 of the words, as SQuAD has them (Rajpurkar et al. 2016)."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import OptionError
from .counting import require_pairs
from .rouge import f1
from .scripts import HAN, KANA

ARTICLES = re.compile(r"\b(a|an|the)\b")
# What SQuAD drops, and the marks that Chinese and Japanese use in their place.
PUNCTUATION = {*string.punctuation, *"，。、；：？！「」『』（）《》〈〉【】“”‘’…—～·"}
UNSPACED = re.compile(f"({HAN.pattern}|{KANA.pattern})")


@dataclass(frozen=True)
class Answers:
    """Means over all questions, from 0 to 1."""

    exact: float
    f1: float


def answers(given: Sequence[str], references: Sequence[Sequence[str]]) -> Answers:
    """references: for each question the answers that are right, of which the nearest counts; [""] for none at all."""
    require_pairs(given, references, "answers")
    for number, right in enumerate(references, 1):
        if isinstance(right, str) or not right:
            raise OptionError(
                f"question {number} has the references {right!r}; give a list of its right answers, [''] where it has "
                "none."
            )
    pairs = list(zip(given, references, strict=True))
    exact = sum(max(normalised(answer) == normalised(one) for one in right) for answer, right in pairs)
    shared = sum(max(overlap(answer, one) for one in right) for answer, right in pairs)
    return Answers(exact / len(pairs), shared / len(pairs))


def normalised(answer: str) -> str:
    """In lower case, without punctuation, English articles and needless white space."""
    bare = "".join(sign for sign in answer.lower() if sign not in PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", bare).split())


def overlap(answer: str, reference: str) -> float:
    """The F1 of the words that both have; of the characters in Chinese and Japanese. Two empty ones are the same."""
    one, other = (UNSPACED.sub(r" \1 ", normalised(text)).split() for text in (answer, reference))
    if not one or not other:
        return float(one == other)
    return f1((Counter(one) & Counter(other)).total(), len(one), len(other))
