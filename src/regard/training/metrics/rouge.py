"""How much of reference summaries is in summaries: ROUGE-1, ROUGE-2 and ROUGE-L, as F1 (Lin 2004)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .counting import require_pairs
from .scripts import HAN, KANA

# A word is a run of letters and digits; a Chinese or Japanese character is one by itself.
WORD = re.compile(rf"{HAN.pattern}|{KANA.pattern}|(?:(?!{HAN.pattern}|{KANA.pattern})[^\W_])+")


@dataclass(frozen=True)
class Rouge:
    """Means over all summaries, from 0 to 1."""

    one: float  # words
    two: float  # two words in a row
    longest: float  # the longest common sequence of words, which may have gaps


def rouge(summaries: Sequence[str], references: Sequence[str]) -> Rouge:
    """Words in lower case, not stemmed; Chinese and Japanese by the character."""
    require_pairs(summaries, references, "summaries")
    pairs = [(words(one), words(other)) for one, other in zip(summaries, references, strict=True)]
    first, second = ([_shared(one, other, n) for one, other in pairs] for n in (1, 2))
    common = [f1(_longest_common(one, other), len(one), len(other)) for one, other in pairs]
    return Rouge(*(sum(scores) / len(pairs) for scores in (first, second, common)))


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return WORD.findall(text.lower())


def f1(shared: int, given: int, wanted: int) -> float:
    """2·precision·recall / (precision + recall), which is 2·shared / (given + wanted); 0 where nothing is shared."""
    return 2 * shared / (given + wanted) if shared else 0.0


def _shared(one: list[str], other: list[str], n: int) -> float:
    left, right = (Counter(zip(*(words[place:] for place in range(n)), strict=False)) for words in (one, other))
    return f1((left & right).total(), left.total(), right.total())


def _longest_common(one: list[str], other: list[str]) -> int:
    """The length of the longest sequence of words that both have in this order, row by row."""
    row = [0] * (len(other) + 1)
    for word in one:
        before, row = row, [0]
        for place, found in enumerate(other):
            row.append(before[place] + 1 if word == found else max(before[place + 1], row[place]))
    return row[-1]
