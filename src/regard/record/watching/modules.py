"""The attention layers of a model: which modules they are, by their code and by their names."""

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn

from ...errors import OptionError, WatchError
from ...model.attention import MultiHeadAttention, SelfAttention
from ...model.mixing import Mixing

__all__ = [
    "PLAIN",
    "attention_modules",
    "chosen_modules",
    "is_compiled",
    "looks_like_attention",
    "numbered",
    "refuse_compiled",
    "related",
    "traits",
]

IDS = {"input_ids", "ids"}  # what a module that reads tokens calls them
ATTENTION = re.compile(r"atten|attn", re.IGNORECASE)
ENTRIES = ("ALL_ATTENTION_FUNCTIONS", "scaled_dot_product_attention", "multi_head_attention_forward")
MODELS = "transformers.modeling_utils"  # its base of all models names the interface, to choose an implementation
_looks: dict[type, bool] = {}
_traits: dict[type, "Traits"] = {}
PLAIN = {  # classes, not what is made of them: most modules of a model, and nothing in them attends
    nn.Linear, nn.Embedding, nn.LayerNorm, nn.RMSNorm, nn.Dropout, nn.Identity, nn.GELU, nn.ReLU, nn.SiLU, nn.Conv1d,
    nn.Conv2d,
}  # fmt: skip
KNOWN = (MultiHeadAttention, SelfAttention, nn.MultiheadAttention)


def attention_modules(model: nn.Module) -> list[str]:
    """The modules that take the dot product, by their code, in the order of the model."""
    if isinstance(model, KNOWN):
        return [""]
    found: list[str] = []
    for name, module in model.named_modules():
        inside = any(name.startswith(other + ".") for other in found)
        if isinstance(module, KNOWN) or (not inside and _calls_attention(type(module))):
            found.append(name)
    return found


def looks_like_attention(module: nn.Module) -> bool:
    """Whether a module has the name of an attention layer and matrices of its own; one answers for its class."""
    kind = type(module)
    if kind not in _looks:
        parts = [child for child in module.children() if not isinstance(child, nn.Embedding)]
        holders = [module, *(child for child in parts if not traits(type(child)).named)]
        matrices = any(own.ndim > 1 for holder in holders for own in holder.parameters(recurse=False))
        _looks[kind] = traits(kind).named and matrices
    return _looks[kind]


def _calls_attention(kind: type) -> bool:
    if kind.__module__.startswith("torch."):
        return False
    sdpa = nn.functional.scaled_dot_product_attention
    for cls in kind.__mro__:
        if cls is nn.Module:
            return False
        if cls.__module__ == MODELS:
            continue
        for function in vars(cls).values():
            inner = inspect.unwrap(function) if callable(function) else None
            code = getattr(inner, "__code__", None)
            if code is None:
                continue
            around = getattr(inner, "__globals__", {})
            if any(name in ENTRIES or around.get(name) is sdpa for name in code.co_names):
                return True
    return False


def chosen_modules(model: nn.Module, layers: Iterable[int | str] | None) -> set[str] | None:
    """The names of the layers that a user chose by number or by name; None: all."""
    if layers is None:
        return None
    layers = [layers] if isinstance(layers, (int, str)) else list(layers)
    names = attention_modules(model)
    known = {name for name, _ in model.named_modules()}
    chosen: set[str] = set()
    for layer in layers:
        if isinstance(layer, str):
            if layer not in known:
                raise OptionError(f"the model has no module {layer!r}; its attention layers are {', '.join(names)}.")
            inside = {name for name in names if name == layer or name.startswith(layer + ".")}
            chosen |= inside or {layer}
        elif isinstance(layer, int) and not isinstance(layer, bool) and -len(names) <= layer < len(names):
            chosen.add(names[layer])
        else:
            raise OptionError(f"layer {layer!r} of {len(names)}; choose 0 to {len(names) - 1}, or a module's name.")
    return chosen


def numbered(model: nn.Module, turns: dict[str, int]) -> dict[tuple[str, int], int]:
    """The number of each layer in the model, those counted that were not seen. turns: of each module, its last"""
    order = {name: place for place, (name, _) in enumerate(model.named_modules())}
    names = sorted({*attention_modules(model), *turns}, key=order.__getitem__)
    every = [(name, turn) for name in names for turn in range(turns.get(name, 0) + 1)]
    return {key: number for number, key in enumerate(every)}


def related(one: str, other: str) -> bool:
    """Whether one module is the other, or lies in it."""
    return one == other or one.startswith(other + ".") or other.startswith(one + ".") or "" in (one, other)


@dataclass(frozen=True)
class Traits:
    """What matters of a class of modules."""

    part: bool  # of another layer, and none by itself
    torch: bool  # PyTorch's own: hooks there switch off fast paths
    ours: bool  # a layer of Regard's
    named: bool  # it has the name of an attention layer
    rewritten: bool  # its forward is compiled, or TorchScript
    takes: tuple[str, ...]  # what its forward takes, where token ids are among it

    @cached_property
    def matters(self) -> bool:
        """Whether modules of this class have to be looked at one by one."""
        return self.part or self.ours or self.named or bool(self.takes)


def traits(kind: type[nn.Module]) -> Traits:
    """What matters of a class of modules, found out once."""
    known = _traits.get(kind)
    if known is None:
        takes = tuple(inspect.signature(kind.forward).parameters)[1:]
        foreign = not kind.__module__.startswith(("torch.", "regard."))
        known = _traits[kind] = Traits(
            part=issubclass(kind, Mixing), torch=kind.__module__.startswith("torch.nn"),
            ours=issubclass(kind, (MultiHeadAttention, SelfAttention)),
            named=foreign and ATTENTION.search(kind.__name__) is not None,
            rewritten=issubclass(kind, torch.jit.ScriptModule) or is_compiled(kind.forward),
            takes=() if IDS.isdisjoint(takes) else takes,
        )  # fmt: skip
    return known


def is_compiled(function: object) -> bool:
    """Whether a function is what torch.compile makes of one."""
    return hasattr(function, "_torchdynamo_orig_callable")


def refuse_compiled(name: str, module: nn.Module) -> None:
    """Say it: a module that is compiled would run unseen."""
    inner = module._modules.get("_orig_mod")
    what = "the model" if not name else f"{name} in the model"
    if isinstance(module, torch.jit.ScriptModule):
        raise WatchError(f"{what} is a TorchScript module, which does not say what its attention is given.")
    cure = "watch the model it was made from" if inner is not None else "watch a model that is not compiled"
    raise WatchError(
        f"{what} is compiled, and compiled code does not say what its attention is given; {cure}"
        + (": regard.watch(model._orig_mod)." if inner is not None and not name else ".")
    )
