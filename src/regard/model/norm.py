"""The norms by name: "layer" (Ba et al. 2016) and "rms" (Zhang and Sennrich 2019)."""

from torch import Tensor, nn

from .options import require_count, require_name, require_positive

NORMS = ("layer", "rms")


def make_norm(name: str, width: int, *, eps: float = 1e-5, bias: bool = True) -> nn.Module:
    """A norm over the last axis. An RMS norm has no bias to begin with."""
    require_name("norm", name, NORMS)
    require_count("width", width)
    require_positive("eps", eps)
    return nn.LayerNorm(width, eps=eps, bias=bias) if name == "layer" else nn.RMSNorm(width, eps=eps)


def normed(norm: nn.Module, x: Tensor) -> Tensor:
    """x after a norm: worked out in the precision of the norm's weights, kept in that of x.

    The two differ under autocast. A norm wants float32; but much of a step on a GPU is reading and writing such
    vectors, and half of it is enough.
    """
    return norm(x.to(norm.weight.dtype)).to(x.dtype)  # type: ignore[no-any-return, arg-type]
