"""WikiText-2 (Merity et al. 2016) as people write: its articles, their paragraphs and sentences, without its marks."""

import lzma
import re
from pathlib import Path

Article = list[list[str]]  # paragraphs of sentences

HEADING = re.compile(r" = .* = \n?")
TITLE = re.compile(r" = [^=].* = \n?")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"(]?[A-Z])")
# The corpus writes "12 @.@ 5 km ( 8 mi ) , it 's said": what belongs together stands apart.
JOINS = [
    (re.compile(r" @([-,.])@ "), r"\1"),
    (re.compile(r'" ([^"]*?) "'), r'"\1"'),
    (re.compile(r" ([,.;:!?%)\]])"), r"\1"),
    (re.compile(r"([(\[$£€]) "), r"\1"),
    (re.compile(r" '(s|t|re|ve|ll|d|m)\b"), r"'\1"),
]


def articles(path: Path) -> list[Article]:
    """The articles of train.raw.xz, valid.raw.xz or test.raw.xz; their headings are left out."""
    found: list[Article] = []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if TITLE.fullmatch(line):
                found.append([])
            elif line.strip() and not HEADING.fullmatch(line):
                found[-1].append(SENTENCE_END.split(natural(line)))
    return [article for article in found if article]


def natural(line: str) -> str:
    """A line as its author wrote it, as far as that can be told."""
    for pattern, joined in JOINS:
        line = pattern.sub(joined, line)
    return line.strip()
