"""A running model → its record: attention is seen where it is computed, on the path that the model takes anyway."""

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import MissingExtra

try:
    from torch import nn
    from torch.backends import mha
except ModuleNotFoundError as missing:
    raise MissingExtra("watching a model needs PyTorch: pip install regard[torch]") from missing

from ..record import Head, Record
from . import own, registry
from . import torch as torch_world
from .ablation import Ablation
from .modules import looks_like_attention, traits
from .watcher import Watch

__all__ = ["watch", "without"]


@contextmanager
def watch(
    model: nn.Module, *, tokenizer: Any = None, layers: Iterable[int | str] | None = None,
    heads: Iterable[int] | None = None, to: Any = None, values: bool = False, gradients: bool = False,
    strict: bool = True,
) -> Iterator[Record]:  # fmt: skip
    """Record the attention of a model while it runs, as it runs.

    with regard.watch(model) as record:
        model(**inputs)            # or model.generate(...), or model(**inputs).loss.backward()

    The model's outputs are the same to the bit, and it is as it was when the block is left, also by an exception.

    tokenizer: gives the tokens their names. layers, heads: keep only these (a layer's number or its module's name).
    to: where the record is kept: None with the model, "cpu", another device, or "disk". values: keep the values as
    well, for the measures that weigh them; gradients: and the gradients of a backward pass inside the block.
    strict: a layer that ran and was not seen, or whose output does not follow from what was seen, is an error.
    """
    watcher = Watch(
        model, layers=layers, heads=heads, to=to, values=values, gradients=gradients, tokenizer=tokenizer, strict=strict
    )
    record = Record(watcher)
    with _observing(watcher, model, watcher.kinds, watcher.noted):
        _hook(watcher)
        try:
            yield record
        finally:
            for handle in watcher.handles:
                handle.remove()
            watcher.over = True
    watcher.finish()


@contextmanager
def without(model: nn.Module, heads: Iterable[tuple[int | str, int] | Head]) -> Iterator[None]:
    """Run a model with some heads silent: what they give out is 0, as if they were not there.

    with regard.without(model, heads=[(3, 5)]):    # layer 3, head 5, as in record.layers[3].heads[5]
        model(**inputs)
    """
    ablation = Ablation(model, heads)
    modules = list(model.modules())
    with _observing(ablation, model, set(map(type, modules)), modules), _no_fast_path():
        yield
    ablation.finish()


class _FastPath:
    """How many want PyTorch's fast path off now, and what it was before the first of them came."""

    lock = threading.Lock()
    callers = 0
    before = True


@contextmanager
def _no_fast_path() -> Iterator[None]:
    """PyTorch's fast path for its own layers keeps its heads to itself. The setting is the whole process's."""
    with _FastPath.lock:
        if _FastPath.callers == 0:
            _FastPath.before = mha.get_fastpath_enabled()
            mha.set_fastpath_enabled(False)
        _FastPath.callers += 1
    try:
        yield
    finally:
        with _FastPath.lock:
            _FastPath.callers -= 1
            if _FastPath.callers == 0:
                mha.set_fastpath_enabled(_FastPath.before)


@contextmanager
def _observing(
    observer: registry.Observer, model: nn.Module, kinds: set[type[nn.Module]], noted: list[nn.Module]
) -> Iterator[None]:
    registry.enter(observer, lambda: _replacements(model, kinds, noted))
    try:
        yield
    finally:
        registry.leave(observer)


def _replacements(model: nn.Module, kinds: set[type[nn.Module]], noted: list[nn.Module]) -> list[registry.Replacement]:
    found = [*torch_world.replacements(kinds), *own.replacements(noted)]
    if "transformers.modeling_utils" in sys.modules:
        from . import transformers as transformers_world

        found += transformers_world.replacements(model)
    return found


def _hook(watcher: Watch) -> None:
    """Hooks that tell when the model's forward begins and ends, what tokens are read, and which layers run.

    None on PyTorch's own attention layers: hooks there switch off their fast paths.
    """
    handles, model = watcher.handles, watcher.model
    if not isinstance(model, (nn.TransformerEncoderLayer, nn.MultiheadAttention)):
        handles += [
            model.register_forward_pre_hook(watcher.began),
            model.register_forward_hook(watcher.ended, always_call=True),
        ]
    for module in watcher.noted:
        known = traits(type(module))
        if known.named and looks_like_attention(module):
            handles.append(module.register_forward_pre_hook(watcher.note))
        if known.takes:
            handles.append(module.register_forward_pre_hook(watcher.read, with_kwargs=True))
