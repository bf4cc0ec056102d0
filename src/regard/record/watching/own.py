"""Regard's own layers: they hand over queries, keys and mask as they are, whichever path the call then takes."""

from functools import wraps
from typing import Any

from torch import Tensor, nn

from ...formula import masks
from ...formula.masks import Mask
from ...formula.masks.places import Causal
from ...model.attention import MultiHeadAttention, SelfAttention
from . import registry
from .calls import Call
from .modules import traits
from .registry import Replacement
from .shaping import Shaping, read_mask
from .torch import four_axes, remembered
from .watcher import Watch

__all__ = ["replacements"]


def replacements(modules: list[nn.Module]) -> list[Replacement]:
    """The `project` of each layer of ours among some modules."""
    layers: list[Any] = [module for module in modules if traits(type(module)).ours]
    return [(layer, "project", _observed(layer)) for layer in layers]


def _observed(layer: MultiHeadAttention | SelfAttention) -> Any:
    @wraps(type(layer).project)
    def project(x: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
        projected: tuple[Tensor, Tensor, Tensor] = type(layer).project(layer, x, *args, **kwargs)  # type: ignore[arg-type]
        cross = (args[0] if args else kwargs.get("source")) is not None
        for observer in registry.observers(layer):
            if isinstance(observer, Watch):
                observer.saw(_call(layer, projected, kwargs.get("mask"), cross))
        return projected

    return project


def _call(layer: nn.Module, projected: tuple[Tensor, Tensor, Tensor], mask: Any, cross: bool) -> Call:
    query, key, value = four_axes(*projected)
    scale = getattr(getattr(layer, "mixing", None), "scale", None)
    shaping = _shaping(layer, mask, query.shape[2], key.shape[2])
    return Call(
        module=layer, query=query, key=key, value=value, scale=query.shape[-1] ** -0.5 if scale is None else scale,
        mask=shaping.mask, bias=shaping.bias, cross=cross, way="own",
    )  # fmt: skip


def _shaping(layer: nn.Module, mask: Mask | Tensor | None, queries: int, keys: int) -> Shaping:
    if mask is None:
        return Shaping()
    if isinstance(mask, Causal) and mask.offset is None:
        return Shaping(mask=masks.causal(keys - queries))
    if isinstance(mask, Mask):
        return Shaping(mask=mask)
    found: Shaping = remembered(layer, mask, (queries, keys), lambda: read_mask(mask, queries, keys))
    return found
