"""A model measured on the whole of a text: the means of what its task adds up, batch by batch."""

from collections.abc import Mapping
from contextlib import closing

from torch import Tensor

from ..errors import OptionError
from .engine import Engine
from .feeding import Feed, moved

Numbers = dict[str, float]


def measure(engine: Engine, feed: Feed) -> Numbers:
    """Loss and accuracy over every example once, by all processes together."""
    sums: dict[str, Tensor] = {}
    counts: dict[str, float] = {}
    with closing(feed.once()) as portions:
        for portion in portions:
            for part in portion.parts:
                for name, value in engine.measure(moved(part.tensors, engine.ranks.device)).items():
                    sums[name] = sums[name] + value if name in sums else value
                for name, count in part.counts.items():
                    counts[name] = counts.get(name, 0.0) + count
    if not counts:
        raise OptionError("there is no batch to measure on; give more text.")
    names, kinds = sorted(sums), sorted(counts)
    total = engine.ranks.sum([*(float(sums[name]) for name in names), *(counts[kind] for kind in kinds)])
    return told(dict(zip(names, total, strict=False)), dict(zip(kinds, total[len(names) :], strict=True)))


def told(sums: Mapping[str, float], counts: Mapping[str, float]) -> Numbers:
    """Sums of a task, such as "tokens/loss" over "tokens", as what a reader of them wants: loss and accuracy.

    Where several kinds of targets are counted, losses are added up, as they are in training, and each kind has a loss
    and an accuracy of its own as well.
    """
    means = {name: total / max(counts[name.partition("/")[0]], 1) for name, total in sums.items()}
    found = {"loss": sum(mean for name, mean in means.items() if name.endswith("/loss"))}
    if len(counts) == 1:
        (kind,) = counts
        return {**found, "accuracy": means[f"{kind}/right"]}
    for kind in counts:
        found |= {f"{kind} loss": means[f"{kind}/loss"], f"{kind} accuracy": means[f"{kind}/right"]}
    return found
