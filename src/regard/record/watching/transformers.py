"""Hugging Face models: the attention functions of transformers' interface, wrapped under the names they have."""

# B batch, H query heads, G key heads, Q queries, K keys

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.integrations.flash_attention import flash_attention_forward
from transformers.integrations.flex_attention import flex_attention_forward
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import AttentionInterface

from ...errors import WatchError
from ...formula import masks
from ...formula.masks import Mask
from . import registry
from .calls import Call
from .registry import Replacement
from .shaping import Shaping, blinded, read_bias, read_block_mask, read_mask
from .torch import remembered, report
from .watcher import Watch

__all__ = ["replacements"]

GET, FIND, REORDER, REORDER_BOTH = (
    AttentionInterface.get_interface, AttentionInterface.__getitem__, Cache.reorder_cache,
    EncoderDecoderCache.reorder_cache,
)  # fmt: skip
_wrapped: dict[Any, Any] = {}  # function -> the same, observed


def replacements(model: nn.Module) -> list[Replacement]:
    """The ways by which a model comes to its attention function, and what changes the order of beams."""
    found: list[Replacement] = [
        (AttentionInterface, "get_interface", observed_get),
        (AttentionInterface, "__getitem__", observed_find),
        (Cache, "reorder_cache", _observed_reorder(REORDER)),
        (EncoderDecoderCache, "reorder_cache", _observed_reorder(REORDER_BOTH)),
    ]
    for name, observed_method in (("generate", _observed_generate), ("get_compiled_call", _observed_compile)):
        function = getattr(type(model), name, None)
        if function is not None and not hasattr(function, "__regard__"):
            found.append((type(model), name, observed_method(function)))
    return found


