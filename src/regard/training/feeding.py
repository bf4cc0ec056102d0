"""Global batches → this process's parts of them, made ready a little ahead, in a thread of their own."""

import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..text.batches import Place, Source
from .ranks import Ranks
from .tasks.batch import Batch

AHEAD = 3  # steps that lie ready; more would only take memory


Collate = Callable[[list[dict[str, np.ndarray]], Sequence[np.random.Generator]], Batch]


@dataclass(frozen=True)
class Portion:
    """What this process does in one step."""

    place: Place  # behind this batch: where the next one begins
    numbers: np.ndarray  # the examples of the whole batch, over all processes
    parts: list[Batch]  # of this process, gone through one after the other
    tokens: int  # of this process


class Draws(Sequence[np.random.Generator]):
    """A source of random numbers for each example, made when it is asked for.

    What it gives depends on seed, epoch and example alone: however a batch is divided among processes, the same words
    are hidden.
    """

    def __init__(self, seed: int, epoch: int, numbers: np.ndarray) -> None:
        self._key, self._numbers = (seed << 32) + epoch, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, item: Any) -> Any:
        key = np.array([self._key % 2**64, int(self._numbers[item])], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key))


class Feed:
    """The portions of one process, one after the other from a place on. sized: the fields whose tokens are counted."""

    def __init__(
        self,
        source: Source,
        collate: Collate,
        ranks: Ranks,
        *,
        seed: int,
        sized: Sequence[str] = (),
        accumulate: int = 1,
    ) -> None:
        self.source, self.collate, self.ranks, self.seed, self.accumulate = source, collate, ranks, seed, accumulate
        self.sized = sized

    def after(self, place: Place) -> Generator[Portion]:
        """Endless, and the same whenever it is asked: nothing of it has to be kept but the place."""
        return ahead(self._portions(place))

    def once(self) -> Generator[Portion]:
        """Every example once, for measuring."""
        return ahead(self._portion(Place(0, 0, 0), Place(0, 0, 0), numbers, 1) for numbers in self.source.once())

    def _portions(self, place: Place) -> Iterator[Portion]:
        for behind, numbers in self.source.after(place):
            yield self._portion(place, behind, numbers, self.accumulate)
            place = behind

    def _portion(self, place: Place, behind: Place, numbers: np.ndarray, parts: int) -> Portion:
        # No parts without a row in any process: they would be gone through for nothing.
        parts = max(1, min(parts, -(-len(numbers) // self.ranks.count)))
        # Every so-many-th row: all parts are then of about the same length, since rows of a batch are.
        mine = [numbers[self.ranks.rank + part * self.ranks.count :: self.ranks.count * parts] for part in range(parts)]
        read = [self.source.read(share) if len(share) else [] for share in mine]
        drawn = [Draws(self.seed, place.epoch, share) for share in mine]
        tokens = sum(len(row[name]) for rows in read for row in rows for name in self.sized)
        batches = [self._placed(self.collate(*both)) for both in zip(read, drawn, strict=True)]
        return Portion(behind, numbers, batches, tokens)

    def _placed(self, batch: Batch) -> Batch:
        """In memory that a GPU can fetch from by itself, where there is one."""
        if self.ranks.device.type != "cuda":
            return batch
        return Batch({name: tensor.pin_memory() for name, tensor in batch.tensors.items()}, batch.counts)


def moved(tensors: dict[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    """On the device, without waiting for it."""
    return {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}


def ahead(items: Iterator[Any]) -> Generator[Any]:
    """The same items, made in a thread of their own while the last ones are used."""
    ready: queue.Queue[tuple[bool, Any]] = queue.Queue(AHEAD)
    over = threading.Event()

    def make() -> None:
        try:
            for item in items:
                if not _put(ready, (True, item), over):
                    return
            _put(ready, (False, None), over)
        except BaseException as error:
            _put(ready, (False, error), over)

    thread = threading.Thread(target=make, name="regard-feed", daemon=True)
    thread.start()
    try:
        while True:
            more, item = ready.get()
            if more:
                yield item
            elif item is None:
                return
            else:
                raise item
    finally:
        over.set()
        thread.join()


def _put(ready: queue.Queue[Any], item: Any, over: threading.Event) -> bool:
    """Whether it was put; not so when nobody waits any more."""
    while not over.is_set():
        try:
            ready.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False
