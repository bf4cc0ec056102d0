"""How often labels are right: accuracy, and F1 for each label and over all of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .counting import require_pairs
from .rouge import f1


@dataclass(frozen=True)
class OfLabel:
    """How one label fared. Of `said` texts that were given it and `there` that have it, `right` are the same."""

    label: str
    right: int
    said: int
    there: int

    @property
    def precision(self) -> float:
        """How many of those that were given it have it; 0 where none was given it."""
        return self.right / self.said if self.said else 0.0

    @property
    def recall(self) -> float:
        """How many of those that have it were given it; 0 where none has it."""
        return self.right / self.there if self.there else 0.0

    @property
    def f1(self) -> float:
        """Both in one."""
        return f1(self.right, self.said, self.there)


@dataclass(frozen=True)
class Agreement:
    """How labels fared, together and each."""

    accuracy: float
    macro: float  # the mean F1 of all labels, rare ones counting as much as common ones
    micro: float  # the F1 of all decisions together; with one label a text it is the accuracy
    labels: tuple[OfLabel, ...]


def agreement(given: Sequence[str], references: Sequence[str], labels: Sequence[str] | None = None) -> Agreement:
    """labels: those that are told of and in `macro`, in this order; unless given, all that occur."""
    require_pairs(given, references, "labels")
    names = list(labels) if labels else sorted({*given, *references})
    said, there = Counter(given), Counter(references)
    right = Counter(one for one, other in zip(given, references, strict=True) if one == other)
    each = tuple(OfLabel(name, right[name], said[name], there[name]) for name in names)
    accuracy = right.total() / len(references)
    return Agreement(
        accuracy, sum(one.f1 for one in each) / len(each), f1(right.total(), said.total(), there.total()), each
    )  # fmt: skip
