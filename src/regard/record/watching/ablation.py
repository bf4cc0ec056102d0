"""Head ablation: a model with some of its heads silent."""

# B batch, H heads, Q queries, V value width

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import OptionError, WatchError
from ..record import Head
from . import registry
from .modules import attention_modules

__all__ = ["Ablation"]


class Ablation(registry.Observer):
    """What `regard.without` sets up: the outputs of the chosen heads become 0, before the output matrix mixes them."""

    def __init__(self, model: nn.Module, heads: Iterable[Any]) -> None:
        if not isinstance(model, nn.Module):
            raise OptionError(f"{type(model).__name__} is no torch.nn.Module; regard.without takes a PyTorch model.")
        names = attention_modules(model)
        known = dict(model.named_modules())
        self.silent: dict[str, set[int]] = {}
        for choice in heads:
            layer, head = (choice.layer.name, choice.index) if isinstance(choice, Head) else _pair(choice)
            name = layer if isinstance(layer, str) else _name(layer, names)
            if " (turn " in name:
                raise OptionError(
                    f"{name}: the model runs one module for several layers, and a head of it can only be silent in all "
                    f"of them: heads=[({name.partition(' (turn ')[0]!r}, {head})]."
                )
            if name not in known:
                raise OptionError(f"the model has no module {name!r}; its attention layers are {', '.join(names)}.")
            self.silent.setdefault(name, set()).add(head)
        if not self.silent:
            raise OptionError("no heads are named; give some, as in heads=[(3, 5)]: layer 3, head 5.")
        self.names = {id(known[name]): name for name in self.silent}
        self.modules = self.names.keys()
        self.met: set[str] = set()

    def without(self, module: nn.Module, output: Tensor) -> Tensor:
        """The output of a layer, (B, H, Q, V), with nothing from the silent heads."""
        name = self.names[id(module)]
        self.met.add(name)
        missing = [head for head in self.silent[name] if head >= output.shape[1]]
        if missing:
            raise OptionError(f"head {missing[0]} of {output.shape[1]} in {name}; choose 0 to {output.shape[1] - 1}.")
        kept = torch.ones(output.shape[1], 1, 1, dtype=output.dtype, device=output.device)
        kept[sorted(self.silent[name])] = 0
        return output * kept

    def finish(self) -> None:
        """When it ends without an exception: layers that were to lose a head and were never seen are named here."""
        unseen = [name for name in self.silent if name not in self.met]
        if unseen:
            raise WatchError(f"the heads of {', '.join(unseen)} were not silenced: its attention was not seen to run.")


def _pair(choice: Any) -> tuple[int | str, int]:
    try:
        layer, head = choice
    except (TypeError, ValueError):
        raise OptionError(f"{choice!r} names no head; a head is (layer, head), as in (3, 5).") from None
    if isinstance(head, bool) or not isinstance(head, int) or head < 0:
        raise OptionError(f"head {head!r} in {choice!r}; heads are numbered from 0.")
    return layer, head


def _name(layer: Any, names: list[str]) -> str:
    if isinstance(layer, bool) or not isinstance(layer, int) or not -len(names) <= layer < len(names):
        raise OptionError(f"layer {layer!r} of {len(names)}; choose 0 to {len(names) - 1}, or a module's name.")
    return names[layer]
