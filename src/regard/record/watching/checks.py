"""Whether what was seen is right: outputs that follow from it, keys that go on, tensors that stay as they were."""

from typing import Any

import torch
from torch import Tensor

from ...errors import WatchError
from .calls import Call, mismatch, sample
from .strands import Strand

__all__ = ["Checks", "overwritten"]


class Checks:
    """What is to be compared when a watch ends: until then every answer stays on its device, and nobody waits."""

    def __init__(self) -> None:
        self.apart: dict[Any, tuple[str, Tensor, float]] = {}  # by kind of call: a layer, how far off, what is rounding
        self.times: dict[Any, int] = {}  # how often a kind of large call was seen, or a layer called
        self.samples: dict[Any, tuple[str, Call]] = {}  # by kind, a large call of it
        self.kept: list[tuple[str, Tensor, int | Tensor]] = []  # a layer, what was kept of it, and how that was then
        self.torn: dict[str, Tensor] = {}  # whether the keys of a step did not go on from those before

    def call(self, name: str, call: Call) -> None:
        """Whether the output of a call follows from what was seen of it."""
        kind: tuple[Any, ...] = (type(call.module), call.way, type(call.mask), type(call.bias), call.sinks is None)
        if call.is_large:
            if self._is_turn_of(kind):  # compared when the watch ends: by then a GPU has enough to do not to notice
                self.samples[kind] = (name, sample(call))
        elif self._is_turn_of(name) or call.query.shape[2] > 1:
            self._compare((*kind, name), name, call)

    def _is_turn_of(self, kind: Any) -> bool:
        """Whether it is the first, 2nd, 4th, 8th … time."""
        times = self.times[kind] = self.times.get(kind, 0) + 1
        return times & (times - 1) == 0

    def compare_samples(self) -> None:
        """The large calls, of which only a sample was taken."""
        while self.samples:
            kind, (name, call) = self.samples.popitem()
            self._compare(kind, name, call)

    def _compare(self, kind: Any, name: str, call: Call) -> None:
        found = mismatch(call)
        if found is not None:
            apart, rounding = found
            worst = torch.maximum(self.apart[kind][1], apart) if kind in self.apart else apart
            self.apart[kind] = (name, worst, rounding)

    def follows(self, name: str, strand: Strand, before: Tensor) -> None:
        """Whether the keys of a step go on from those of the step before it."""
        torn = strand.torn_from(before)
        if torn is not None:
            self.torn[name] = self.torn[name] | torn if name in self.torn else torn

    def stays(self, name: str, kept: Tensor) -> None:
        """Whether nobody writes to a tensor after it was kept."""
        # Tensors of inference mode count no versions: of these the last row is remembered.
        self.kept.append((name, kept, kept[:, :, -1].clone() if kept.is_inference() else kept._version))

    def require_untouched(self) -> None:
        """An error where somebody did."""
        changed = [name for name, kept, then in self.kept if isinstance(then, int) and kept._version != then]
        rows = [(name, kept[:, :, -1] != then) for name, kept, then in self.kept if isinstance(then, Tensor)]
        changed += [name for name, differs in rows if bool(differs.any())]
        self.kept.clear()
        if changed:
            raise overwritten(changed[0])

    def require_right(self, family: str) -> None:
        """An error where an output does not follow, or keys do not go on."""
        for name, apart, rounding in self.apart.values():
            if float(apart) > rounding:
                raise WatchError(
                    f"{family}: the output of {name} does not follow from the queries and keys it was called with (off "
                    f"by {float(apart):.2g} of the largest value). This family does something with its attention that "
                    "Regard does not know. regard.watch(model, strict=False) records it all the same."
                )
        for name, torn in self.torn.items():
            if bool(torn):
                raise WatchError(
                    f"{family}: the keys that {name} was handed do not go on from those of the step before: they hold "
                    "a second text as well, or a cache has rounded them. Its map of the steps together would be wrong; "
                    "watch one forward over the whole text instead."
                )


def overwritten(name: str) -> WatchError:
    """What is said when what was kept of a layer is no longer what it used."""
    return WatchError(
        f"the model wrote over the queries or keys of {name} after using them; watch it with to='cpu', which copies "
        "them at once."
    )
