"""Documents one behind the other, cut into windows of one length: batches without padding (packing)."""

# B windows of a batch

from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import OptionError
from .batches import Place
from .permutation import Permutation
from .store import TokenStore


class Windows:
    """Windows of a stream of text.   `for place, numbers in Windows(store, length=512, tokens=8192, seed=0).after(..)`

    A window is `length` tokens and the one behind them, so that each has a next one to be guessed; it shares that one
    with the window that follows. Its number is where in the stream it begins. Each epoch begins elsewhere in the first
    window, by seed, so that the cuts fall elsewhere; what is before that and what fills no window at the end are left
    out of that epoch. tokens: a batch has tokens // length windows, the last of an epoch what is left.
    """

    def __init__(self, store: TokenStore, *, length: int, tokens: int, seed: int, field: str = "text") -> None:
        if length < 1 or tokens < length:
            raise OptionError(f"length is {length} and tokens {tokens}; a batch must have room for one window or more.")
        if seed < 0:
            raise OptionError(f"seed is {seed}; it must be 0 or more.")
        if store.fields != (field,):
            raise OptionError(f"the store has {store.fields}; windows need a stream, so it must have {field!r} alone.")
        self._store, self._field, self._length, self._seed = store, field, length, seed
        self._rows = tokens // length
        self._total = store.total(field)

    def after(self, place: Place) -> Iterator[tuple[Place, np.ndarray]]:
        """Batches without end from a place on, each with the place behind it."""
        epoch, pool, index = place
        if min(place) < 0 or pool or index > self.steps(epoch):
            raise OptionError(f"{place} is no place of this source: it has 1 pool, with {self.steps(epoch)} batches.")
        return self._without_end(epoch, index)

    def _without_end(self, epoch: int, index: int) -> Iterator[tuple[Place, np.ndarray]]:
        while True:
            offset, count = self._offset(epoch), self._count(epoch)
            order, steps = Permutation(count, (self._seed, epoch)), self.steps(epoch)
            for step in range(index, steps):
                places = np.arange(step * self._rows, min((step + 1) * self._rows, count))
                behind = Place(epoch, 0, step + 1) if step + 1 < steps else Place(epoch + 1)
                yield behind, offset + order.of(places) * self._length
            epoch, index = epoch + 1, 0

    def once(self) -> Iterator[np.ndarray]:
        """Every token is to be guessed once but for the first: windows in order, the last as long as it may be."""
        starts = range(0, self._total - 1, self._length)
        for first in range(0, len(starts), self._rows):
            yield np.array(starts[first : first + self._rows])

    def read(self, numbers: Sequence[int] | np.ndarray) -> list[dict[str, np.ndarray]]:
        """The windows that begin at these places: length + 1 ids each, or what is there at the end of the stream."""
        starts = np.asarray(numbers, dtype=np.int64).reshape(-1)
        if len(starts) and (starts.min() < 0 or starts.max() >= self._total):
            raise OptionError(f"windows at {starts.min()} to {starts.max()}; the stream has {self._total:,} tokens.")
        stops = np.minimum(starts + self._length + 1, self._total)
        return [{self._field: ids} for ids in self._store.stretches(starts, stops)]

    def steps(self, epoch: int = 0) -> int:
        """How many batches an epoch has."""
        return -(-self._count(epoch) // self._rows)

    def _count(self, epoch: int) -> int:
        """How many whole windows an epoch has."""
        return (self._total - 1 - self._offset(epoch)) // self._length

    def _offset(self, epoch: int) -> int:
        """Where the first window of an epoch begins: anywhere in a window's length, if one is left behind it."""
        if self._total < self._length + 1:
            raise OptionError(
                f"the stream has {self._total:,} tokens; a window of {self._length:,} and the one behind it takes "
                f"{self._length + 1:,}. Take more text or shorter windows."
            )
        most = min(self._length, self._total - self._length)
        return int(np.random.SeedSequence([self._seed, epoch]).generate_state(1, np.uint64)[0] % most)
