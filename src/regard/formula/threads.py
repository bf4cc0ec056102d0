"""Work in parallel on libraries that do not spread it themselves (NumPy), each thread with BLAS of its own."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def in_parallel(work: Callable[[Task], Answer], tasks: Sequence[Task]) -> list[Answer]:
    """[work(task) for task in tasks], on all the cores this process may use."""
    workers = min(cores(), len(tasks))
    if workers <= 1:
        return [work(task) for task in tasks]
    with single_threaded_blas(), ThreadPoolExecutor(workers) as pool:
        # Each task runs in the caller's context: NumPy keeps there what it is to warn about.
        started = [pool.submit(copy_context().run, work, task) for task in tasks]
        return [task.result() for task in started]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Limit:
    """How many callers want BLAS on one thread now, and what gives it back. The setting is the whole process's, so
    the first one in sets it and the last one out restores it."""

    lock = threading.Lock()
    callers = 0
    restore: Callable[[], None]


@cache
def _controller() -> ThreadpoolController:
    """What sets the number of threads; looking for the libraries takes a millisecond, so it is done once."""
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS on one thread: where our threads take the cores, and where a product is too small to be worth a second one.

    Splitting each tile over all cores again makes it half as fast; and a small product waits for a core that is busy.
    """
    with _Limit.lock:
        if _Limit.callers == 0:
            _Limit.restore = _controller().limit(limits=1, user_api="blas").restore_original_limits
        _Limit.callers += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.callers -= 1
            if _Limit.callers == 0:
                _Limit.restore()
