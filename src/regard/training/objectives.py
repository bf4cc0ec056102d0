"""What is made small in training: cross-entropy with label smoothing, over a large vocabulary too, and R-Drop."""

# T tokens, E width, V pieces of the vocabulary

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from ..errors import OptionError, ShapeError

IGNORED = -100  # the target of a place where nothing is to be said
# Logits that are held at once. A GPU wants many to be busy with; compiled, it never writes them in float32, and a
# number of parts that changes from batch to batch would be compiled anew. A processor is as fast with those that fit
# its caches.
LOGITS, COMPILED = {"cuda": 2**28, "cpu": 2**24}, 2**31
ALIGNED = 64  # a GPU's matrix products are slow where a row of logits does not begin at a multiple of some bytes


def smoothed(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Cross-entropy, summed over the targets that are not ignored.   (.., V), (..) -> ()

    smoothing: the share of the wanted probability that is spread over the whole vocabulary (Szegedy et al. 2016).
    It is worked out in float32, or float64 for logits of float64.
    """
    _require(logits, targets, smoothing)
    wide = _wide(logits)
    of_target = wide.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    wanted = (1 - smoothing) * of_target + (smoothing * wide.mean(-1) if smoothing else 0)
    return torch.where(targets == IGNORED, 0, wide.logsumexp(-1) - wanted).sum()


def projected_loss(
    vectors: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, *, smoothing: float = 0.0,
    chunk: int | None = None,
) -> Tensor:  # fmt: skip
    """smoothed(vectors · weightᵀ + bias, targets), without all the logits at once.   (T, E), (V, E), (V), (T) -> ()

    Logits are made for a chunk of tokens at a time. The gradient of a sum is known as soon as the logits are, up to the
    one factor that comes later, so it is taken on the spot and the logits are forgotten: nothing is made twice.
    Under autocast the matrix products are in its type; gradients of the weights add up in float32.
    """
    _require_projected(vectors, weight, targets, smoothing)
    count = _count(vectors, weight, chunk)
    if torch.is_grad_enabled():
        found: Tensor = _Projected.apply(vectors, weight, bias, targets, smoothing, count, _product_dtype(vectors))  # type: ignore[no-untyped-call]
        return found
    parts = _parts(count, vectors, targets)
    return torch.stack(
        [smoothed(functional.linear(part, weight, bias), wanted, smoothing) for part, wanted in parts]
    ).sum()  # fmt: skip


class _Projected(torch.autograd.Function):
    """The loss, and with it the gradients for a factor of 1."""

    @staticmethod
    def forward(  # noqa: PLR0917
        ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float, count: int,
        dtype: torch.dtype,
    ) -> Tensor:  # fmt: skip
        size = len(weight)
        more = -size % ALIGNED if weight.device.type == "cuda" else 0
        lesser = functional.pad(weight.to(dtype), (0, 0, 0, more))
        lesser_bias = None if bias is None else functional.pad(bias.to(dtype), (0, more))
        sums = torch.promote_types(dtype, torch.float32)
        total = vectors.new_zeros((), dtype=sums)
        to_vectors = []
        to_weight = torch.zeros_like(weight, dtype=sums)
        to_bias = None if bias is None else torch.zeros_like(bias, dtype=sums)
        for part, wanted in _parts(count, vectors.to(dtype), targets):
            loss, slope = _with_slope(functional.linear(part, lesser, lesser_bias)[:, :size], wanted, smoothing)
            total = total + loss
            slope = functional.pad(slope, (0, more))
            to_vectors.append(slope @ lesser)
            to_weight += (slope.mT @ part)[:size]
            if to_bias is not None:
                to_bias += slope.sum(0, dtype=sums)[:size]
        ctx.save_for_backward(
            torch.cat(to_vectors).to(vectors.dtype), to_weight.to(weight.dtype),
            to_bias if to_bias is None or bias is None else to_bias.to(bias.dtype),
        )  # fmt: skip
        return total

    @staticmethod
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        found = [None if slope is None else slope * factor.to(slope.dtype) for slope in ctx.saved_tensors]
        return (*found, None, None, None, None)


def _with_slope(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The summed cross-entropy, and its gradient in the logits: the softmax less what was wanted."""
    wide = _wide(logits)
    kept = (targets != IGNORED)[:, None]
    log_sum = wide.logsumexp(-1, keepdim=True)
    if not torch.compiler.is_compiling():
        return _scattered(wide, log_sum, targets, kept, smoothing, logits.dtype)
    # Compared and not scattered: torch.compile then writes the gradient in one pass.
    is_target = torch.arange(wide.shape[-1], device=wide.device) == targets[:, None]
    smooth = smoothing * wide.mean(-1, keepdim=True) if smoothing else 0
    of_target = torch.where(is_target, wide, 0).sum(-1, keepdim=True)
    loss = torch.where(kept, log_sum - (1 - smoothing) * of_target - smooth, 0).sum()
    wanted = is_target.to(wide.dtype) * (1 - smoothing) + smoothing / wide.shape[-1]
    slope = torch.where(kept, (wide - log_sum).exp() - wanted, 0)
    return loss, slope.to(logits.dtype)


def _scattered(  # noqa: PLR0917
    wide: Tensor, log_sum: Tensor, targets: Tensor, kept: Tensor, smoothing: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The same by few passes over the logits, each of which is one call where nothing is compiled."""
    place = targets.clamp(min=0)[:, None]
    of_target = wide.gather(-1, place)
    smooth = smoothing * wide.mean(-1, keepdim=True) if smoothing else 0
    loss = torch.where(kept, log_sum - (1 - smoothing) * of_target - smooth, 0).sum()
    slope = (wide - log_sum).exp_()
    if smoothing:
        slope -= smoothing / wide.shape[-1]
    slope.scatter_add_(1, place, torch.full_like(of_target, smoothing - 1)).masked_fill_(~kept, 0)
    return loss, slope.to(dtype)


def r_drop(first: Tensor, second: Tensor, targets: Tensor, alpha: float) -> Tensor:
    """How far two draws of dropout lead apart: α · ½ (KL(p‖q) + KL(q‖p)), summed over targets (Wu et al. 2021).

    (.., V), (.., V), (..) -> ()
    """
    if first.shape != second.shape:
        raise ShapeError(f"the two draws are {tuple(first.shape)} and {tuple(second.shape)}; they must be equal.")
    _require(first, targets)
    one, other = _wide(first).log_softmax(-1), _wide(second).log_softmax(-1)
    # The two divergences together: Σ (p − q)(log p − log q).
    apart = ((one.exp() - other.exp()) * (one - other)).sum(-1)
    return alpha / 2 * torch.where(targets == IGNORED, 0, apart).sum()


def twice_drawn(
    first: Tensor, second: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, *, smoothing: float,
    alpha: float, chunk: int | None = None,
) -> Tensor:  # fmt: skip
    """The loss of R-Drop: the mean of both draws' cross-entropy, and half of `r_drop` between them.

    That is half of what the paper writes, so as to be as large as a loss without R-Drop. The logits of a chunk of
    tokens at a time are made, and made once more for the gradient.   (T, E), (T, E), (V, E), (V), (T) -> ()
    """
    _require_projected(first, weight, targets, smoothing)

    def part(one: Tensor, other: Tensor, wanted: Tensor) -> Tensor:
        both = functional.linear(one, weight, bias), functional.linear(other, weight, bias)
        losses = smoothed(both[0], wanted, smoothing) + smoothed(both[1], wanted, smoothing)
        return (losses + r_drop(both[0], both[1], wanted, alpha)) / 2

    parts = _parts(_count(first, weight, chunk), first, second, targets)
    return torch.stack([checkpoint(part, *some, use_reentrant=False, preserve_rng_state=False) for some in parts]).sum()


def judged(
    vectors: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, *, chunk: int | None = None
) -> tuple[Tensor, Tensor]:
    """The cross-entropy, and how many targets were the likeliest, both summed.   (T, E), (V, E), (V), (T) -> (), ()"""
    _require_projected(vectors, weight, targets)
    losses, rights = [], []
    for part, wanted in _parts(_count(vectors, weight, chunk), vectors, targets):
        logits = functional.linear(part, weight, bias)
        losses.append(smoothed(logits, wanted))
        rights.append(right(logits, wanted))
    return torch.stack(losses).sum(), torch.stack(rights).sum()


def right(logits: Tensor, targets: Tensor) -> Tensor:
    """How many targets have the highest logit.   (.., V), (..) -> ()"""
    return (logits.argmax(-1) == targets).sum()


def _count(vectors: Tensor, weight: Tensor, chunk: int | None) -> int:
    """Into how many parts tokens are divided, `chunk` tokens each if that is given."""
    if chunk is None:
        kind = vectors.device.type
        most = COMPILED if kind == "cuda" and torch.compiler.is_compiling() else LOGITS.get(kind, LOGITS["cuda"])
        return -(-vectors.shape[0] * weight.shape[0] // most)
    if chunk < 1:
        raise OptionError(f"chunk is {chunk}; it counts tokens, from 1 on.")
    return -(-vectors.shape[0] // chunk)


def _parts(count: int, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(tensor.chunk(count) for tensor in tensors), strict=True)


def _wide(logits: Tensor) -> Tensor:
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _product_dtype(vectors: Tensor) -> torch.dtype:
    """What a matrix product of `vectors` would be in, autocast or not."""
    kind = vectors.device.type
    if torch.is_autocast_enabled(kind) and vectors.dtype != torch.float64:
        return torch.get_autocast_dtype(kind)
    return vectors.dtype


def _require_projected(vectors: Tensor, weight: Tensor, targets: Tensor, smoothing: float = 0.0) -> None:
    if vectors.ndim != 2 or weight.ndim != 2 or vectors.shape[1] != weight.shape[1]:
        raise ShapeError(
            f"vectors {tuple(vectors.shape)} and weight {tuple(weight.shape)} must be (tokens, width) and "
            "(vocabulary, width)."
        )
    _require(vectors, targets, smoothing)


def _require(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> None:
    if logits.shape[:-1] != targets.shape:
        raise ShapeError(
            f"targets {tuple(targets.shape)} and what is said of them {tuple(logits.shape)} differ; without its last "
            "axis the latter must be as the former."
        )
    if not 0 <= smoothing < 1:
        raise OptionError(f"smoothing is {smoothing}; it must be a number from 0 up to, but not including, 1.")
