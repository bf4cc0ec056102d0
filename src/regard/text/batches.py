"""Which examples make up each batch: of like length, as many as a number of tokens allows, shuffled by a seed."""

# B examples of a batch, P examples of a pool, F fields

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..errors import OptionError
from .permutation import Permutation
from .store import TokenStore

POOL = 65_536  # examples that are sorted by length together


class Place(NamedTuple):
    """Where a run stands in the endless row of batches: the next one is batch `index` of a pool of an epoch."""

    epoch: int = 0
    pool: int = 0
    index: int = 0  # type: ignore[assignment]  # a tuple's own index() is nobody's loss


class Source(Protocol):
    """Where batches come from; what all processes of a run see alike."""

    def after(self, place: Place) -> Iterator[tuple[Place, np.ndarray]]:
        """Batches without end from a place on: the numbers of each one's examples, and the place behind it."""

    def once(self) -> Iterator[np.ndarray]:
        """Every example once, unshuffled, for measuring."""

    def read(self, numbers: Sequence[int] | np.ndarray) -> list[dict[str, np.ndarray]]:
        """The examples of these numbers."""

    def steps(self, epoch: int = 0) -> int:
        """How many batches an epoch has."""


class Bucketed:
    """Batches of examples of like length.   `for place, numbers in Bucketed(store, tokens=4096, seed=0).after(Place())`

    tokens: the most a batch has with its padding, rows × (longest of each of `fields`, summed); a longer example is a
    batch by itself. An epoch is a shuffle of the store. A pool of it, 65,536 examples, is sorted by length, cut into
    batches, and these are shuffled. All of it is a function of the store, the seed and the place.
    """

    def __init__(
        self, store: TokenStore, *, tokens: int, seed: int, fields: Sequence[str] = ("source", "target")
    ) -> None:
        if tokens < 1:
            raise OptionError(f"tokens is {tokens}; a batch must be allowed 1 or more.")
        if seed < 0:
            raise OptionError(f"seed is {seed}; it must be 0 or more.")
        absent = [name for name in fields if name not in store.fields]
        if absent or not fields:
            raise OptionError(f"fields is {tuple(fields)}; it must be one or more of {store.fields}, which are stored.")
        self._store, self._tokens, self._seed = store, tokens, seed
        self._columns = [store.fields.index(name) for name in fields]
        self._pools = -(-len(store) // POOL)

    def after(self, place: Place) -> Iterator[tuple[Place, np.ndarray]]:
        """Batches without end from a place on, each with the place behind it."""
        epoch, pool, index = place
        if min(place) < 0 or pool >= self._pools:
            raise OptionError(f"{place} is no place of this source: it has {self._pools} pools of examples.")
        return self._without_end(epoch, pool, index)

    def _without_end(self, epoch: int, pool: int, index: int) -> Iterator[tuple[Place, np.ndarray]]:
        while True:
            batches = self._shuffled(epoch, pool)
            if index > len(batches):
                raise OptionError(f"there is no batch {index} in epoch {epoch}, pool {pool}; it has {len(batches)}.")
            behind = Place(epoch, pool + 1) if pool + 1 < self._pools else Place(epoch + 1)
            for number in range(index, len(batches)):
                yield (Place(epoch, pool, number + 1) if number + 1 < len(batches) else behind), batches[number]
            epoch, pool, index = behind

    def once(self) -> Iterator[np.ndarray]:
        """Every example once: pools in the order of the store, in each of them sorted by length."""
        for pool in range(self._pools):
            yield from self._cut(self._range(pool))

    def read(self, numbers: Sequence[int] | np.ndarray) -> list[dict[str, np.ndarray]]:
        """The examples of these numbers."""
        return self._store.read(numbers)

    def steps(self, epoch: int = 0) -> int:
        """How many batches an epoch has. The lengths of all examples are gone over for it."""
        return sum(len(self._cut(self._members(epoch, pool))) for pool in range(self._pools))

    def _range(self, pool: int) -> np.ndarray:
        return np.arange(pool * POOL, min((pool + 1) * POOL, len(self._store)))

    def _members(self, epoch: int, pool: int) -> np.ndarray:
        return Permutation(len(self._store), (self._seed, epoch)).of(self._range(pool))

    def _shuffled(self, epoch: int, pool: int) -> list[np.ndarray]:
        batches = self._cut(self._members(epoch, pool))
        order = Permutation(len(batches), (self._seed, epoch, pool + 1)).of(np.arange(len(batches)))
        return [batches[number] for number in order]

    def _cut(self, members: np.ndarray) -> list[np.ndarray]:
        """The examples of a pool by length, cut where the next one would be too much.   (P,) -> [(B,), ..]"""
        sizes = self._store.sizes(members)[:, self._columns]  # (P, F)
        order = by_length(sizes)
        members, sizes = members[order], sizes[order]
        batches, start = [], 0
        while start < len(members):
            most = max(self._tokens // int(sizes[start].sum()), 1)  # rows, were the next ones all as short
            widths = np.maximum.accumulate(sizes[start : start + most]).sum(axis=1)
            costs = widths * np.arange(1, len(widths) + 1)
            rows = max(int(np.searchsorted(costs, self._tokens, side="right")), 1)
            batches.append(members[start : start + rows])
            start += rows
        return batches


def by_length(sizes: np.ndarray) -> np.ndarray:
    """An order in which neighbours are alike in every field.   (P, F) -> (P,)

    Sorted by the first field alone, like sources would have any targets beside them. So all fields but the last are
    only sorted roughly, into steps of 19%, and in each of these the last one goes up, in the next one down again.
    """
    last = sizes[:, -1]
    rough = np.floor(4 * np.log2(sizes[:, :-1])).astype(np.int64)  # (P, F - 1)
    down = rough.sum(axis=1) % 2 == 1
    return np.lexsort((np.where(down, -last, last), *rough.T[::-1]))
