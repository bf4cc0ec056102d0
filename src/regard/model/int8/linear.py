"""Linear layers with weights of 8 bits, by PyTorch's whole-number kernels; in float32 where there are none."""

# E width of what comes in, F width of what comes out

import warnings
from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...errors import NotANumber

# Measured on 512 × 2048 matrices: FBGEMM is the faster one for the few rows of a decoding step, oneDNN for a text.
FEW_ROWS, MANY_ROWS = "fbgemm", "onednn"
LARGEST = 127  # of a weight, so that 0 stays 0 and both signs reach as far


class Linear8:
    """act(x·Wᵀ + b) with W in 8 bits, act being nothing or the rectifier.   (.., E) -> (.., F)

    Each row of W has a scale of its own. x is rounded to 8 bits as it comes, between its least and its greatest number,
    so that what a row becomes depends a little on the rows beside it.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, *, engine: str, relu: bool = False) -> None:
        if not bool(torch.isfinite(weight).all()):
            raise NotANumber(f"a matrix {tuple(weight.shape)} holds NaN or infinity, which 8 bits cannot say.")
        self._relu = relu
        self._weight, self._bias = weight.detach(), None if bias is None else bias.detach()
        self._packed = None
        if available():
            self._packed = _pack(self._weight, self._bias, engine)
            self._weight, self._bias = weight.new_empty(0), None  # kept once
            kernels = torch.ops.quantized
            self._kernel = (kernels.linear_relu_dynamic if relu else kernels.linear_dynamic).default
            self._reduced = not _has_wide_sums()

    @staticmethod
    def of(linears: Sequence[nn.Linear], *, engine: str, scales: Sequence[float] = (), relu: bool = False) -> "Linear8":
        """Layers that read the same, side by side in one. scales: what each is multiplied by, 1 unless given."""
        factors = scales or [1.0] * len(linears)
        weight = torch.cat([linear.weight * factor for linear, factor in zip(linears, factors, strict=True)])
        biases = [
            linear.bias * factor for linear, factor in zip(linears, factors, strict=True) if linear.bias is not None
        ]
        return Linear8(weight, torch.cat(biases) if biases else None, engine=engine, relu=relu)

    def __call__(self, x: Tensor) -> Tensor:
        if self._packed is not None:
            return self._kernel(x, self._packed, self._reduced)  # type: ignore[no-any-return]
        out = functional.linear(x, self._weight, self._bias)
        return out.relu_() if self._relu else out


@cache
def available() -> bool:
    """Whether this build of PyTorch has the kernels, on this processor."""
    if not {FEW_ROWS, MANY_ROWS} <= set(torch.backends.quantized.supported_engines):
        return False
    try:
        for engine in (FEW_ROWS, MANY_ROWS):
            packed = _pack(torch.eye(8), None, engine)
            torch.ops.quantized.linear_dynamic.default(torch.eye(8), packed, True)
    except (RuntimeError, AttributeError):
        return False
    return True


def _pack(weight: Tensor, bias: Tensor | None, engine: str) -> torch.ScriptObject:
    """The matrix in whole numbers, laid out as an engine reads it."""
    scales = weight.abs().amax(dim=1).clamp(min=1e-30) / LARGEST
    whole = (weight / scales[:, None]).round().clamp(-LARGEST, LARGEST).to(torch.int8)
    before = torch.backends.quantized.engine
    try:
        torch.backends.quantized.engine = engine
        with warnings.catch_warnings():
            # PyTorch 2.13 warns that this kind of tensor will go one day; `available` says so when it has gone.
            warnings.simplefilter("ignore", UserWarning)
            zeros = torch.zeros(len(scales), dtype=torch.int64)
            tensor = torch._make_per_channel_quantized_tensor(whole, scales.double(), zeros, 0)
        return torch.ops.quantized.linear_prepack(tensor, bias)  # type: ignore[no-any-return]
    finally:
        torch.backends.quantized.engine = before


def _has_wide_sums() -> bool:
    """Whether products are summed in 32 bits at once (VNNI). Without, two must fit in 16, and x is kept to 7 bits."""
    asked = getattr(torch.cpu, "_is_vnni_supported", None)
    return asked is not None and bool(asked())
