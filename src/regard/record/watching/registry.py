"""Who watches which module, and the functions that are stood in for while anybody does.

Functions of torch and transformers are replaced under their own names, once, however many watch, and put back when the
last one leaves. A stand-in asks here whose module is calling: a model that nobody watches passes through untouched.
"""

import sys
import threading
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

__all__ = ["Observer", "calling_module", "enter", "inside", "is_inside", "leave", "observers"]


class Observer:
    """Somebody who wants to know what the attention of some modules does: a watch, or an ablation."""

    modules: Container[int]  # ids of modules


class _Local(threading.local):
    depth = 0  # of attention functions that are already observed: what they call is their own affair


_lock = threading.RLock()
_replaced: list[tuple[Any, str, Any, Any]] = []  # owner, name, what was there (or _ABSENT), what is there now
_active: list[Observer] = []
_local = _Local()
_ABSENT = object()

Replacement = tuple[Any, str, Any]  # owner (module, class or dict of globals), name, stand-in


def observers(module: nn.Module) -> list[Observer]:
    """Everybody who observes a module, the outermost first."""
    return [observer for observer in _active if id(module) in observer.modules]


def enter(observer: Observer, replacements: Callable[[], list[Replacement]]) -> None:
    """Begin to observe. The first one in has the functions replaced, later ones add what is not replaced yet."""
    with _lock:
        for owner, name, stand_in in replacements():
            _replace(owner, name, stand_in)
        _active.append(observer)


def leave(observer: Observer) -> None:
    """No longer observe. The last one out puts everything back."""
    with _lock:
        if observer not in _active:
            return
        _active.remove(observer)
        if not _active:
            _put_back()


@contextmanager
def inside() -> Iterator[None]:
    """While an observed attention function runs: functions that it calls in turn are not observed again."""
    _local.depth += 1
    try:
        yield
    finally:
        _local.depth -= 1


def is_inside() -> bool:
    """Whether this thread is in an attention function that is observed already."""
    return _local.depth > 0


def calling_module(above: int) -> nn.Module | None:
    """The nearest module on the way here, so many frames up the stack or more, that somebody observes.

    A function such as scaled_dot_product_attention is not told who calls it. Forward hooks would tell, and they also
    switch off the fast paths of nn.TransformerEncoderLayer, so that the watched run were another one.
    """
    frame: Any = sys._getframe(above)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, nn.Module) and observers(owner):
            return owner
        frame = frame.f_back
    return None


def _replace(owner: Any, name: str, stand_in: Any) -> None:
    if any(held is owner and known == name for held, known, _, _ in _replaced):
        return
    held = owner if isinstance(owner, dict) else vars(owner)
    before = held.get(name, _ABSENT)
    _set(owner, name, stand_in)
    _replaced.append((owner, name, before, stand_in))


def _put_back() -> None:
    while _replaced:
        owner, name, before, stand_in = _replaced.pop()
        now = (owner if isinstance(owner, dict) else vars(owner)).get(name)
        if now is not stand_in:
            continue  # somebody else has replaced it since: theirs stays, and finds ours idle
        if before is _ABSENT:
            delattr(owner, name)
        else:
            _set(owner, name, before)


def _set(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        owner[name] = value
    else:
        setattr(owner, name, value)
