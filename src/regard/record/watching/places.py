"""Where the record is kept: with the model, on another device, or in files of a temporary folder."""

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...errors import FileError, OptionError
from ...formula.arrays import Array

__all__ = ["Place", "place"]

ROOM = 1.05  # a view may stand in this much more memory than it shows; else it is copied, and the rest is let go


class Place:
    """Kept with the model: the tensors themselves, which cost nothing but that they stay."""

    refers = True  # rather than copies

    def keep(self, tensor: Tensor) -> Array:
        """A tensor that nobody else will write to."""
        tensor = tensor.detach()
        held = tensor.untyped_storage().nbytes()
        return tensor.clone() if held > ROOM * tensor.numel() * tensor.element_size() else tensor

    def move(self, array: Any) -> Array:
        """A small array that belongs to one that was kept."""
        return array


class Device(Place):
    """Kept on a device of the user's choice."""

    refers = False

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def keep(self, tensor: Tensor) -> Array:
        return tensor.detach().to(self.device, copy=True)

    def move(self, array: Any) -> Array:
        return array.to(self.device) if isinstance(array, Tensor) else array


class Disk(Place):
    """Kept in files, which are gone when the record is."""

    refers = False

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="regard-"))
        self.count = 0
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def keep(self, tensor: Tensor) -> Array:
        numbers, dtype = _numbers(tensor)
        path = self.folder / f"{self.count}"
        self.count += 1
        try:
            numbers.tofile(path)
        except OSError as reason:
            raise FileError(f"cannot keep the record in {self.folder}: {reason.strerror}.") from reason
        if 0 in numbers.shape:
            return numbers.view(dtype)
        mapped = np.memmap(path, dtype=numbers.dtype, mode="r", shape=numbers.shape).view(dtype)
        return _Held(mapped, self)

    def move(self, array: Any) -> Array:
        if not isinstance(array, Tensor):
            return array
        numbers, dtype = _numbers(array)
        return numbers.view(dtype)


class _HeldArray(np.memmap):
    """An array that keeps the folder it lies in."""

    home: Any = None

    def __array_finalize__(self, other: Any) -> None:
        super().__array_finalize__(other)
        self.home = getattr(other, "home", None)


def _Held(mapped: Any, home: Disk) -> Array:  # noqa: N802
    held = mapped.view(_HeldArray)
    held.home = home
    return held


def _numbers(tensor: Tensor) -> tuple[Any, Any]:
    """A tensor as NumPy's, with the dtype it is to be read in: NumPy itself has no bfloat16."""
    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        import ml_dtypes

        return plain.view(torch.uint16).numpy(), ml_dtypes.bfloat16
    numbers = plain.numpy()
    return numbers, numbers.dtype


def place(to: Any) -> Place:
    """The place that a user names: None, "disk", or a device."""
    if to is None:
        return Place()
    if to == "disk":
        return Disk()
    try:
        return Device(torch.device(to))
    except (RuntimeError, TypeError, ValueError):
        raise OptionError(f"to is {to!r}; it is None (where the model is), 'cpu', 'disk' or a device.") from None
