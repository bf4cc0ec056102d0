"""PyTorch's own attention: scaled_dot_product_attention, nn.MultiheadAttention, and their fast paths."""

# B batch, H query heads, G key heads, Q queries, K keys, D width, E = H·D

import math
import sys
import threading
from collections.abc import Callable, Container, Iterable
from functools import wraps
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...formula import masks
from ...model.attention import MultiHeadAttention, SelfAttention
from ...model.mixing import Mixing
from . import registry
from .ablation import Ablation
from .calls import Call
from .registry import Replacement
from .shaping import Shaping, read_mask
from .watcher import Watch

__all__ = ["four_axes", "remembered", "replacements", "report"]

OWN = (MultiHeadAttention, SelfAttention, Mixing)
SDPA = functional.scaled_dot_product_attention
MULTI_HEAD = functional.multi_head_attention_forward
# Fast paths that PyTorch keeps to itself: where a version has none, there is nothing to see.
NATIVE_MULTI_HEAD: Any = getattr(torch, "_native_multi_head_attention", None)
NATIVE_LAYER: Any = getattr(torch, "_transformer_encoder_layer_fwd", None)


def replacements(kinds: Iterable[type[nn.Module]]) -> list[Replacement]:
    """The functions that are stood in for: in torch, and where the files of some classes have taken them by name."""
    found: list[Replacement] = [
        (functional, "scaled_dot_product_attention", observed_sdpa),
        (functional, "multi_head_attention_forward", observed_multi_head),
    ]
    if NATIVE_MULTI_HEAD is not None and NATIVE_LAYER is not None:
        found.append((torch, "_native_multi_head_attention", observed_native_multi_head))
        found.append((torch, "_transformer_encoder_layer_fwd", observed_native_layer))
    stand_ins = {id(SDPA): observed_sdpa, id(MULTI_HEAD): observed_multi_head}
    files = {name for kind in kinds for name in _files(kind)}
    for file in files.union(*map(_helpers, files)):
        found += [(around, name, stand_ins[which]) for around, name, which in _taken(file, stand_ins)]
    return found


def _helpers(file: str) -> set[str]:
    """The files of functions that a file of the user's own has taken from elsewhere."""
    if file.startswith(("transformers.", "regard.")) or file not in sys.modules:
        return set()
    functions = [thing for thing in vars(sys.modules[file]).values() if isinstance(thing, FunctionType)]
    homes = {str(function.__module__) for function in functions}
    return {home for home in homes if home.partition(".")[0] not in ("torch", "None", file)}


def _taken(file: str, originals: Container[int]) -> list[tuple[dict[str, Any], str, int]]:
    """Names by which a file knows an original. What is in transformers' files does not change, and is kept in mind."""
    if file in _known:
        return _known[file]
    around = vars(sys.modules[file]) if file in sys.modules else {}
    taken = [(around, name, id(thing)) for name, thing in around.items() if id(thing) in originals]
    if file.startswith("transformers."):
        _known[file] = taken
    return taken


_known: dict[str, list[tuple[dict[str, Any], str, int]]] = {}
_of_kinds: dict[type, tuple[str, ...]] = {}


def _files(kind: type[nn.Module]) -> tuple[str, ...]:
    """The files that a class comes from, those of torch and of transformers' own foundations left out."""
    if kind not in _of_kinds:
        files = {cls.__module__ for cls in kind.__mro__}
        left_out = ("torch.", "builtins", "transformers.modeling_utils")
        _of_kinds[kind] = tuple(name for name in files if not name.startswith(left_out))
    return _of_kinds[kind]


def report(call: Call) -> Tensor | None:
    """Tell those who watch of a call; the output without the heads that somebody wants gone, if there is any such."""
    output = call.output
    own = isinstance(call.module, OWN)  # our layers tell it themselves, before it comes to any kernel
    for observer in registry.observers(call.module):
        if isinstance(observer, Watch):
            observer.saw_output(call) if own else observer.saw(call)
        elif isinstance(observer, Ablation) and output is not None:
            output = observer.without(call.module, output)
    return None if output is call.output else output


