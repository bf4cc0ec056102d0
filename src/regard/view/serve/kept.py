"""What was made once and may be asked for again: the latest, up to so many bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Kept"]

Thing = TypeVar("Thing")


class Kept(Generic[Thing]):
    """Things by their names; those that were asked for longest ago go when there is no more room."""

    def __init__(self, room: int, size: Callable[[Thing], int]) -> None:
        self.room, self.size = room, size
        self.taken = 0
        self._things: OrderedDict[Hashable, Thing] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: Hashable, make: Callable[[], Thing]) -> Thing:
        """The thing of a name, made if it is not there; two who ask at once may both make it."""
        with self._lock:
            if name in self._things:
                self._things.move_to_end(name)
                return self._things[name]
        made = make()
        with self._lock:
            if name not in self._things:
                self._things[name] = made
                self.taken += self.size(made)
            while self.taken > self.room and len(self._things) > 1:
                _, gone = self._things.popitem(last=False)
                self.taken -= self.size(gone)
            return self._things.get(name, made)
