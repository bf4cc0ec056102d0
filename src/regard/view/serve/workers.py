"""The few threads that compute, and how many requests may wait for them."""

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TypeVar

from ...formula.threads import cores
from .refusal import Refused

__all__ = ["Workers"]

MOST_WAITING = 256
Result = TypeVar("Result")


class Workers:
    """Threads of their own, as many as there are cores: memory that each thread keeps for itself is kept few times."""

    def __init__(self, count: int | None = None, waiting: int = MOST_WAITING) -> None:
        self.count = count or cores()
        self._pool = ThreadPoolExecutor(self.count, "regard")
        self._most, self._inside = self.count + waiting, 0
        self._lock = threading.Lock()

    def do(self, work: Callable[[], Result]) -> Result:
        """Have something computed, as soon as a thread is free; who finds too many waiting is sent away."""
        with self._lock:
            if self._inside >= self._most:
                raise Refused(
                    503, f"{self._inside} requests wait already; ask again in a second.", **{"Retry-After": "1"}
                )
            self._inside += 1
        try:
            return self._pool.submit(work).result()
        except (CancelledError, RuntimeError) as error:
            if isinstance(error, CancelledError) or "shutdown" in str(error):
                raise Refused(503, "the server is being closed.") from None
            raise
        finally:
            with self._lock:
                self._inside -= 1

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
