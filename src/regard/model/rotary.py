"""Rotary positions as an option of attention layers, and the cosines and sines they turn by, computed once."""

# B batch, H heads, N tokens, D head width, W rotated width

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ..errors import OptionError
from ..formula import positions
from ..formula.positions.rotary import Scaling
from .options import require_count, require_positive


@dataclass(frozen=True, kw_only=True)
class Rotary:
    """Positions that turn queries and keys: which columns, how fast, and how stretched for long context."""

    base: float = 10000.0
    width: int | None = None  # columns of each head that are turned, all unless given
    interleaved: bool = False  # pairs are (2i, 2i + 1), else (i, i + width/2)
    scaling: Scaling | None = None

    def __post_init__(self) -> None:
        require_positive("the rotary base", self.base)
        if self.scaling is not None and not hasattr(self.scaling, "stretch"):
            raise OptionError(f"scaling is {self.scaling!r}; give one of regard.formula.positions, such as Yarn(..).")
        if self.width is not None:
            self.frequencies(self.width)

    def frequencies(self, head: int) -> list[float]:
        """How far each pair of columns turns a token, in heads of `head` columns."""
        width = head if self.width is None else require_count("the rotary width", self.width)
        if width > head:
            raise OptionError(f"a rotary width of {width} in heads of {head} columns; at most {head} can be turned.")
        return positions.frequencies(width, self.base, self.scaling)

    @property
    def temperature(self) -> float:
        """What the scale is multiplied by: YaRN sharpens the softmax, the others leave it."""
        return float(getattr(self.scaling, "temperature", 1.0))

    @cached_property
    def angles(self) -> "Angles":
        """Its cosines and sines. The layers of a stack are made with one Rotary, so they share one table."""
        return Angles()


class Angles:
    """cos and sin of each place, kept in tables that grow by doubling; one for each width, device and dtype.

    They belong to no state_dict, and a copy of a model begins with none.
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[tuple[float, ...], torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}

    def __reduce__(self) -> tuple[type["Angles"], tuple[()]]:
        return Angles, ()  # for copy and pickle: tables are cheap to make again

    def at(self, start: int, x: Tensor, frequencies: tuple[float, ...]) -> tuple[Tensor, Tensor]:
        """cos and sin for the tokens of x, the first of which has place `start`.   (.., N, D) -> (N, W/2) twice"""
        stop = start + x.shape[-2]
        dtype = x.dtype if x.dtype == torch.float64 else torch.float32  # rotate computes half precision in float32
        known = self._tables.get((frequencies, x.device, dtype))
        if known is None or len(known[0]) < stop:
            length = max(stop, 64 if known is None else 2 * len(known[0]))
            with torch.inference_mode(False):  # a table from inference mode could not be trained with later
                cos, sin = positions.angles(torch.arange(length, device=x.device), list(frequencies))
                known = self._tables[frequencies, x.device, dtype] = (cos.to(dtype), sin.to(dtype))
        return known[0][start:stop], known[1][start:stop]
