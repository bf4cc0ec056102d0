"""Which word belongs to which: links between two sentences, their file format, and how wrong some of them are."""

import re
from collections.abc import Iterable, Sequence, Set
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ...errors import FileError, OptionError, ShapeError

__all__ = ["Gold", "Links", "alignment_error_rate", "as_pharaoh", "from_pharaoh", "read_pharaoh"]

Links = frozenset[tuple[int, int]]  # (place of the source word, place of the target word)

_LINK = re.compile(r"([0-9]+)([-p?])([0-9]+)")


class Gold(NamedTuple):
    """What people found: links they were sure of, and all that are possible, the sure ones among them."""

    sure: Links
    possible: Links


def alignment_error_rate(
    found: Set[tuple[int, int]] | Sequence[Set[tuple[int, int]]],
    sure: Set[tuple[int, int]] | Sequence[Set[tuple[int, int]]],
    possible: Set[tuple[int, int]] | Sequence[Set[tuple[int, int]]] | None = None,
) -> float:
    """1 − (|A∩S| + |A∩P|) / (|A| + |S|): 0 = all right, 1 = all wrong (Och and Ney 2003).

    found (A), sure (S), possible (P, which has S in it; S alone unless given): the links of one sentence pair, or of
    many, a set for each. Those of many are counted together, as is the custom; it is not the mean over the pairs.
    Where there is nothing to find and nothing was found, nothing is wrong.
    """
    every = [_pairs(found), _pairs(sure), _pairs(sure if possible is None else possible)]
    if len({len(pairs) for pairs in every}) > 1:
        sizes = ", ".join(
            f"{name} has {len(pairs)}" for name, pairs in zip(("found", "sure", "possible"), every, strict=True)
        )
        raise ShapeError(f"{sizes}; there must be one set of links for each pair of sentences.")
    agreed = total = 0
    for own, certain, allowed in zip(*every, strict=True):
        agreed += len(own & certain) + len(own & (allowed | certain))
        total += len(own) + len(certain)
    return 1 - agreed / total if total else 0.0


def from_pharaoh(line: str, *, first: int = 0, where: str = "the line") -> Gold:
    """One sentence pair's links, as in "0-0 1-2 2p3": source-target; p or ? marks one that is only possible.

    first: the number of the first word, 0 or 1. where: what the line is called in an error.
    """
    if first not in (0, 1):
        raise OptionError(f"first is {first!r}; words are counted from 0 or from 1.")
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for text in line.split():
        found = _LINK.fullmatch(text)
        if found is None:
            raise FileError(f'{where}: "{text}" is no link; a link is "0-1", or "0p1" if it is only possible.')
        link = int(found[1]) - first, int(found[3]) - first
        if min(link) < 0:
            raise FileError(f'{where}: "{text}" has a word 0, and words are counted from 1 here (first=1).')
        (sure if found[2] == "-" else possible).add(link)
    return Gold(frozenset(sure), frozenset(sure | possible))


def read_pharaoh(path: str | PathLike[str], *, first: int = 0) -> list[Gold]:
    """A file of links, a line for each pair of sentences; an empty line is a pair without links."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise FileError(f'{path} is not text; links are written as in "0-0 1-2", a line for each pair.') from None
    return [
        from_pharaoh(line, first=first, where=f"{path}, line {number}") for number, line in enumerate(lines, start=1)
    ]


def as_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Links as they are written in files: "0-0 1-2"."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def _pairs(links: Set[tuple[int, int]] | Sequence[Set[tuple[int, int]]]) -> list[Set[tuple[int, int]]]:
    return [links] if isinstance(links, Set) else list(links)