@wraps(GET)
def observed_get(self: Any, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """The attention function of an implementation, observed; also where it is the default, as for "eager"."""
    return observed(GET(self, *args, **kwargs))


@wraps(FIND)
def observed_find(self: Any, key: str) -> Callable[..., Any]:
    """The attention function of a name, observed."""
    return observed(FIND(self, key))  # type: ignore[no-untyped-call]


def observed(function: Callable[..., Any]) -> Callable[..., Any]:
    """An attention function that tells those who watch its module what it was called with."""
    if hasattr(function, "__regard__"):
        return function
    if function not in _wrapped:

        @wraps(function)
        def attention(
            module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any = None, *args: Any,
            **kwargs: Any,
        ) -> Any:  # fmt: skip
            nested = registry.is_inside()
            with registry.inside():  # also where nobody watches: what it calls is not the affair of a model around it
                result = function(module, query, key, value, attention_mask, *args, **kwargs)
            if nested or not registry.observers(module):
                return result
            output, *rest = result
            call = _call(function, module, (query, key, value, output), attention_mask, kwargs)
            changed = report(call)
            return result if changed is None else (changed.transpose(1, 2), *rest)

        attention.__regard__ = True  # type: ignore[attr-defined]
        _wrapped[function] = attention
    return _wrapped[function]  # type: ignore[no-any-return]


def _call(
    function: Callable[..., Any], module: nn.Module, tensors: tuple[Tensor, ...], mask: Any, options: dict[str, Any]
) -> Call:
    if options.get("cache") is not None:
        raise WatchError("continuous batching keeps its keys in pages, which cannot be watched; use generate().")
    query, key, value, output = tensors
    shaping = _shaping(Given(function, module, query, key, mask, options))
    scale = options.get("scaling")
    stock_sdpa = function is sdpa_attention_forward  # which knows neither sinks nor softcap
    sinks = None if stock_sdpa else options.get("s_aux")
    shaping = shaping if sinks is None else blinded(shaping, key.shape[2])
    dropout = options.get("dropout") or 0.0
    return Call(
        module=module, query=query, key=key, value=value, output=output.transpose(1, 2), result=output,
        scale=query.shape[-1] ** -0.5 if scale is None else float(scale),
        softcap=None if stock_sdpa else options.get("softcap"), mask=shaping.mask, bias=shaping.bias,
        even=shaping.even, sinks=None if sinks is None else sinks.detach().reshape(-1), dropped=dropout > 0,
        way=function,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Given:
    """What an attention function was called with."""

    function: Callable[..., Any]
    module: nn.Module
    query: Tensor
    key: Tensor
    mask: Any
    options: dict[str, Any]

    @property
    def causal(self) -> bool:
        """Whether it is to be causal of its own accord."""
        said = self.options.get("is_causal")
        return bool(getattr(self.module, "is_causal", True) if said is None else said)


def _shaping(given: Given) -> Shaping:
    module, query, options = given.module, given.query, given.options
    queries, keys = query.shape[2], given.key.shape[2]
    found = _mask(given)
    numbers = options.get("position_bias")
    if numbers is None:
        return found
    numbers = numbers[(None,) * (4 - numbers.ndim) + (...,)][..., :keys]
    bias = remembered(
        module,
        options["position_bias"],
        (queries, keys),
        lambda: read_bias(numbers.expand(*numbers.shape[:2], queries, keys)),
    )
    if found.even is not None:  # where the mask swallows the scores, it swallows the bias too
        bias = read_bias(numbers.masked_fill(found.even[:, None, :, None], 0.0))
    if found.bias is not None:
        whole = (slice(None), slice(None), (query.shape[0], query.shape[1], queries, keys))
        bias = read_bias(found.bias.tile(*whole, like=query) + numbers)
    return Shaping(mask=found.mask, bias=bias, even=found.even)


def _mask(given: Given) -> Shaping:
    function, module, query, mask = given.function, given.module, given.query, given.mask
    queries, keys = query.shape[2], given.key.shape[2]
    if function is flash_attention_forward:
        return Shaping(mask=_flash_mask(given))
    if isinstance(mask, Tensor) and mask.ndim == 2:
        return remembered(module, mask, (queries, keys), lambda: read_mask(mask.bool()[:, None, None], queries, keys))  # type: ignore[no-any-return]
    if isinstance(mask, Tensor):
        return remembered(module, mask, (queries, keys), lambda: read_mask(mask, queries, keys))  # type: ignore[no-any-return]
    if mask is not None:
        block = remembered(
            module, mask, (queries, keys), lambda: read_block_mask(mask, query.shape[0], queries, keys, query.device)
        )
        return block  # type: ignore[no-any-return]
    if "eager" in getattr(function, "__name__", "") or function is flex_attention_forward:
        return Shaping()
    # A single query is not masked; with several, PyTorch's causal mask begins at the first key.
    return Shaping(mask=masks.causal(0) if queries > 1 and given.causal else None)


def _flash_mask(given: Given) -> Mask | None:
    """What flash attention is told: causal or not, a window, which keys are padding, where packed texts begin."""
    query, mask, options, causal = given.query, given.mask, given.options, given.causal
    queries, keys = query.shape[2], given.key.shape[2]
    window = options.get("sliding_window")
    parts: list[Mask] = []
    if window is not None and keys > window:
        parts.append(masks.window(window - 1, 0 if causal else window - 1, keys - queries))
    elif causal and queries > 1:
        parts.append(masks.causal(keys - queries))
    if isinstance(mask, Tensor):
        parts.append(masks.keys(mask[:, :keys].bool()))
    starts = options.get("cu_seq_lens_q")
    if isinstance(starts, Tensor):
        parts.append(masks.segments(torch.bucketize(torch.arange(keys, device=starts.device), starts, right=True)))
    elif mask is None and isinstance(options.get("position_ids"), Tensor) and queries == keys > 1:
        places = options["position_ids"]
        if places.ndim == 2 and bool((places[:, 1:] < places[:, :-1]).any()):
            parts.append(masks.segments((places == 0).cumsum(-1).expand(query.shape[0], -1)))
    whole = None
    for part in parts:
        whole = part if whole is None else whole & part
    return whole


def _observed_reorder(function: Callable[..., Any]) -> Any:
    @wraps(function)
    def reorder_cache(self: Any, beam_idx: Tensor) -> Any:
        # A cache of both sides reorders each of them in turn; told once, by the outermost.
        module = None if registry.is_inside() else registry.calling_module(2)
        with registry.inside():
            result = function(self, beam_idx)
        for observer in registry.observers(module) if module is not None else []:
            if isinstance(observer, Watch):
                observer.reordered(beam_idx)
        return result

    return reorder_cache


def _observed_generate(function: Callable[..., Any]) -> Any:
    @wraps(function)
    def generate(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        watches = [observer for observer in registry.observers(self) if isinstance(observer, Watch)]
        for watch in watches:
            watch.generating += 1
            watch.episode += 1
        try:
            result = function(self, *args, **kwargs)
        finally:
            for watch in watches:
                watch.generating -= 1
        texts = result if isinstance(result, Tensor) else getattr(result, "sequences", None)
        given = next((len(part) for part in (*args, *kwargs.values()) if isinstance(part, Tensor) and part.ndim > 1), 1)
        for watch in watches:
            if isinstance(texts, Tensor):
                watch.returned(texts.detach().cpu(), given)
        return result

    generate.__regard__ = True  # type: ignore[attr-defined]
    return generate


def _observed_compile(function: Callable[..., Any]) -> Any:
    @wraps(function)
    def get_compiled_call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not registry.observers(self):
            return function(self, *args, **kwargs)
        raise WatchError(
            "generate() compiles the model for its static cache, and compiled code does not say what its attention is "
            "given; call generate(..., disable_compile=True) to watch it."
        )

    get_compiled_call.__regard__ = True  # type: ignore[attr-defined]
    return get_compiled_call
