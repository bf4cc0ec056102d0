"""The processes of a run: one by itself, or those that torchrun started, on one machine or on several."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import distributed

from ..errors import OptionError

# The first process reads and tokenises the corpus while the others wait, which may take hours.
PATIENCE = timedelta(hours=12)


@dataclass(frozen=True)
class Ranks:
    """Which of the processes this one is, and where it computes."""

    rank: int
    count: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and speaks for all."""
        return self.rank == 0

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Each number, added up over all processes, in float64: counts stay whole."""
        if self.count == 1:
            return list(numbers)
        total = torch.tensor(numbers, dtype=torch.float64)
        distributed.all_reduce(total)
        return total.tolist()

    def require_alike(self, told: str) -> None:
        """What is told must be the same on all processes, which otherwise would learn one thing each."""
        number = float(int.from_bytes(hashlib.sha256(told.encode()).digest()[:5]))  # whole, and so is the sum of many
        if self.sum([number]) != [number * self.count]:
            raise OptionError("the processes were started with different settings; start all with the same command.")

    def wait(self) -> None:
        """Until all have come here."""
        if self.count > 1:
            distributed.barrier()


@contextmanager
def joined(device: str = "auto") -> Iterator[Ranks]:
    """The processes of this run, for as long as it lasts. device: "auto", "cpu", "cuda" or "mps"."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    chosen = device_of(device, local)
    if count == 1:
        yield Ranks(0, 1, chosen)
        return
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    # Whatever is counted goes over the CPU, so that nobody waits for a GPU to count.
    backend = "cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo"
    distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Ranks(distributed.get_rank(), count, chosen)
    finally:
        distributed.destroy_process_group()


def device_of(name: str, local: int = 0) -> torch.device:
    """Where to compute: "auto" takes a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    if name == "cuda":
        found = torch.cuda.device_count()
        if local >= found:
            raise OptionError(
                f"process {local} of this machine wants a GPU of its own, and there are {found}; start fewer with "
                "--nproc-per-node, or say device=cpu."
            )
        return torch.device("cuda", local)
    if name == "mps" and not torch.backends.mps.is_available():
        raise OptionError("device is mps, and this machine has no Apple GPU that PyTorch can use; say device=cpu.")
    return torch.device(name)
