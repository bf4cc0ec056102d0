"""AdamW over a model's weights, its state as plain tensors by name, and the mean of the weights over time."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

MOMENTS = ("exp_avg", "exp_avg_sq")


class Optimiser:
    """AdamW (Loshchilov and Hutter 2019), fused. Matrices decay, biases and norms do not.

    ema: the share that the mean of the weights keeps at each step, 0 for none.
    """

    def __init__(
        self, model: nn.Module, *, betas: tuple[float, float], eps: float, weight_decay: float, ema: float
    ) -> None:
        self.named = dict(model.named_parameters())
        matrices = [weight for weight in self.named.values() if weight.ndim > 1]
        others = [weight for weight in self.named.values() if weight.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
        fused = all(weight.device.type in ("cpu", "cuda") for weight in self.named.values())
        self.adam = torch.optim.AdamW([g for g in groups if g["params"]], lr=0.0, betas=betas, eps=eps, fused=fused)
        self.ema = ema
        self.means = {name: weight.detach().clone() for name, weight in self.named.items()} if ema else {}

    def step(self, done: int, learning_rate: float, clip: float) -> Tensor:
        """One step with the gradients that are there; their norm comes back. done: steps before this one."""
        weights = list(self.named.values())
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        if clip:
            nn.utils.clip_grads_with_norm_(weights, clip, norm)
        for group in self.adam.param_groups:
            group["lr"] = learning_rate
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        if self.ema:
            # The mean of few weights should be of the latest, not of the first, which were drawn.
            kept = min(self.ema, (1 + done) / (10 + done))
            torch._foreach_lerp_(list(self.means.values()), [w.detach() for w in weights], 1 - kept)
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm

    def tensors(self) -> dict[str, Tensor]:
        """All that a checkpoint keeps of weights, moments and means, by name; written into, they are restored."""
        self._require_moments()
        found = {f"weight.{name}": weight.detach() for name, weight in self.named.items()}
        for moment in MOMENTS:
            found |= {f"{moment}.{name}": self.adam.state[weight][moment] for name, weight in self.named.items()}
        return found | {f"mean.{name}": mean for name, mean in self.means.items()}

    def restored(self, steps: int) -> None:
        """After tensors() were written into: AdamW counts on from so many steps."""
        for state in self.adam.state.values():
            state["step"].fill_(float(steps))

    def averaged(self) -> Mapping[str, Tensor]:
        """The weights to use: their mean over time where it is kept, else as they are."""
        return self.means or {name: weight.detach() for name, weight in self.named.items()}

    def _require_moments(self) -> None:
        """AdamW makes its moments at the first step; before it they are 0."""
        for weight in self.named.values():
            if not self.adam.state[weight]:
                self.adam.state[weight] = {
                    "step": torch.zeros((), dtype=torch.float32, device=weight.device),
                    **{moment: torch.zeros_like(weight, memory_format=torch.preserve_format) for moment in MOMENTS},
                }


@torch.no_grad()
def put(weights: Mapping[str, Tensor], values: Iterable[Tensor]) -> None:
    """Other values into the weights, in their order."""
    for weight, value in zip(weights.values(), values, strict=True):
        weight.copy_(value)
