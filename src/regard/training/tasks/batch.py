"""Examples side by side as tensors, with what they count; a share of a batch may have no examples at all."""

# B examples, N tokens of the longest

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ...text.padding import pad, rounded

Row = np.ndarray[Any, Any] | Sequence[int]
Item = TypeVar("Item")

ENCODED = 1024  # texts that are made into ids at a time
MULTIPLE = 8  # of the longest row: in half precision kernels want rows to begin at a multiple of 16 bytes


@dataclass(frozen=True)
class Batch:
    """Tensors, and how many targets of each kind they hold, known without asking the GPU.

    For each name of counts, `losses` and `measures` of a task give sums: of the same name in losses, and in measures
    of that name with "/loss" and "/right" behind it.
    """

    tensors: dict[str, Tensor]
    counts: dict[str, int]


def padded(rows: Sequence[Row], value: int, most: int | None = None) -> Tensor:
    """The rows with `value` behind them, `most` wide; one row of nothing else where there is none.   -> (B, N)"""
    filled = [row if len(row) else [value] for row in rows] or [[value]]
    return torch.from_numpy(pad(filled, value, multiple=MULTIPLE, most=most))


def there(rows: Sequence[Row], most: int | None = None) -> Tensor:
    """Where a row has its tokens, as wide as `padded` makes it.   -> (B, N) booleans"""
    sizes = torch.tensor([len(row) for row in rows] or [0])
    return torch.arange(rounded(max(int(sizes.max()), 1), MULTIPLE, most)) < sizes[:, None]


def there_if_padded(rows: Sequence[Row], longest: int | None = None) -> dict[str, Tensor]:
    """The same by its name, "mask", unless every row is full: without a mask attention takes its fastest way."""
    mask = there(rows, longest)
    return {} if bool(mask.all()) else {"mask": mask}


def by_the(number: int, items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items in lists of `number`, the last one shorter."""
    rest = iter(items)
    while some := list(islice(rest, number)):
        yield some
