"""What a layer was given, checked: widths, heads, rates, names and token vectors."""

# B batch, N tokens, E width

from collections.abc import Collection

import torch
from torch import Tensor

from ..errors import DtypeError, OptionError, ShapeError

MOST = {
    "vocabulary": 2**24, "target_vocabulary": 2**24, "width": 2**16, "depth": 2**10, "decoder_depth": 2**10,
    "hidden": 2**20, "decoder_hidden": 2**20, "longest": 2**24,
}  # fmt: skip


def require_count(name: str, number: int) -> int:
    """A number of things: whole, 1 or more."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise OptionError(f"{name} is {number!r}; it must be a whole number, 1 or more.")
    return number


def require_sizes(config: object) -> None:
    """The numbers of a config that say how large a model is: counts, and none beyond any model that there is.

    A damaged one is told before it is paid for with all the memory.
    """
    for name, most in MOST.items():
        number = getattr(config, name, None)
        if number is not None and require_count(name, number) > most:
            raise OptionError(f"{name} is {number}; it must be at most {most:,}.")


def require_rate(name: str, rate: float) -> float:
    """A share that is dropped: from 0 up to, but not including, 1."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise OptionError(f"{name} is {rate!r}; it must be a number from 0 up to, but not including, 1.")
    return float(rate)


def require_positive(name: str, number: float) -> float:
    """A number above 0, such as the eps of a norm."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < float("inf"):
        raise OptionError(f"{name} is {number!r}; it must be a number above 0.")
    return float(number)


def require_name(what: str, name: str, known: Collection[str]) -> str:
    """One of the names that are known."""
    if name not in known:
        raise OptionError(f"{what} is {name!r}; it must be one of {', '.join(map(repr, known))}.")
    return name


def head_width(width: int, heads: int, key_heads: int) -> int:
    """The columns of one head, where the heads share `width` evenly and the key heads share the heads evenly."""
    for name, number in (("width", width), ("heads", heads), ("key_heads", key_heads)):
        require_count(name, number)
    if width % heads:
        raise OptionError(f"{heads} heads do not divide a width of {width}: {width} / {heads} = {width / heads:g}.")
    if heads % key_heads:
        raise OptionError(f"{key_heads} key heads cannot serve {heads} heads evenly; key_heads must divide heads.")
    return width // heads


def require_vectors(name: str, x: Tensor, width: int) -> None:
    """Token vectors, (B, N, E), E being the width that the layer was made for."""
    require_tensor(name, x)
    if x.ndim != 3 or x.shape[-1] != width:
        one = f" For a single sequence give {name}[None]." if x.ndim == 2 and x.shape[-1] == width else ""
        raise ShapeError(f"{name} has shape {tuple(x.shape)}; it must be (batch, tokens, {width}).{one}")


def require_tensor(name: str, x: Tensor) -> None:
    """A tensor of floating numbers."""
    if not isinstance(x, Tensor):
        raise DtypeError(
            f"{name} is a {type(x).__name__}; layers work on tensors. Make it one: torch.as_tensor({name})."
        )
    if not torch.is_floating_point(x):
        raise DtypeError(f"{name} has dtype {x.dtype}; layers take vectors of floating numbers. Embed token ids first.")