@wraps(SDPA)
def observed_sdpa(  # noqa: PLR0917  (its own signature)
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """scaled_dot_product_attention, seen."""
    options = {"attn_mask": attn_mask, "dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
    options |= {"enable_gqa": enable_gqa}
    looking = _looking.module
    module = _caller() if looking is None else looking
    if module is None:
        return SDPA(query, key, value, **options)  # type: ignore[arg-type]
    output = SDPA(query, key, value, **options) if looking is None else _zeros(query, value)  # type: ignore[arg-type]
    seen = four_axes(query, *(part.expand(*query.shape[:-3], *part.shape[-3:]) for part in (key, value)), output)
    shaping = _shaping(_laid_over(attn_mask, query), is_causal, seen[0], seen[1], module)
    call = Call(
        module=module, query=seen[0], key=seen[1], value=seen[2], output=seen[3] if looking is None else None,
        result=output,
        scale=1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else float(scale), mask=shaping.mask,
        bias=shaping.bias, even=shaping.even, dropped=dropout_p > 0, way="sdpa",
    )  # fmt: skip
    changed = report(call)
    return output if changed is None else changed.reshape(output.shape)


@wraps(MULTI_HEAD)
def observed_multi_head(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
    """multi_head_attention_forward, seen.

    Where no weights are asked for it calls scaled_dot_product_attention, which is observed. Where they are, it
    multiplies by itself: so it is called once more, without weights and without the kernel, to see what that is given.
    """
    module = _caller()
    names = MULTI_HEAD.__code__.co_varnames[: MULTI_HEAD.__code__.co_argcount]
    given = dict(zip(names, args, strict=False)) | kwargs
    if module is None or not given.get("need_weights", True):
        return MULTI_HEAD(*args, **kwargs)
    if any(isinstance(observer, Ablation) for observer in registry.observers(module)):
        with registry.inside():
            _, weights = MULTI_HEAD(*args, **kwargs)
        output, _ = MULTI_HEAD(**{**given, "need_weights": False})
        return output, weights
    with registry.inside():
        result = MULTI_HEAD(*args, **kwargs)
    _look_only(module, given)
    return result


def observed_native_multi_head(*args: Any, **kwargs: Any) -> Any:
    """The fast path of nn.MultiheadAttention, seen."""
    result = NATIVE_MULTI_HEAD(*args, **kwargs)
    module = _caller()
    if module is not None:
        query, _, _, width, heads, weight, bias, out, out_bias = args[:9]
        mask = args[9] if len(args) > 9 else kwargs.get("mask")
        kind = args[12] if len(args) > 12 else kwargs.get("mask_type")
        _look_natively(module, query, (width, heads), (weight, bias, out, out_bias), mask=mask, kind=kind)
    return result


def observed_native_layer(*args: Any, **kwargs: Any) -> Any:
    """The fast path of nn.TransformerEncoderLayer, seen."""
    result = NATIVE_LAYER(*args, **kwargs)
    layer = _caller()
    if layer is not None:
        source, width, heads, weight, bias, out, out_bias, _, norm_first, eps, norm, norm_bias = args[:12]
        mask = args[18] if len(args) > 18 else kwargs.get("mask")
        kind = args[19] if len(args) > 19 else kwargs.get("mask_type")
        with torch.no_grad():
            if norm_first:
                source = functional.layer_norm(source, (width,), norm, norm_bias, eps)
        matrices = (weight, bias, out, out_bias)
        _look_natively(layer.get_submodule("self_attn"), source, (width, heads), matrices, mask=mask, kind=kind)
    return result


class _Looking(threading.local):
    """The module for which a call is made only to see what it would be given, in this thread."""

    module: nn.Module | None = None


_looking = _Looking()


def _look_only(module: nn.Module, given: dict[str, Any]) -> None:
    before, _looking.module = _looking.module, module
    try:
        with torch.no_grad():
            MULTI_HEAD(**{**given, "need_weights": False, "training": False})
    finally:
        _looking.module = before


def _look_natively(
    module: nn.Module, source: Tensor, size: tuple[int, int], matrices: tuple[Tensor, ...], *, mask: Tensor | None,
    kind: int | None,
) -> None:  # fmt: skip
    """What the fast path was given, in the terms of the slow one. The mask's kind: 0 of pairs, 1 of keys, 2 of both."""
    if source.is_nested:
        lengths = torch.tensor([len(part) for part in source.unbind()], device=source.device)
        source = torch.nested.to_padded_tensor(source, 0.0)
        mask = torch.arange(source.shape[1], device=source.device)[None] >= lengths[:, None]
        kind = 1
    (width, heads), (weight, bias, out, out_bias) = size, matrices
    x = source.transpose(0, 1)
    given = {
        "query": x, "key": x, "value": x, "embed_dim_to_check": width, "num_heads": heads, "in_proj_weight": weight,
        "in_proj_bias": bias, "bias_k": None, "bias_v": None, "add_zero_attn": False, "dropout_p": 0.0,
        "out_proj_weight": out, "out_proj_bias": out_bias,
        "key_padding_mask": mask if kind == 1 else None, "attn_mask": mask if kind == 0 else None,
    }  # fmt: skip
    if kind == 2 and mask is not None:
        given["attn_mask"] = mask.expand(len(source), heads, *mask.shape[-2:]).reshape(-1, *mask.shape[-2:])
    _look_only(module, given)


def _caller() -> nn.Module | None:
    """The module whose call this is, if somebody observes it and nobody else reports it."""
    if registry.is_inside() or torch.compiler.is_compiling():
        return None
    return registry.calling_module(3)


def _zeros(query: Tensor, value: Tensor) -> Tensor:
    return query.new_zeros((*query.shape[:-1], value.shape[-1]))


def _shaping(mask: Tensor | None, causal: bool, query: Tensor, key: Tensor, module: nn.Module) -> Shaping:
    if mask is None:
        # PyTorch aligns its own causal mask with the first key.
        return Shaping(mask=masks.causal(0) if causal else None)
    sizes = query.shape[2], key.shape[2]
    found: Shaping = remembered(module, mask, sizes, lambda: read_mask(mask, *sizes))
    return found


def _laid_over(mask: Tensor | None, query: Tensor) -> Tensor | None:
    """A mask over the four axes that a call is read in, whatever axes it has: they are matched from the last."""
    if mask is None or query.ndim == 4 or mask.ndim < 3:
        return mask
    if query.ndim == 3:
        return mask[:, None]  # (B, Q, K): each text has one head
    whole = mask[(None,) * (query.ndim - mask.ndim) + (...,)]
    return whole.expand(*query.shape[:-3], *whole.shape[-3:]).reshape(-1, *whole.shape[-3:])


def remembered(module: nn.Module, array: Any, sizes: tuple[int, int], read: Callable[[], Any]) -> Any:
    """What was read out of a mask; the layers of a model share theirs, and it is read once."""
    watches = [observer for observer in registry.observers(module) if isinstance(observer, Watch)]
    if not watches:
        return Shaping()
    known, version = watches[0].decoded, version_of(array)
    for held, then, found in known:
        if held is array and version is not None and then == (version, sizes):
            return found
    found = read()
    known.append((array, (version, sizes), found))
    del known[:-8]
    return found


def version_of(array: Any) -> int | None:
    """How often something was written to; None where nobody counts (tensors of inference mode)."""
    if not isinstance(array, Tensor):
        return 0  # a BlockMask, which is not written to
    return None if array.is_inference() else array._version


def four_axes(*tensors: Tensor) -> list[Tensor]:
    """(B, H, N, D), where a call has other axes: without heads, without batch, or with several of batch."""
    shaped = []
    for tensor in tensors:
        whole = tensor if tensor.ndim > 3 else tensor[(None,) * (3 - tensor.ndim) + (...,)][:, None]
        shaped.append(whole.reshape(-1, *whole.shape[-3:]) if whole.ndim > 4 else whole)
    return shaped
