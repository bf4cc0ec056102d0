"""Tokenised examples on disk: any of them, by number, in the memory of what is asked for."""

# B examples asked for, F fields

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from ...errors import FileError, OptionError
from . import building, told
from .building import TooLong
from .numbers import ENDS, ENDS_KIND, IDS, ids_kind, read
from .told import Told

NEAR = 1024  # bytes between two places that are rather read along than left out: a second read costs more


class TokenStore:
    """Examples as ids in a folder.   `TokenStore.open(folder).read([3, 1])` -> [{"source": array, "target": array}, ..]

    told has its counts. Nothing of the corpus is held: files are opened for each call, so that a store costs nothing
    to keep, goes through pickle, and is safe in processes that fork.
    """

    def __init__(self, folder: Path, told: Told) -> None:
        self.folder, self.told = folder, told

    @classmethod
    def build(
        cls, folder: Path | str, examples: Iterable[Mapping[str, Sequence[int]]], fields: Sequence[str], *,
        vocabulary: int, longest: Mapping[str, int] | None = None, too_long: TooLong = "cut",
        description: Mapping[str, str] | None = None,
    ) -> "TokenStore":  # fmt: skip
        """Write examples, of which `fields` are kept, into a folder.

        vocabulary: every number is below it. longest: the most ids a field may have. too_long: what comes of a longer
        one: "cut", its last id stays the last; "skip", the example is left out; "error". Both are counted in told.
        description: what should be known of the store when it is opened, such as the hash of the tokenizer.
        An unfinished store in the folder is begun anew; a finished one is not touched, it is an error.
        """
        building.build(
            Path(folder), examples, tuple(fields), vocabulary=vocabulary, longest=dict(longest or {}),
            too_long=too_long, description=dict(description or {}),
        )  # fmt: skip
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path | str) -> "TokenStore":
        """The finished store of a folder. Its files must have the sizes that it tells of."""
        path = Path(folder)
        store = cls(path, told.read(path))
        store._check_files()
        return store

    def __len__(self) -> int:
        return self.told.examples

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of what each example has."""
        return self.told.fields

    def total(self, field: str) -> int:
        """How many tokens a field has in all examples together."""
        return self.told.tokens[self.fields[self._column(field)]]

    def lengths(self, numbers: Sequence[int] | np.ndarray, field: str) -> np.ndarray:
        """How many tokens a field has in these examples.   (B,) -> (B,)"""
        column = self._column(field)
        return np.asarray(self.sizes(numbers)[:, column])

    def sizes(self, numbers: Sequence[int] | np.ndarray) -> np.ndarray:
        """How many tokens each field has in these examples.   (B,) -> (B, F)"""
        return np.diff(self._bounds(numbers), axis=1)

    def read(self, numbers: Sequence[int] | np.ndarray) -> list[dict[str, np.ndarray]]:
        """These examples, in this order: the ids of each field."""
        bounds, fields = self._bounds(numbers), self.fields  # (B, F + 1)
        data = self.stretches(bounds[:, 0], bounds[:, -1])
        return [
            {name: row[a:b] for name, (a, b) in zip(fields, pairwise(ends), strict=True)}
            for row, ends in zip(data, (bounds - bounds[:, :1]).tolist(), strict=True)
        ]

    def stretches(self, starts: np.ndarray, stops: np.ndarray) -> list[np.ndarray]:
        """The ids from starts[i] up to stops[i] of all fields of all examples, which stand one behind the other."""
        if not len(starts):
            return []
        data = read(self.folder / IDS, ids_kind(self.told.vocabulary), starts, stops)
        if data.max(initial=0) >= self.told.vocabulary:
            raise self._damaged(IDS, f"an id is {data.max()}, and the vocabulary {self.told.vocabulary:,}")
        ends = [0, *np.cumsum(stops - starts).tolist()]
        return [data[a:b] for a, b in pairwise(ends)]

    def _bounds(self, numbers: Sequence[int] | np.ndarray) -> np.ndarray:
        """Where each example begins and its fields end in ids.bin.   (B,) -> (B, F + 1)"""
        wanted = np.asarray(numbers, dtype=np.int64).reshape(-1)
        width = len(self.fields)
        if not len(wanted):
            return np.zeros((0, width + 1), np.int64)
        if wanted.min() < 0 or wanted.max() >= len(self):
            wrong = wanted.min() if wanted.min() < 0 else wanted.max()
            raise OptionError(f"there is no example {wrong}; the store has 0 to {len(self) - 1}.")
        distinct, back = np.unique(wanted, return_inverse=True)
        breaks = np.flatnonzero(np.diff(distinct) * width * ENDS_KIND.itemsize > NEAR) + 1
        first, last = distinct[np.r_[0, breaks]], distinct[np.r_[breaks - 1, -1]]  # of each run of near ones
        data = read(self.folder / ENDS, ENDS_KIND, first * width, (last + 1) * width + 1)
        sizes = (last + 1 - first) * width + 1
        shift = np.cumsum(sizes) - sizes - first * width
        run = np.repeat(np.arange(len(first)), np.diff(np.r_[0, breaks, len(distinct)]))
        found = data[(shift[run] + distinct * width)[:, None] + np.arange(width + 1)]
        if found.min() < 0 or found.max() > self._all() or np.diff(found, axis=1).min() < 1:
            raise self._damaged(ENDS, "places in it are out of order")
        return np.asarray(found[back])

    def _all(self) -> int:
        return sum(self.told.tokens.values())

    def _column(self, field: str) -> int:
        if field not in self.fields:
            raise OptionError(f"the token store {self.folder} has no {field!r}; it has {', '.join(self.fields)}.")
        return self.fields.index(field)

    def _check_files(self) -> None:
        count = len(self) * len(self.fields) + 1
        sizes = {IDS: self._all() * ids_kind(self.told.vocabulary).itemsize, ENDS: count * ENDS_KIND.itemsize}
        for name, size in sizes.items():
            path = self.folder / name
            if not path.is_file():
                raise FileError(f"the token store {self.folder} has lost {name}. Build it again.")
            if path.stat().st_size != size:
                raise self._damaged(name, f"it has {path.stat().st_size:,} bytes and should have {size:,}")
        ends = read(self.folder / ENDS, ENDS_KIND, np.array([0, count - 1]), np.array([1, count])).tolist()
        if ends != [0, self._all()]:
            raise self._damaged(ENDS, f"it goes from {ends[0]:,} to {ends[1]:,}, not from 0 to {self._all():,}")

    def _damaged(self, name: str, why: str) -> FileError:
        return FileError(f"{self.folder / name} is damaged: {why}. Remove the folder and build the store again.")
