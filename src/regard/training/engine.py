"""The model with its task as one module, made ready for several processes, half precision and the compiler."""

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel

from .ranks import Ranks

Sums = dict[str, Tensor]


class Task(Protocol):
    """What the engine needs of a task: sums of losses, and of what is measured on held-out text."""

    def losses(self, model: Any, tensors: dict[str, Tensor]) -> Sums: ...
    def measures(self, model: Any, tensors: dict[str, Tensor]) -> Sums: ...


class Whole(nn.Module):
    """Tensors in, sums of losses out: one forward of one module, as DDP, FSDP and the compiler want it."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(self, tensors: dict[str, Tensor]) -> Sums:
        """In training the losses, otherwise what is measured."""
        return self.task.losses(self.model, tensors) if self.training else self.task.measures(self.model, tensors)


class Engine:
    """Runs the model forward and back, wherever and on however many processes it is."""

    def __init__(
        self, model: nn.Module, task: Task, ranks: Ranks, *, precision: str = "float32", compiled: bool = False,
        shard: str = "none", varied: bool = False,
    ) -> None:  # fmt: skip
        self.ranks, self.precision, self.varied, self.compiled = ranks, precision, varied, compiled
        self.shard = shard if ranks.count > 1 else "none"  # one process keeps everything anyway
        self.model = model.to(ranks.device)
        self.whole = Whole(self.model, task)
        if self.shard == "fsdp":
            _sharded(self.whole, self.model, ranks)
        if compiled:
            self.whole.compile()
        self.outer: nn.Module = self.whole
        if ranks.count > 1 and self.shard == "none":
            on = [ranks.device] if ranks.device.type == "cuda" else None
            self.outer = DistributedDataParallel(self.whole, device_ids=on, gradient_as_bucket_view=True)

    def backward(self, tensors: dict[str, Tensor], counts: dict[str, float], *, last: bool) -> Sums:
        """Gradients of Σ sum / count, counts being those of all processes; the sums of this part come back.

        last: of the parts that a step is gone through in; only then do the processes put their gradients together.
        """
        with self._together(last):
            sums = self._forward(self.outer, tensors, training=True)
            # DDP and FSDP take the mean over the processes, and the sum is what belongs there.
            shares = [sums[name] * (self.ranks.count / max(count, 1)) for name, count in counts.items()]
            torch.stack(shares).sum().backward()
        return {name: value.detach() for name, value in sums.items()}

    @torch.no_grad()
    def measure(self, tensors: dict[str, Tensor]) -> Sums:
        """What is measured on a batch of held-out text."""
        # Not through DDP, which has nothing to do here. FSDP hangs on the module itself.
        sums = self._forward(self.whole, tensors, training=False)
        if self.shard == "fsdp":
            self.whole.reshard()  # type: ignore[operator]  # or the next forward would take these weights for its own
        return sums

    def _forward(self, module: nn.Module, tensors: dict[str, Tensor], *, training: bool) -> Sums:
        if module.training != training:
            self.outer.train(training)
        if self.varied and self.compiled:  # one graph for all shapes, and not first one for the first of them
            for tensor in tensors.values():
                torch._dynamo.maybe_mark_dynamic(tensor, list(range(tensor.ndim)))
        with self._half(), self._kernels(), _unremarked():
            return module(tensors)  # type: ignore[no-any-return]

    def _half(self) -> AbstractContextManager[Any]:
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast(self.ranks.device.type, dtype=torch.bfloat16)

    def _kernels(self) -> AbstractContextManager[Any]:
        """cuDNN makes a plan for each new shape, which takes longer than many steps; so where shapes vary, without."""
        if not self.varied or self.ranks.device.type != "cuda":
            return nullcontext()
        return sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])

    @contextmanager
    def _together(self, last: bool) -> Iterator[None]:
        if self.shard == "fsdp":
            self.whole.set_requires_gradient_sync(last)  # type: ignore[operator]
        if last or not isinstance(self.outer, DistributedDataParallel):
            yield
            return
        with self.outer.no_sync():
            yield


@contextmanager
def _unremarked() -> Iterator[None]:
    """The compiler remarks upon a cache in array-api-compat that it does not look into, and need not."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Dynamo detected a call to a `functools.lru_cache`")
        yield


def _sharded(whole: nn.Module, model: nn.Module, ranks: Ranks) -> None:
    """Each process keeps its share of every weight (FSDP2) and fetches the others' block by block."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(ranks.device.type, (ranks.count,))
    for module in model.modules():
        if isinstance(module, nn.ModuleList):
            for block in module:
                fully_shard(block, mesh=mesh)
    fully_shard(whole, mesh=mesh)
